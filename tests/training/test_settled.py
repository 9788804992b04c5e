"""Further training until it has settled: when it ends, what it reports, and the same numbers however it is run."""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from settings import draw_pieces

from mnemoscope import Retrieval, SpecError, simulate, simulate_many
from mnemoscope.engine.device import find_device, numerics
from mnemoscope.engine.kinds import kind_of
from mnemoscope.engine.layout import choose_layout
from mnemoscope.engine.memory_budget import MemoryBudget
from mnemoscope.engine.record import Trial
from mnemoscope.experiments.run import Run
from mnemoscope.models.retrieval import Parameters
from mnemoscope.store.rows import TRIAL, read_trial, trial_row
from mnemoscope.training import full_batch, settled
from mnemoscope.training.settled import Bounds, Task, Training, first_training
from mnemoscope.training.three_step import reference, settling
from mnemoscope.training.three_step.simulation import passes

CPU = jax.devices("cpu")[0]
SPEC = Retrieval(vocab=32, dim=20, length=4, samples=300, test_samples=500, then="adamw", steps=500, stop="settled")
BOUND = 1e-9

SETTINGS = [
    pytest.param({}, id="adamw"),
    pytest.param({"dim": 8}, id="above capacity", marks=pytest.mark.long),
    pytest.param({"then": "gd", "steps": 200}, id="gd"),
    pytest.param(
        {"width": 12, "activation": "tanh", "eta": 1.0, "gamma": 1e6, "trigger": "additive"},
        id="MLP",
        marks=pytest.mark.long,
    ),
    pytest.param({"embedding": "orthonormal", "dim": 40}, id="orthonormal", marks=pytest.mark.long),
]


def test_the_default_renames_nothing():
    spec = Retrieval(vocab=64, dim=32, length=4, samples=500, then="adamw", steps=100)
    assert spec.canonical() == (
        '{"dim":32,"kind":"retrieval","length":4,"samples":500,"steps":100,"then":"adamw","vocab":64}'
    )
    assert spec.replace(stop="steps").id == spec.id == "243820a3caffb431"
    assert spec.replace(stop="settled").id != spec.id
    assert spec.program() == spec.replace(stop="settled").program()
    assert (spec.learning_rate, spec.replace(stop="settled").learning_rate) == (0.01, 0.1)
    assert (spec.replace(then="gd").learning_rate, spec.replace(then="gd", stop="settled").learning_rate) == (1, 10)


@pytest.mark.parametrize(
    ("values", "line"),
    [
        ({"stop": "settled"}, "stop: expected steps unless `then` names an optimiser, got 'settled'"),
        ({"stop": "setled", "then": "gd", "steps": 3}, "stop: expected one of steps, settled, got 'setled'; did you"),
        ({"stop": 3}, "stop: expected one of steps, settled, got 3"),
        ({"stop": "settled", "then": "gd"}, "steps: expected 0 unless"),
    ],
)
def test_wrong_requests_get_one_line(values: dict[str, Any], line: str):
    with pytest.raises(SpecError) as caught:
        Retrieval.read({"vocab": 8, "dim": 8, "length": 2, "samples": 10, **values})
    assert str(caught.value).startswith(line)
    assert "\n" not in str(caught.value)


@pytest.mark.long
def test_an_easy_setting_settles_before_its_most_steps_and_says_so():
    trial = simulate(SPEC, 0)
    assert (trial.status, trial.message) == ("ok", "")
    taken = trial.metrics["steps"]
    assert taken is not None
    assert taken < SPEC.steps
    assert [step.name for step in trial.steps] == ["start", "V1", "W1", "V2", "adamw 0", f"adamw {taken:.0f}"]
    assert trial.as_dict()["steps_taken"] == taken
    assert trial.steps[-1].loss < settled.SMALL  # pyright: ignore[reportOptionalOperand]
    assert trial.accuracy is not None
    assert trial.accuracy > trial.steps[3].accuracy
    assert Run(SPEC, (trial,)).interval().value == trial.accuracy


@pytest.mark.long
def test_above_capacity_the_loss_stops_falling_and_the_rate_falls_to_zero():
    trial = simulate(SPEC.replace(dim=6, steps=5000), 0)
    assert trial.status == "ok"
    taken, loss = trial.metrics["steps"], trial.steps[-1].loss
    assert taken is not None
    assert loss is not None
    assert taken < 5000
    assert loss > 0.1


