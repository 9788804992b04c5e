"""The end of training in searches, on maps, from the command, and beside simulations that train on."""

import json
import re
from typing import Any

import numpy as np
import pytest

from mnemoscope import Retrieval, SpecError, critical_value, predict, predicted_diagram
from mnemoscope.experiments.critical import guess_from_theory
from mnemoscope.theory.critical import TRAINED_SEARCH, has_trained_law
from mnemoscope.theory.fast_predict import FINER
from mnemoscope.theory.predict import RECALLED
from mnemoscope.theory.spec_grid import SpecGrid
from mnemoscope.theory.trained.attention import FOUND, first_attention
from mnemoscope.theory.trained.fast import trained_accuracy, trained_surface
from mnemoscope.theory.trained.predict import accuracy_of, predict_trained
from mnemoscope.ui.cli import main

SPEC = Retrieval(vocab=400, dim=64, length=16, samples=4000)
ASKED = ["predict", "--vocab", "400", "--dim", "64", "--length", "16", "--trained"]


def drawn(count: int) -> list[Retrieval]:
    """Settings of every law and both models, with few samples and many."""
    random, specs = np.random.default_rng(5), []
    for _ in range(count):
        V, d = (int(2 ** random.uniform(*ends)) for ends in ((6, 13), (3.6, 10)))
        law = str(random.choice(["gaussian", "sphere", "orthonormal"]))
        values: dict[str, Any] = dict(vocab=V, dim=max(d, V) if law == "orthonormal" else d, length=8, embedding=law)
        values |= dict(samples=int(V * 2 ** random.uniform(-3, 6)), width=int(random.choice([0, 64, 900])))
        specs.append(Retrieval.read({**values, "activation": str(random.choice(["relu", "hermite2"]))}))
    return specs


def test_many_settings_at_once_are_as_one_by_one():
    for spec in drawn(60):
        assert trained_accuracy(spec) == pytest.approx(accuracy_of(spec), abs=1e-9), spec
    random = np.random.default_rng(6)
    spec = SPEC.replace(length=128)
    dims, samples = random.integers(12, 80, 200), np.exp(random.uniform(3, 11, 200)).round()
    map_ = trained_surface(SpecGrid.of(spec.model_dump(), dim=dims, samples=samples), FINER)
    regimes = set()
    for at, (d, N) in enumerate(zip(dims, samples, strict=True)):
        one = spec.replace(dim=int(d), samples=int(N))
        if abs(first_attention(one) - FOUND) < 0.05:
            continue  # on the border between trained attention and that of three steps
        told = predict_trained(one)
        assert map_.accuracy[at] == pytest.approx(told.accuracy, abs=0.04), one
        assert map_.attention_accuracy[at] == pytest.approx(told.attention_accuracy, abs=0.04), one
        assert map_.valid[at] == told.valid, one
        assert map_.regime[at] == told.regime or abs((told.accuracy or 0) - RECALLED) < 0.04 or told.regime != "recall"
        regimes.add(told.regime)
    assert regimes >= {"recall", "attention", "storage"}


def test_what_is_impossible_or_not_derived_has_no_number():
    frame = trained_surface(SpecGrid.of(SPEC.replace(dim=400, embedding="orthonormal").model_dump(), dim=[399, 400]))
    assert np.isnan(frame.accuracy).tolist() == [True, False]
    assert frame.regime.tolist() == ["none", "recall"]
    unknown = trained_surface(SpecGrid.of(SPEC.model_dump() | {"embedding": "mine"}))
    assert np.isnan(unknown.accuracy).all()
    assert not unknown.valid.any()


@pytest.mark.parametrize(
    "change", [{}, {"embedding": "sphere", "width": 256}, {"dim": 400, "embedding": "orthonormal"}]
)
def test_critical_values_are_where_the_target_is_crossed(change: dict[str, Any]):
    spec = SPEC.replace(**change)
    for axis in TRAINED_SEARCH:
        value = critical_value(spec, axis, 0.6, trained=True)
        assert value is not None, axis
        assert accuracy_of(spec.replace(**{axis: value})) >= 0.6, axis
        if spec.embedding == "orthonormal" and axis != "samples":
            assert value == 400  # no vocabulary is larger than the dimension
            continue
        beyond = value * 1.02 + 1 if axis == "vocab" else value * 0.98 - 1
        assert accuracy_of(spec.replace(**{axis: round(beyond)})) < 0.6, axis


