"""Models and tasks of one's own: trained, searched, kept by content, and sent to workers."""

import json
import os
import re
import signal
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import own_models
import patience
import pytest
from own_models import Bag

import mnemoscope as mn
from mnemoscope.engine.record import Trial
from mnemoscope.engine.words import Words
from mnemoscope.experiments.axes import Axis
from mnemoscope.experiments.estimate.estimate import Estimate
from mnemoscope.experiments.estimate.limits import Limits
from mnemoscope.experiments.fit import settings
from mnemoscope.experiments.own_capacity import OwnCapacity
from mnemoscope.experiments.search import Found
from mnemoscope.experiments.sweep import Tally, ThisProcess, sweep
from mnemoscope.experiments.workers import cluster
from mnemoscope.experiments.workers.cluster import FarWorkers, open_workers
from mnemoscope.spec import LETTERS
from mnemoscope.spec.noisy import Noisy
from mnemoscope.spec.summary import brief
from mnemoscope.store.trials import Store
from mnemoscope.tasks.own import Lookup
from mnemoscope.training.own import OWN, step_of
from mnemoscope.ui.cli import main

SPEC = own_models.spec()


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(tmp_path / "s.db") as opened:
        yield opened


def test_a_title_tells_places_and_sizes_and_no_hashes():
    told = brief(SPEC)
    assert "@" not in told
    assert "model=own_models:Bag" in told
    assert all(f"{name}={value}" in told for name, value in SPEC.task_values if name not in LETTERS)
    assert "own_models" not in brief(SPEC, without=("model", "task"))


def test_words_depend_on_their_index_alone():
    words = Words(jnp.asarray([3, 4], jnp.uint32))
    rows = [np.asarray(mn.below(words, index, [7, 2, 100])) for index in range(200)]
    together = np.asarray(jax.vmap(lambda index: mn.below(words, index, [7, 2, 100]))(jnp.arange(200)))
    assert np.array_equal(together, rows)
    assert [*together.max(axis=0)] == pytest.approx([6, 1, 99], abs=3)
    assert (together.min(axis=0) >= 0).all()
    # Another name is another stream, and so is every name within it.
    streams = [words, words.named("a"), words.named("b"), words.named("a").named("b")]
    drawn = [tuple(np.asarray(mn.below(stream, 0, [2**30] * 2))) for stream in streams]
    assert len(set(drawn)) == 4
    shares = np.asarray(mn.uniform(words, 5, 1000))
    assert 0 <= shares.min() < shares.max() < 1
    assert abs(shares.mean() - 0.5) < 4 / np.sqrt(12 * 1000)
    tall, short = mn.normal(words, 6, 5), mn.normal(words, 4, 5)
    assert np.array_equal(tall[:4], short)


def test_a_training_is_the_loop_that_it_says():
    """Steps in plain JAX, against the kind's own first check."""
    spec = own_models.spec(max_steps=32, target=1.0, optimiser=optax.sgd(0.5))
    (trial,) = OWN.run([(spec, 3)], "cpu")
    task, model = spec.build("task"), spec.build("model")
    keys = OWN.arguments([(spec, 3)])
    words = Words(keys[0][0])
    params = model.init(jax.random.wrap_key_data(keys[1][0], impl="threefry2x32"), task)

    @jax.jit
    @jax.value_and_grad
    def step(params: Any, index: Any) -> Any:
        tokens, label, _ = jax.vmap(lambda at: task.sample(words, at))(index)
        log_p = jax.nn.log_softmax(model.logits(params, tokens))
        return -jnp.mean(log_p[jnp.arange(len(label)), label])

    last = 0.0
    for first in range(0, 32 * 32, 32):
        last, gradient = step(params, jnp.arange(first, first + 32))
        params = jax.tree.map(lambda p, g: p - 0.5 * g, params, gradient)
    assert trial.metrics["loss"] == pytest.approx(float(last), rel=1e-3)
    assert (trial.metrics["steps"], trial.spec.path, trial.as_dict()["path"]) == (32, "autodiff", "autodiff")
    assert trial.attention_accuracy == 1.0
    assert spec.parameters == 4 * 16 * 8 + 8 * 4


