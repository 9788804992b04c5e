"""The corridor: records, reproducibility, and memory that does not grow with N."""

import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mnemoscope.engine.memory_budget
import mnemoscope.experiments.workers.batches
from mnemoscope import Retrieval, SpecError, run, simulate
from mnemoscope.engine import random
from mnemoscope.engine.layout import choose_layout, needed_bytes
from mnemoscope.engine.record import Step, Trial
from mnemoscope.models.retrieval import draw_frozen
from mnemoscope.store.trials import Store
from mnemoscope.tasks.retrieval import Batch
from mnemoscope.training.three_step.algorithm import Rates, three_steps
from mnemoscope.training.three_step.evaluation import measure_steps
from mnemoscope.training.three_step.records import judge
from mnemoscope.training.three_step.simulation import passes
from mnemoscope.training.three_step.streaming import Count, Source, Span, fold

SPEC = Retrieval(vocab=32, dim=24, length=4, samples=2000, test_samples=500)


def test_a_trial_tells_what_a_user_wants_to_see():
    trial = simulate(SPEC, 0)
    assert trial.status == "ok"
    assert [step.name for step in trial.steps] == ["start", "V1", "W1", "V2"]
    start, first, second, last = trial.steps
    assert start.accuracy == 1 / 32
    assert start.attention_accuracy == first.attention_accuracy == 1 / 4
    # Attention is learned at W1 and left alone at V2; V1 alone sees a blur of four tokens.
    assert second.attention_accuracy == last.attention_accuracy > 0.9
    assert first.accuracy < last.accuracy
    assert last.accuracy == trial.accuracy
    assert last.recall is not None
    # Whoever is right with attention right is right; the rest is luck on noise tokens.
    assert last.recall * last.attention_accuracy <= last.accuracy
    assert last.ratio == pytest.approx(last.signal / last.std)  # pyright: ignore
    told = trial.as_dict()
    assert set(told["margin"]) == {"signal", "std", "ratio"}
    assert told["versions"]["jax"] == jax.__version__
    assert told["spec_id"] == SPEC.id


def test_the_same_seed_gives_the_same_trial_and_others_differ():
    assert simulate(SPEC, 3).steps == simulate(SPEC, 3).steps
    assert simulate(SPEC, 3).steps != simulate(SPEC, 4).steps


def test_precisions_agree():
    narrow, wide = simulate(SPEC, 1), simulate(SPEC, 1, precision="float64")
    assert wide.precision == "float64"
    assert abs(narrow.accuracy - wide.accuracy) <= 2 / SPEC.test_samples  # pyright: ignore
    assert narrow.steps[-1].signal == pytest.approx(wide.steps[-1].signal, rel=1e-4)


@pytest.mark.long
def test_finite_steps_end_near_their_limit():
    limit = simulate(SPEC, 0)
    finite = simulate(SPEC.replace(eta=1e-3, gamma=1e12), 0)
    assert abs(limit.accuracy - finite.accuracy) < 0.02  # pyright: ignore
    assert abs(limit.attention_accuracy - finite.attention_accuracy) < 0.02  # pyright: ignore


def test_locked_attention_is_perfect_attention():
    trial = simulate(SPEC.replace(attention="locked"), 0)
    (step,) = trial.steps
    assert step.attention_accuracy == 1.0
    assert step.recall == step.accuracy
    # Fresh sequences ask for uniformly drawn tokens: the share of the map that is right.
    error = np.sqrt(step.map_accuracy * (1 - step.map_accuracy) / SPEC.test_samples)
    assert abs(step.accuracy - step.map_accuracy) <= 4 * error


@pytest.mark.parametrize("then", ["gd", "adamw"])
@pytest.mark.long
def test_training_can_go_on(then: str):
    spec = SPEC.replace(then=then, steps=20, dim=12)
    trial = simulate(spec, 0)
    more = trial.steps[4:]
    assert [step.name for step in more] == [f"{then} {n}" for n in range(0, 21, 2)]
    losses = [step.loss for step in more]
    assert losses[-1] < losses[0]  # pyright: ignore
    assert trial.accuracy == more[-1].accuracy
    # Where it starts from is where the three steps ended, up to softmax in place of the argmax.
    assert abs(more[0].attention_accuracy - trial.steps[3].attention_accuracy) < 0.02
    assert more[0].map_accuracy == trial.steps[3].map_accuracy


@pytest.mark.long
def test_progress_adds_up_to_the_passes():
    for spec in (SPEC, SPEC.replace(attention="locked"), SPEC.replace(then="gd", steps=3)):
        shares: list[float] = []
        simulate(spec, 0, progress=shares.append)
        assert sum(shares) == pytest.approx(passes(spec))


def test_a_crash_is_called_a_crash(monkeypatch: pytest.MonkeyPatch):
    def fail(*_: object, **__: object) -> Trial:
        raise MemoryError("no more\nof it")

    monkeypatch.setattr(mnemoscope.experiments.workers.batches, "simulate", fail)
    done = run(SPEC, 2)
    assert [trial.status for trial in done.trials] == ["crashed"] * 2
    assert done.trials[0].message == "MemoryError: no more"
    assert done.interval().value is None
    assert done.trials[0].as_dict()["accuracy"] is None


def test_a_run_is_kept_as_the_command_keeps_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    first = run(SPEC, 2)
    with Store() as store:
        assert [trial.seed for trial in store.find("id = ?", (SPEC.id,))] == [0, 1]
        assert run(SPEC, 2, store=store) == first
    assert run(SPEC, 2) == first  # to the second that they took
    assert run(SPEC, 2, store=tmp_path / "other.db") != first
    assert (tmp_path / "other.db").exists()
    assert run(SPEC, 1, first=2, store=None).trials[0].seed == 2
    assert run(SPEC, 1, first=3, precision="float64").trials[0].precision == "float64"
    with Store() as store:
        assert store.count() == 2