def test_training_that_runs_out_of_steps_is_unreached_and_keeps_its_accuracy():
    trial = simulate(SPEC.replace(steps=20), 0)
    assert trial.status == "unreached"
    assert trial.message == "the loss was still falling after 20 steps"
    assert trial.metrics["steps"] == 20
    assert trial.accuracy == trial.steps[-1].accuracy
    assert trial.measured("accuracy") == trial.accuracy
    assert trial.measured("first_gradient") == trial.steps[1].map_accuracy
    run = Run(trial.spec, (trial, simulate(SPEC.replace(steps=20), 1)))
    assert len(run.finished) == 2


@pytest.mark.long
def test_training_that_blows_up_is_called_diverged():
    trial = simulate(SPEC.replace(then="gd", lr=1e38), 0)
    assert trial.status == "diverged"
    assert trial.accuracy is None
    assert trial.metrics == {}


def test_a_record_survives_the_store():
    for spec in (SPEC, SPEC.replace(steps=20)):
        trial = simulate(spec, 0)
        row = dict(zip(TRIAL, trial_row(trial), strict=False))
        names = (
            "seed",
            "status",
            "metrics",
            "seconds",
            "message",
            "precision",
            "device",
            "versions",
            "code",
            "history",
        )
        assert read_trial((spec.canonical(), *(row[name] for name in names))) == trial


@pytest.mark.parametrize("values", SETTINGS)
def test_a_trial_is_the_same_to_the_bit_alone_and_in_a_batch(values: dict[str, Any]):
    spec = SPEC.replace(**values)
    jobs = [(spec, seed) for seed in (0, 1)]
    others = [(spec.replace(samples=n), 5) for n in (50, 900)]
    three_steps = Retrieval(vocab=32, dim=20, length=4, samples=2000, test_samples=500), 3
    together = simulate_many([others[0], jobs[0], three_steps, others[1], jobs[1]])
    assert [(trial.spec, trial.seed) for trial in together] == [others[0], jobs[0], three_steps, others[1], jobs[1]]
    for job, batched in zip(jobs, (together[1], together[4]), strict=True):
        alone = simulate(*job)
        assert (batched.status, batched.steps, batched.metrics) == (alone.status, alone.steps, alone.metrics)


def test_cutting_the_steps_into_calls_changes_nothing(monkeypatch: pytest.MonkeyPatch):
    whole = simulate(SPEC, 2)
    monkeypatch.setattr(settling, "FIRST_STEPS", 7)
    monkeypatch.setattr(settling, "SECONDS_IN_A_CALL", 0.0)
    assert simulate(SPEC, 2).steps == whole.steps


@pytest.mark.parametrize(
    "values", [pytest.param({}, marks=pytest.mark.long), {"dim": 8, "steps": 40}, {"width": 12, "steps": 40}]
)
@pytest.mark.long
def test_trainings_side_by_side_are_the_same_to_rounding(values: dict[str, Any], monkeypatch: pytest.MonkeyPatch):
    """As on a GPU: many share a call, some settle earlier, and the rest goes on in a smaller batch."""
    spec = SPEC.replace(**values)
    jobs = [(spec.replace(samples=n), seed) for n in (100, 300) for seed in range(5)]
    alone = simulate_many(jobs)
    sizes: list[int] = []
    real = settling._advance

    def heard(plan: settling.Plan, tasks: Task, trainings: Training, steps: int) -> Training:
        sizes.append(len(trainings.taken))
        return real(plan, tasks, trainings, min(steps, 20))

    monkeypatch.setattr("mnemoscope.training.three_step.batch.batch_size", lambda *_: 16)
    monkeypatch.setattr(settling, "_advance", heard)
    monkeypatch.setattr(settling, "LEAST_ROWS", 2)
    beside = simulate_many(jobs)
    assert sizes[0] == 16
    if not values:
        assert sizes[-1] < 16
    for one, other in zip(alone, beside, strict=True):
        assert (one.spec, one.seed, one.status) == (other.spec, other.seed, other.status)
        steps, same = one.metrics["steps"], other.metrics["steps"]
        assert steps == pytest.approx(same, rel=0.05)  # rounding grows on the way, a little
        assert other.accuracy == pytest.approx(one.accuracy, abs=0.05)