def test_sizes_and_numbers_are_varied_by_name():
    varied = SPEC.vary(dim=4, vocab="32", batch=16)
    assert (varied.build("model"), varied.build("task"), varied.batch) == (Bag(dim=4), Lookup(vocab=32), 16)
    assert varied.model == SPEC.model
    assert mn.Own.read(json.loads(varied.model_dump_json())) == varied
    assert (SPEC.rises_along("vocab"), SPEC.rises_along("dim")) == (False, True)
    assert step_of(varied).products < step_of(SPEC).products
    with pytest.raises(
        mn.SpecError, match=r"^along: expected one of dim, labels, length, vocab, lr, .*got 'vocb'; did"
    ):
        SPEC.vary(vocb=3)
    with pytest.raises(mn.SpecError, match=r"^vocab: expected a whole number of at least 0"):
        SPEC.vary(vocab=2.5)


TRAINING = {"batch": 32, "max_steps": 64, "test_samples": 128, "lr": 0.1}


@pytest.mark.long
def test_capacity_critical_and_diagram_take_a_model(store: Store):
    how = {"seeds": 2, "most_seeds": 2, "resolution": 0.5, "store": store, "ends": (16, 256), "training": TRAINING}
    found = mn.capacity(Bag(dim=2), Lookup(), along="vocab", target=0.95, **how)
    assert found.status in ("found", "unresolved")
    assert all(limit is not None and 16 < limit < 256 for limit in found.limits.each)
    assert found.as_dict()["path"] == "autodiff"
    again = mn.capacity(Bag(dim=2), Lookup(), along="vocab", target=0.95, **how)
    assert again.limits == found.limits
    assert store.count("kind = 'own'") == len(found.trials)
    spec = found.spec.replace(target=1.0)
    crossing = mn.critical(spec, "vocab", low=16, high=1024, target=0.7, most_seeds=3, tolerance=1.0, store=store)
    assert crossing.status in ("found", "unresolved")
    assert crossing.predicted is None
    assert crossing.tokens == sum(int(trial.metrics["steps"] or 0) * 32 * 4 for trial in crossing.trials)
    diagram = mn.phase_diagram(spec, x=("dim", [2, 4]), y=("vocab", [16, 1024]), seeds=1, store=store)
    assert diagram.accuracy[0, 0] > diagram.accuracy[1, 0]
    assert diagram.regimes == [["none", "none"], ["none", "none"]]
    for axis in ("nothing", "lr"):
        with pytest.raises(mn.SpecError, match=r"^along: expected a whole number out of dim, labels"):
            mn.capacity(Bag(), Lookup(), along=axis, store=store)
    with pytest.raises(mn.SpecError, match=r"^range: expected LOW:HIGH, since theory has no guess here"):
        mn.critical(spec, "vocab", store=store)
    assert "own is not derived" in mn.predict(spec).notes[0]


@pytest.mark.parametrize("name", ["gd", "sgd", "adam", pytest.param("muon", marks=pytest.mark.long), "sign"])
def test_an_optimiser_by_name_is_that_of_optax(name: str):
    """At the rate `lr`, as the same transformation given as an object."""
    made = {"gd": optax.sgd, "sgd": optax.sgd, "adam": optax.adam, "sign": optax.sign_sgd, "muon": optax.contrib.muon}
    numbers = {"max_steps": 32, "batch": 32, "test_samples": 128, "target": 1.0}
    named = own_models.spec(**numbers, optimiser=name, lr=0.02)
    given = own_models.spec(**numbers, optimiser=made[name](0.02))
    assert named.optimiser == name
    assert named.id not in (given.id, own_models.spec(**numbers, lr=0.02).id, named.replace(lr=0.03).id)
    ours, theirs = (mn.simulate(spec, 0) for spec in (named, given))
    if name != "muon":  # ours takes every matrix of a stack by itself, optax a stack as Adam would
        assert ours.metrics["loss"] == pytest.approx(theirs.metrics["loss"], rel=1e-5)
    still = mn.simulate(named.replace(lr=1e-8), 0)
    assert (ours.metrics["loss"] or 0.0) < (still.metrics["loss"] or 0.0)