def test_a_run_that_blows_up_is_called_diverged():
    trial = simulate(SPEC.replace(then="gd", steps=20, lr=1e38), 0)
    assert trial.status == "diverged"
    assert trial.accuracy is None


def test_ratio_is_none_without_a_spread():
    assert Step("V2", 1.0, 1.0, 1.0, signal=0.0, std=0.0).ratio is None
    assert simulate(SPEC.replace(length=1), 0).status == "ok"


def test_a_size_that_cannot_fit_is_refused_before_anything_is_allocated():
    spec = Retrieval(vocab=10_000_000, dim=4096, length=8, samples=1000)
    with pytest.raises(SpecError) as caught:
        simulate(spec, 0)
    text = str(caught.value)
    assert text.startswith("vocab: expected a size that fits in the ")
    assert "got 10,000,000, which needs" in text


def test_the_option_to_blame_is_named(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(mnemoscope.engine.memory_budget, "free_bytes", lambda device: 10**9)
    for field, values in (
        ("width", {"width": 10**7}),
        ("dim", {"dim": 10**6}),
        ("length", {"length": 10**8}),
        ("vocab", {"vocab": 3_000_000}),
    ):
        with pytest.raises(SpecError) as caught:
            simulate(SPEC.replace(**values), 0)
        assert caught.value.field == field


@pytest.mark.long
def test_the_budget_decides_between_dense_and_factored_tables():
    spec = Retrieval(vocab=2000, dim=32, length=8, samples=5000, test_samples=1000)
    assert choose_layout(spec).tables == "dense"
    assert choose_layout(spec, budget=2**27).tables == "dense"
    tight = choose_layout(spec, budget=2**25)
    assert tight.tables == "factored"
    assert sum(needed_bytes(spec, tight).values()) <= 2**25
    # Tables by pair of tokens have a 32-bit index: past that, no budget makes them dense.
    assert choose_layout(spec.replace(vocab=46_340), budget=2**61).tables == "dense"
    assert choose_layout(spec.replace(vocab=46_341), budget=2**61).tables == "factored"
    one, other = simulate(spec, 0), simulate(spec, 0, budget=2**25)
    for dense, factored in zip(one.steps, other.steps, strict=True):
        assert abs(dense.accuracy - factored.accuracy) <= 2 / spec.test_samples
        assert abs(dense.attention_accuracy - factored.attention_accuracy) <= 2 / spec.test_samples
        assert abs(dense.map_accuracy - factored.map_accuracy) <= 2 / spec.vocab


def test_a_budget_too_small_is_said():
    with pytest.raises(SpecError, match=r"^vocab: .* in the 10 kB of the memory budget, got 32"):
        simulate(SPEC, 0, budget=10**4)


@pytest.mark.long
@pytest.mark.parametrize(
    ("values", "budget"),
    [
        ({"vocab": 3000}, None),
        ({"vocab": 6000, "dim": 128}, 2**27),
        ({"length": 30_000}, None),
        ({"width": 20_000, "eta": 1.0}, None),
    ],
)
def test_the_memory_estimate_is_about_what_xla_plans_for(values: dict[str, Any], budget: int | None):
    """Enough, and not much more than enough: between one and eight times XLA's own figure."""
    spec = SPEC.replace(**values)
    layout = choose_layout(spec, budget=budget)
    assert layout.tables == ("dense" if budget is None else "factored")
    streams = random.streams(spec, 0)

    def trial(streams: dict[str, Any], count: Count) -> Any:
        frozen = draw_frozen(spec.program(), spec.embedding, streams)
        source = Source(streams["train"], frozen.permutation)
        rates = Rates(1.0, 1.0)
        learned = three_steps(spec.program(), layout, frozen, source, count, rates)
        return measure_steps(spec.program(), layout, frozen, source, learned, rates, count)

    plan = jax.jit(trial).lower(streams, Count.of(2000)).compile().memory_analysis()
    assert plan is not None
    needed = sum(needed_bytes(spec, layout).values())
    assert plan.temp_size_in_bytes < needed < 8 * plan.temp_size_in_bytes


def test_test_samples_up_to_the_last_are_looked_at():
    """A count near 2**32 must not wrap to no chunks at all."""
    most = jnp.uint32(2**32 - 1)

    def body(total: jax.Array, batch: Batch, live: jax.Array) -> jax.Array:
        return total + live.sum(dtype=jnp.uint32)

    source = Source(jnp.zeros(2, jnp.uint32), jnp.arange(2, dtype=jnp.uint32))
    span = Span(jnp.uint32(2**32 - 5000), most, most)
    counted = fold(body, jnp.uint32(0), source, span, length=1, chunk=4096, platform="cpu")
    assert int(counted) == 4999


def test_attention_that_did_not_move_is_not_a_result():
    still = Step("V2", 1.0, 1.0, 1.0, signal=0.0, std=0.0)
    assert judge(SPEC, [still], finite=True)[0] == "diverged"
    assert judge(SPEC.replace(length=1), [still], finite=True) == ("ok", "")


@pytest.mark.long
def test_memory_does_not_grow_with_the_samples():
    """Sixteen times the samples, 64 MB more of tokens: the process must not grow by a quarter."""
    script = textwrap.dedent("""
        import resource
        from mnemoscope import Retrieval, simulate
        def peak():
            return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        spec = Retrieval(vocab=64, dim=16, length=32, samples=2**15)
        simulate(spec, 0)
        before = peak()
        simulate(spec.replace(samples=2**19), 0)
        print(peak() - before)
    """)
    made = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert int(made.stdout) < 16 * 2**20