def test_progress_adds_up():
    for spec in (SPEC, SPEC.replace(steps=20)):
        shares: list[float] = []
        simulate(spec, 0, progress=shares.append)
        assert sum(shares) == pytest.approx(passes(spec))
        assert all(share >= 0 for share in shares)
    heard: list[tuple[int, float]] = []
    simulate_many([(SPEC, 0), (SPEC, 1)], hear=lambda spec, seed, share: heard.append((seed, share)))
    assert (0, 1.0) in heard
    assert (1, 1.0) in heard


@pytest.mark.parametrize("then", ["gd", "adamw"])
@pytest.mark.parametrize("width", [0, 7])
def test_the_loop_takes_the_steps_that_autodiff_takes(then: str, width: int):
    """Three steps of the compiled loop against `reference.loss`, in double precision."""
    sizes = dict(vocab=11, dim=6, length=4, samples=50, width=width, activation="gelu")
    spec = Retrieval.read({**sizes, "then": then, "steps": 30, "stop": "settled"})
    with numerics("float64", CPU):
        frozen, source, batch = draw_pieces(spec, 1)
        rng = np.random.default_rng(3)
        parameters = Parameters(jnp.asarray(rng.normal(size=(6, width or 6))), jnp.asarray(rng.normal(size=(6, 6))))
        further = full_batch.Further.of(spec)
        optimiser = further.transformation
        bounds = Bounds.of([spec])
        task = Task(frozen, source, jnp.uint32(50), jax.tree.map(lambda part: part[0], bounds))
        begun = first_training(
            full_batch.State(parameters, optimiser(1.0).init(parameters)), jnp.asarray(30, jnp.int32)
        )
        rows = jax.tree.map(lambda part: jnp.asarray(part)[None], (task, begun))
        layout = choose_layout(spec)._replace(by_sample=32)
        took = settled.advance(spec.program(), layout, further, *rows, jnp.uint32(50), jnp.asarray(3, jnp.int32))
        state = optimiser(spec.learning_rate).init(parameters)
        loss = jnp.nan
        for _ in range(3):
            loss, g = jax.value_and_grad(reference.loss, argnums=(0, 1))(*parameters, spec, frozen, batch)
            updates, state = optimiser(spec.learning_rate).update(Parameters(*g), state)
            parameters = jax.tree.map(jnp.add, parameters, updates)
        assert float(took.loss[0]) == pytest.approx(float(loss), rel=BOUND)
        for part, other in zip(took.state.parameters, parameters, strict=True):
            assert np.linalg.norm(part[0] - other) < BOUND * np.linalg.norm(other)


def watched(losses: list[float], most: int = 10**6, least: int = 0) -> tuple[int, bool, int]:
    """How many of these losses are seen before training ends, whether it settled, and when its rate begins to fall."""
    state = full_batch.State(Parameters(jnp.zeros((1, 1)), jnp.zeros((1, 1))), ())
    training = first_training(state, jnp.asarray(most, jnp.int32))
    spec = SPEC.replace(steps=most)
    bounds = jax.tree.map(lambda part: part[0], Bounds.of([spec]))._replace(least=jnp.asarray(least, jnp.int32))
    watch = jax.jit(settled._watch)
    for loss in losses:
        if not bool(settled.under_way(training)):
            break
        training = watch(bounds, training._replace(taken=training.taken + 1, loss=jnp.float32(loss)))
    return int(training.taken), bool(training.settled), int(training.rests)


def test_the_rule():
    flat = [1.0] * 1000
    # Two windows are compared, of 100 and of 20 steps; the rate then falls over a fifth of the steps so far.
    assert watched(flat) == (144, True, 120)
    # Not before the fewest steps, and then at the end of a window: 120, 144, 173, 208, ...
    assert watched(flat, least=200) == (250, True, 208)
    assert watched([0.1 / (1 + t) for t in range(1000)])[:2] == (21, True)
    # A power law falls for ever: by 1.2^-a from one window to the next.
    steep = [10 * (1 + t) ** -0.2 for t in range(1000)]
    assert watched(steep, most=600) == (600, False, 500)
    assert watched([10 * (1 + t) ** -0.01 for t in range(1000)], most=600)[1]
    assert watched([1.0, math.nan, 1.0])[0] == 2