def test_the_default_optimiser_renames_nothing():
    assert own_models.spec().id == own_models.spec(optimiser="adamw").id
    assert "optimiser" not in own_models.spec(optimiser="adamw").canonical_values()


def test_a_grid_for_exponents_varies_sizes_of_a_model():
    specs = settings(SPEC, [Axis("dim", (2, 4)), Axis("labels", (2, 3))], "vocab")
    assert [(one.value_of("dim"), one.value_of("labels")) for one in specs] == [(2, 2), (2, 3), (4, 2), (4, 3)]
    with pytest.raises(mn.SpecError, match=r"^axis: expected an axis that is counted, got 'samples'$"):
        settings(SPEC, [Axis("samples", (2, 4))], "vocab")


@pytest.mark.longest
def test_exponents_of_a_model(store: Store):
    """A table of random vectors holds more facts in more dimensions."""
    spec = own_models.spec(**TRAINING, model=Bag(dim=2), target=1.0)
    how = {"ranges": [(64, 2048)] * 3, "most_seeds": 3, "tolerance": 1.0, "store": store}
    law = mn.fit(spec, [("dim", [2, 3, 4])], "vocab", target=0.7, **how)
    assert (law.status, len(law.found), law.predicted, law.leading) == ("found", 3, None, None)
    assert law.law.exponents[0].value > 0


def test_trials_of_all_kinds_in_one_call():
    other = mn.Retrieval(vocab=16, dim=8, length=4, samples=40, test_samples=64)
    trials = mn.simulate_many([(SPEC, 0), (other, 0), (SPEC, 1)], device="cpu")
    assert [trial.spec for trial in trials] == [SPEC, other, SPEC]
    alone = mn.simulate(SPEC, 1, device="cpu")
    assert (alone.metrics, alone.curve) == (trials[2].metrics, trials[2].curve)
    assert mn.run(SPEC, 2, store=None).trials[1].accuracy == alone.accuracy


def test_what_cannot_be_hashed_is_run_and_not_kept(store: Store, caplog: pytest.LogCaptureFixture):
    lock = threading.Lock()

    def logits(params: Any, tokens: Any) -> Any:
        with lock:
            return params[tokens[:, 0]]

    model = mn.Model(lambda key, task: jnp.zeros((task.vocab, task.labels)), logits)
    spec = own_models.spec(model=model)
    assert not spec.hashed
    assert mn.run(spec, 2, store=store).finished
    assert store.count() == 0
    (line,) = {record.getMessage() for record in caplog.records}
    assert line.endswith(": expected source and values that can be hashed, got a lock: its trials are not kept")


@dataclass(frozen=True)
class Wrong:
    """A task and a model that break one rule each."""

    rule: str
    vocab: int = 4
    labels: int = 4
    length: int = 2

    def sample(self, words: Words, index: Any) -> Any:
        if self.rule == "raises":
            raise KeyError("no sample")
        tokens = mn.below(words, index, [self.vocab] * (3 if self.rule == "long" else 2))
        return tokens + (9 if self.rule == "beyond" else 0), tokens[0]

    def init(self, key: Any, task: Any) -> Any:
        return {"whole": jnp.arange(3)} if self.rule == "untrained" else jnp.zeros((4, 4))

    def logits(self, params: Any, tokens: Any) -> Any:
        made = params[tokens[:, 0]]
        return made[:, :3] if self.rule == "narrow" else made * jnp.nan if self.rule == "nan" else made


@pytest.mark.parametrize(
    ("rule", "line"),
    [
        ("raises", r"task: expected tokens and a label from .*Wrong, got KeyError: 'no sample'"),
        ("long", r"task: expected 2 tokens, a label and perhaps a position from .*Wrong, got shapes \(3,\), \(\)"),
        ("beyond", r"task: expected tokens below 4 from .*Wrong, got \d+"),
        ("narrow", r"model: expected logits of shape \(8, 4\) from .*Wrong, got \(8, 3\)"),
        ("nan", r"model: expected finite logits from .*Wrong, got 32 of 32 that are not"),
        ("untrained", r"model: expected parameters to train from .*Wrong.init, got none"),
    ],
)
def test_an_object_that_breaks_a_rule_is_one_line(rule: str, line: str):
    with pytest.raises(mn.SpecError) as told:  # to which JAX adds notes
        mn.simulate(mn.Own(**{"model": Wrong(rule), "task": Wrong(rule), "batch": 8}), 0, device="cpu")
    assert re.fullmatch(line, str(told.value))