def test_more_samples_may_overload_the_weights():
    """About a third of 400 facts fits; once all are seen, fewer of them are kept."""
    spec = SPEC.replace(dim=32, length=1)
    target = 0.9 * max(accuracy_of(spec.replace(samples=N)) for N in range(50, 400, 10))
    assert accuracy_of(spec.replace(samples=10_000)) < target
    value = critical_value(spec, "samples", target, trained=True)
    assert value is not None
    assert accuracy_of(spec.replace(samples=value)) >= target
    assert accuracy_of(spec.replace(samples=round(value * 0.98) - 1)) < target
    assert critical_value(spec, "samples", 0.9, trained=True) is None


def test_what_only_three_steps_have_is_refused():
    with pytest.raises(SpecError, match="expected one of samples, dim, vocab"):
        critical_value(SPEC, "length", trained=True)
    for change in ({"attention": "locked"}, {"eta": 1.0, "gamma": 2.0}):
        with pytest.raises(SpecError):
            critical_value(SPEC.replace(**change), "samples", trained=True)
    with pytest.raises(SpecError, match="first_gradient"):
        critical_value(SPEC, "samples", 0.5, "first_gradient", trained=True)
    with pytest.raises(SpecError, match="expected one of samples, dim, length"):
        critical_value(SPEC, "vocab")


def test_experiments_that_train_on_show_the_end_of_training():
    long = SPEC.replace(then="adamw", steps=300)
    assert has_trained_law(long)
    for axis in ("samples", "dim", "vocab"):
        assert guess_from_theory(long, axis, 0.5, "accuracy") == critical_value(SPEC, axis, trained=True)
    assert guess_from_theory(long, "length", 0.5, "accuracy") is None
    assert guess_from_theory(long, "samples", 0.5, "first_gradient") is None
    finite = long.replace(eta=1.0, gamma=2.0)
    assert guess_from_theory(finite, "samples", 0.5, "accuracy") is None
    sides = ("dim", [20, 64]), ("samples", [300, 4000])
    map_ = predicted_diagram(long, *sides)
    wanted = [[accuracy_of(SPEC.replace(dim=d, samples=N)) for d in (20, 64)] for N in (300, 4000)]
    assert map_.predicted == pytest.approx(np.array(wanted))
    assert np.isnan(predicted_diagram(finite, *sides).predicted).all()
    # Three steps themselves say nothing of what follows them.
    assert predict(long).accuracy is None


def test_the_command_tells(capsys: pytest.CaptureFixture[str]):
    assert main([*ASKED, "--samples", "4000", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    plain = predict(SPEC).as_dict()
    assert {*plain, "binding", "critical"} <= set(data)
    assert set(data["critical"]) == {"samples", "dim", "vocab"}
    assert data["accuracy"] == pytest.approx(accuracy_of(SPEC))
    assert main([*ASKED, "--samples", "600"]) == 0
    text = capsys.readouterr().out
    assert "binding             unseen: many tokens were never the informative one" in text
    assert re.search(r"the weights hold about \d{3} facts; 311 are asked of them", text)
    for word in ("95 % of seeds", "attention accuracy  1.000", "load", "steps", "the largest V that keeps it"):
        assert word in text
    assert max(map(len, text.splitlines())) <= 80


def test_the_command_refuses_what_clashes(capsys: pytest.CaptureFixture[str]):
    for words, said in (
        (["--eta", "2", "--gamma", "3"], "--eta: expected 'limit' for a trained model"),
        (["--attention", "locked"], "--attention: expected learned for a trained model"),
        (["--gamma", "3"], "--gamma: expected 'limit'"),
    ):
        assert main([*ASKED, "--samples", "4000", *words]) == 2
        lines = capsys.readouterr().err.splitlines()
        assert len(lines) == 1
        assert said in lines[0]