def test_unreached_trials_count_and_are_said():
    cost = kind_of(SPEC).cost(SPEC, "cpu")
    assert cost.most_steps == SPEC.steps
    assert 0 < cost.usual_share < 1
    fixed = kind_of(SPEC).cost(SPEC.replace(stop="steps"), "cpu")
    assert fixed.most_steps == 0


def test_a_record_of_the_three_steps_has_no_number_of_steps():
    trial = simulate(SPEC.replace(then="none", steps=0, stop="steps"), 0)
    assert "steps" not in trial.metrics
    assert "steps_taken" not in trial.as_dict()
    assert isinstance(trial, Trial)


# V, d, L, N/V and the law: below, at and above capacity, d^2 = 1.25 n ln n with n the number of tokens seen.
TABLE = [
    (64, 12, 4, 2, "gaussian"),
    (64, 14, 8, 20, "gaussian"),
    (64, 18, 8, 0.5, "gaussian"),
    (64, 18, 16, 5, "sphere"),
    (64, 24, 32, 2, "gaussian"),
    (64, 32, 4, 20, "sphere"),
    (64, 48, 16, 1, "gaussian"),
    (128, 16, 4, 5, "sphere"),
    (128, 16, 16, 1, "gaussian"),
    (128, 24, 16, 16, "gaussian"),
    (128, 28, 16, 4, "sphere"),
    (128, 28, 32, 0.5, "gaussian"),
    (128, 32, 16, 8, "gaussian"),
    (128, 48, 8, 2, "gaussian"),
    (128, 64, 32, 4, "gaussian"),
    (128, 96, 16, 0.5, "sphere"),
    (200, 24, 8, 2, "gaussian"),
    (200, 36, 16, 5, "gaussian"),
    (200, 40, 4, 20, "gaussian"),
    (200, 64, 32, 1, "sphere"),
    (200, 96, 16, 2, "gaussian"),
]


@pytest.mark.longest
def test_five_times_as_many_steps_change_accuracy_by_little():
    """The table of docs/model.md: accuracy where training has settled, and after five times as many steps."""
    place = find_device("cpu")
    memory = MemoryBudget.of(place, None)
    print(f"\n{'V':>5}{'d':>4}{'L':>4}{'N':>6}  law       {'steps':>6}  status     loss  accuracy  after 5 times")
    moved = []
    for vocab, dim, length, ratio, law in TABLE:
        samples = round(vocab * ratio)
        sizes = dict(vocab=vocab, dim=dim, length=length, samples=samples, embedding=law, test_samples=8192)
        spec = Retrieval.read({**sizes, "then": "adamw", "steps": 3000, "stop": "settled"})
        trial = simulate(spec, 0, device="cpu")
        most = 5 * round(trial.metrics["steps"] or 0)
        with numerics("float32", place):
            longer = spec.replace(steps=most)
            plan = settling.plan_for(longer, "float32", memory, place)
            begun = settling._begin_in_one_call(plan, [(longer, 0)])
            # Neither rule ends it: the rate is constant for five sixths of the steps, and then falls to zero.
            bounds = begun.tasks.bounds
            bounds = bounds._replace(small=0 * bounds.small, least=0 * bounds.least + settled.MOST_STEPS)
            tasks = begun.tasks._replace(bounds=bounds)
            trained = settling._advance(plan, tasks, begun.trainings, most)
            measurement, _ = settling._measure(plan, tasks, trained, begun.test, begun.fresh)
        assert int(trained.taken[0]) == most
        after = float(measurement.hits.answered[0]) / 8192
        moved.append(after - (trial.accuracy or 0))
        print(
            f"{vocab:5}{dim:4}{length:4}{samples:6}  {law:8}  {trial.metrics['steps']:6.0f}  {trial.status:9}"
            f"{trial.steps[-1].loss:6.3f}  {trial.accuracy:8.3f}  {after:8.3f}",
            flush=True,
        )
    sizes = np.abs(moved)
    print(f"mean change {np.mean(moved):+.4f}, mean size of it {sizes.mean():.4f}, largest {sizes.max():.4f}")
    assert sizes.mean() < 0.01