@pytest.mark.parametrize(
    ("what", "line"),
    [
        ({"model": 3}, r"^model: expected an object with init, logits, or what makes one, got a int$"),
        ({"task": "nothing"}, r"^task: expected MODULE:OBJECT, got 'nothing'$"),
        (
            {"task": dict},
            r"^task: expected a task with vocab, labels, length, sample from builtins:dict, got no vocab$",
        ),
        ({"optimiser": 0.1}, r"^optimiser: expected a transformation with init and update, got a float$"),
        ({"max_steps": 2**20, "batch": 2**20}, r"^max_steps: expected at most 2\^31 samples in all"),
    ],
)
def test_what_is_no_model_task_or_optimiser(what: dict[str, Any], line: str):
    with pytest.raises(mn.SpecError, match=line):
        own_models.spec(**what)


def noisy(x: float, seed: int) -> float:
    draw = np.random.default_rng([seed, int(1000 * x)])
    return float(np.clip(1 / (1 + (30 / x) ** 4) + 0.05 * draw.standard_normal(), 0, 1))


def test_a_search_for_any_noisy_function(store: Store):
    found = mn.search(noisy, 5, 300, 0.5, store=store)
    assert found.status == "found"
    assert found.low is not None
    assert found.high is not None
    assert found.low < 30 < found.high
    assert found.high / found.low < 1.25
    kept = store.count()
    assert mn.search(noisy, 5, 300, 0.5, store=store).as_dict() == found.as_dict()
    assert store.count() == kept == len(found.trials)
    real = mn.search(lambda x, seed: noisy(100 * x, seed), 0.05, 3.0, store=store)
    assert real.estimate == pytest.approx(0.3, rel=0.15)
    falling = mn.search(lambda x, seed: 4 - 4 * noisy(x, seed), 5, 300, 2, rising=False, bounds=(0, 4), store=store)
    assert falling.estimate == pytest.approx(30, rel=0.15)
    assert mn.search(noisy, 100, 300, 0.5, store=store).status == "below-range"


@pytest.mark.parametrize(
    ("more", "line"),
    [
        ({"target": 1.5}, r"^target: expected a number between 0 and 1, got 1.5$"),
        ({"low": 0}, r"^range: expected 0 < low < high, got 0:300$"),
        (
            {"bounds": (0, 0.5), "target": 0.4},
            r"^function: expected answers from .*:noisy, got expected a number from 0",
        ),
        ({"function": lambda x: x}, r"^function: expected answers from .*<lambda>, got TypeError: "),
    ],
)
def test_what_cannot_be_searched(more: dict[str, Any], line: str, store: Store):
    given = {"function": noisy, "low": 250, "high": 300, **more}
    with pytest.raises(mn.SpecError, match=line):
        mn.search(**given, store=store)


def table(store: Store) -> list[tuple[object, ...]]:
    """All that two sweeps must agree in."""
    return [(t.spec, t.seed, t.status, t.metrics, t.curve) for t in store.find()]


@pytest.mark.long
def test_a_killed_worker_loses_no_training(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """200 trials on two processes, one killed: nothing lost, nothing twice, the table of a serial run."""
    monkeypatch.setattr(cluster, "LOST_SECONDS", patience.SECONDS)
    count, killed = 200, list[int]()
    with open_workers("local:2") as workers, Store(tmp_path / "far.db") as far, Store(tmp_path / "near.db") as near:
        assert isinstance(workers, FarWorkers)
        client = workers.client

        def kill(tally: Tally) -> None:
            if tally.done and not killed:
                assert tally.done < count
                killed.append(next(iter(client.run(os.getpid).values())))
                os.kill(killed[0], signal.SIGKILL)

        tally = sweep(own_models.jobs(count), far, workers, kill)
        assert killed
        assert (tally.done, tally.failed) == (count, 0)
        sweep(own_models.jobs(count), near, ThisProcess("cpu"))
        assert len(table(far)) == count
        assert table(far) == table(near)
        # An object of no module travels; one that cannot is one line.
        scale = 0.5

        def init(key: Any, task: Any) -> Any:
            return scale * jax.random.normal(key, (task.vocab, task.labels))

        sent = own_models.spec(model=mn.Model(init, lambda params, tokens: params[tokens[:, 0]]))
        assert sweep([(sent, 0)], far, workers).failed == 0
        lock = threading.Lock()

        def locked(key: Any, task: Any) -> Any:
            return init(key, task) if lock else None

        stuck = own_models.spec(model=mn.Model(locked, lambda params, tokens: params[tokens[:, 0]]))
        with pytest.raises(
            mn.SpecError, match=r"^cluster: expected settings that can be sent to workers, got TypeError: c"
        ):
            sweep([(stuck, 0)], far, workers)


@pytest.mark.long
def test_commands_run_check_and_search_a_model(capsys: pytest.CaptureFixture[str], tmp_path: Path):
    words = ["--model", "own_models:Bag", "--task", "mnemoscope.tasks.own:Lookup", "--store", str(tmp_path / "s.db")]
    small = ["--set", "batch=32", "--set", "max_steps=64", "--set", "test_samples=128", "--seeds", "2", "--json"]
    assert main(["run", *words, *small, "--set", "dim=4"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["path"] == "autodiff"
    assert ["dim", 4] in told["spec"]["model_values"]
    assert len(told["trials"]) == 2
    assert main(["capacity", *words, *small, "--along", "vocab", "--range", "4:6", "--target", "0.3"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert {"capacity", "low", "high", "status", "each_seed", "along", "parameters"} <= told.keys()
    assert main(["check", "own_models:Bag", "--json"]) == 0
    assert all(check["passed"] for check in json.loads(capsys.readouterr().out)["checks"])


@pytest.mark.long
def test_commands_search_draw_and_fit_a_model_as_python_does(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, store: Store
):
    words = ["--model", "own_models:Bag", "--task", "mnemoscope.tasks.own:Lookup", "--store", str(store.path)]
    small = [word for size in ("batch=32", "max_steps=32", "test_samples=128", "lr=0.1") for word in ("--set", size)]
    words += [*small, "--set", "target=1", "--json"]
    numbers: dict[str, Any] = {"batch": 32, "max_steps": 32, "test_samples": 128, "lr": 0.1, "target": 1.0}
    spec = mn.Own(model=own_models.Bag(), task=Lookup(), **numbers)
    search = ["--target", "0.7", "--seeds", "3", "--tolerance", "1", "--range", "16:256"]
    how: dict[str, Any] = {"target": 0.7, "most_seeds": 3, "tolerance": 1.0, "store": store}

    def said(*more: str) -> Any:
        assert main([*more, *words]) == 0
        return json.loads(capsys.readouterr().out)

    told = said("critical", "--along", "vocab", "--set", "dim=2", *search)
    python = mn.critical(spec.vary(dim=2), "vocab", low=16, high=256, **how)
    assert told == json.loads(json.dumps(python.as_dict()))
    assert told["predicted"] is None
    told = said("phase", "--x", "dim=2,4", "--y", "vocab=16:256:2", "--seeds", "1")
    diagram = mn.phase_diagram(spec, x=("dim", [2, 4]), y=("vocab", [16, 256]), seeds=1, store=store)
    assert told["accuracy"] == diagram.accuracy.tolist()
    told = said("fit", "--along", "vocab", "--axis", "dim=2,3,4", *search)
    law = mn.fit(spec, [("dim", [2, 3, 4])], "vocab", ranges=[(16, 256)] * 3, **how)
    assert told["exponents"] == json.loads(json.dumps(law.as_dict()["exponents"]))
    # For people, and as pictures, too.
    words.remove("--json")
    for command, file in (
        (["phase", "--x", "dim=2,4", "--y", "vocab=16:256:2", "--seeds", "1"], "phase.png"),
        (["fit", "--along", "vocab", "--axis", "dim=2,3,4", *search], "fit.png"),
    ):
        assert main([*command, *words, "--out", str(tmp_path / file)]) == 0
        assert (tmp_path / file).stat().st_size > 1000
    assert main(["critical", "--along", "vocab", "--set", "dim=2", *search, *words]) == 0
    assert "own_models:Bag on mnemoscope.tasks.own:Lookup" in capsys.readouterr().out
    assert [row["vocab"] for row in python.records()] == sorted(row["vocab"] for row in python.records())


OWN_WORDS = ["--model", "own_models:Bag", "--task", "mnemoscope.tasks.own:Lookup"]


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["critical", *OWN_WORDS, "--along", "vocb", "--range", "4:9"], "--along: expected one of"),
        (["critical", *OWN_WORDS, "--along", "vocab"], "--range: expected LOW:HIGH, since theory has no guess here"),
        (["critical", *OWN_WORDS, "--along", "vocab", "--dim", "3"], "--dim: expected it without --model and --task"),
        (["critical", "--along", "facts"], "--along: expected one of vocab, dim, length, samples, width, got 'facts'"),
        (["phase", *OWN_WORDS, "--x", "dm=2,4", "--y", "vocab=16,32"], "--x: expected an axis such as dim=32:256:8"),
        (["phase", *OWN_WORDS, "--x", "dim=2.5,4", "--y", "vocab=16,32"], "--x: dim: expected a whole number"),
        (
            ["fit", *OWN_WORDS, "--along", "vocab", "--axis", "samples=2,4"],
            "--axis: expected an axis such as dim=32:256:8",
        ),
        (
            ["run", *OWN_WORDS, "--optimiser", "muno"],
            "--optimiser: expected one of gd, sgd, adam, adamw, muon, sign or MODULE:OBJECT, got 'muno'; did you mean",
        ),
        (["run", "--model", "own_models:Bag"], "--task: expected MODULE:OBJECT, got none"),
        (
            ["run", "--model", "own_models:Bag", "--task", "own_models:Bag"],
            "--task: expected a task with vocab, labels",
        ),
        (["run", "--model", "own_models:Bag", "--task", "x:y", "--vocab", "3"], "--vocab: expected it without --model"),
        (["capacity", "--along", "facts"], "--model: expected MODULE:OBJECT, got none"),
        (
            ["check", "own_models:Bg"],
            "OBJECT: expected an object of own_models, got 'own_models:Bg'; did you mean 'Bag'",
        ),
    ],
)
def test_bad_words_are_one_line(words: list[str], line: str, capsys: pytest.CaptureFixture[str]):
    assert main(words) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"mnemoscope: {line}")
    assert said.count("\n") == 1


def test_results_show_themselves_in_one_line_and_as_a_table():
    spec = own_models.spec()
    trials = tuple(Trial(spec.vary(vocab=V), seed, "ok") for V in (8, 16) for seed in range(2))
    limits = Limits(Estimate("found", 12.0, 10.0, 14.0), (11.0, None))
    capacity = OwnCapacity(limits.answer, spec, "vocab", limits, trials)
    assert repr(capacity) == (
        f"OwnCapacity(own_models:Bag on mnemoscope.tasks.own:Lookup: status found, vocab 12.0 [10.0, 14.0], "
        f"target {spec.target:g}, parameters {spec.parameters}, trainings 4)"
    )
    assert dict(capacity.to_xarray().sizes) == {"vocab": 2, "seed": 2}
    answers = {5: (0.1, 0.2), 300: (0.9, 1.0)}
    places = [Noisy(**{"function": noisy, "x": x}) for x in answers]
    found = Found(
        Estimate("found", 30.0, 28.0, 32.0),
        places[0].function,
        0.5,
        tuple(
            Trial(place, seed, "ok", metrics={"answer": answer})
            for place in places
            for seed, answer in enumerate(answers[int(place.x)])
        ),
    )
    assert repr(found).endswith(":noisy at 0.5: status found, x 30.0 [28.0, 32.0], answers 4)")
    assert found.to_frame().groupby("x").answer.mean().tolist() == pytest.approx([0.15, 0.95])
    for result, cells in ((capacity, ("vocab", "11.0", "–")), (found, ("mean answer", "0.150", "0.950"))):
        assert len(repr(result)) < 200
        page = result._repr_html_()
        assert page.count("<table>") == 2
        assert all(f">{cell}</t" in page for cell in cells)
