"""Theory against simulation, and its parts against plain sums. Seeds are fixed.

Bounds: four standard errors of the simulated mean, plus what the approximation is allowed, which
is named beside each.
"""

import json
import math
from typing import Any, Literal, get_args

import jax.numpy as jnp
import numpy as np
import pytest

from mnemoscope import Retrieval, SpecError, critical_value, predict, simulate, simulate_many
from mnemoscope.experiments.noise_terms import measure_terms
from mnemoscope.models.activations import named
from mnemoscope.spec import Activation
from mnemoscope.theory.activation import apply, coefficients
from mnemoscope.theory.attention import attention_terms
from mnemoscope.theory.counts import trigger_weight
from mnemoscope.theory.critical import Axis
from mnemoscope.theory.kernel import kernel
from mnemoscope.theory.mlp_gains import Gains
from mnemoscope.theory.predict import REGIMES
from mnemoscope.theory.recall import map_accuracy
from mnemoscope.theory.registry import gram_moments
from mnemoscope.ui.cli import main

SMALL = ["--vocab", "128", "--dim", "40", "--length", "16", "--samples", "2000"]
# Settings of every regime, in two shapes so that few programs are compiled.
SETTINGS: list[dict[str, Any]] = [
    dict(length=16, dim=100, samples=600),  # unseen tokens
    dict(length=16, dim=100, samples=20_000),  # recall
    dict(length=16, dim=70, samples=3000),  # interference
    dict(length=128, dim=100, samples=1500),  # mean bias
    dict(length=128, dim=70, samples=8000),
    dict(length=128, dim=100, samples=20_000),
]


def relative_error(values: list[float], expected: float) -> tuple[float, float]:
    """How far the mean is from what was expected, and its standard error, over what was."""
    error = float(np.std(values, ddof=1)) / math.sqrt(len(values))
    return abs(float(np.mean(values)) - expected) / expected, error / expected


@pytest.mark.parametrize("length", [16, 128])
@pytest.mark.long
def test_signal_noise_and_accuracy_agree_with_simulation(length: int):
    settings = [values for values in SETTINGS if values["length"] == length]
    specs = [Retrieval.read(dict(vocab=256, test_samples=2048, **values)) for values in settings]
    trials = simulate_many([(spec, seed) for spec in specs for seed in range(24)])
    for at, spec in enumerate(specs):
        ends = [trial.steps[-1] for trial in trials[24 * at : 24 * (at + 1)]]
        terms, told = attention_terms(spec), predict(spec)
        off, error = relative_error([end.signal or 0 for end in ends], terms.signal)
        assert off <= 4 * error + 0.05, spec
        total = terms.signal**2 * sum(terms.terms.values())
        off, error = relative_error([(end.std or 0) ** 2 for end in ends], total)
        # A variance: twice the 5 % of its root, and covariances that theory leaves out.
        assert off <= 4 * error + 0.15, spec
        for name, allowed in (("accuracy", 0.03), ("attention_accuracy", 0.03)):
            values = [getattr(end, name) for end in ends]
            error = float(np.std(values, ddof=1)) / math.sqrt(len(values))
            assert abs(float(np.mean(values)) - getattr(told, name)) <= 4 * error + allowed, spec


def test_the_trigger_weight_is_its_mean_over_samples():
    """(A3) to (A5) against tau of drawn samples, with A and B at their means."""
    V, L, N = 12, 5, 40
    rng = np.random.default_rng(3)
    drawn = []
    for _ in range(4000):
        tokens, position = rng.integers(0, V, (N, L)), rng.integers(0, L, N)
        label = tokens[np.arange(N), position]
        K = np.zeros((V, V))
        np.add.at(K, (np.repeat(label, L), tokens.ravel()), 1)
        Kc = K - K.mean(axis=0)
        r = Kc[label[:, None], tokens]
        drawn.append(float((r[np.arange(N), position] - r.mean(axis=1)).sum()))
    expected = trigger_weight(Retrieval(vocab=V, dim=4, length=L, samples=N), Gains())
    off, error = relative_error(drawn, expected)
    assert off <= 4 * error


@pytest.mark.parametrize("law", ["gaussian", "sphere"])
def test_the_moments_of_the_overlaps(law: Literal["gaussian", "sphere"]):
    """(A7) and (A8), with the rows' mean taken off."""
    V, d = 120, 40
    rng = np.random.default_rng(4)
    third, fourth = [], []
    for _ in range(400):
        Z = rng.normal(size=(V, d)) / math.sqrt(d)
        if law == "sphere":
            Z = Z / np.linalg.norm(Z, axis=1, keepdims=True)
        Z = Z - Z.mean(axis=0)
        W = np.linalg.matrix_power(Z.T @ Z, 3)
        third.append(float(np.trace(W)) / d)
        fourth.append(float(np.trace(W @ Z.T @ Z)) / V)
    told = gram_moments(Retrieval(vocab=V, dim=d, length=8, samples=1000, embedding=law))
    # On the sphere the mean that is taken off is not quite a row of the same law.
    allowed = 0.0 if law == "gaussian" else 0.01
    for drawn, expected in ((third, told.third), (fourth, told.fourth)):
        off, error = relative_error(drawn, expected)
        assert off <= 4 * error + allowed


@pytest.mark.parametrize("embedding", ["gaussian", "sphere"])
def test_every_noise_of_attention_alone(embedding: Literal["gaussian", "sphere"]):
    spec = Retrieval(vocab=256, dim=64, length=32, samples=5000, embedding=embedding)
    measured = [measure_terms(spec, seed) for seed in range(24)]
    told = attention_terms(spec)
    weight = told.signal * (spec.samples * spec.length) ** 2
    off, error = relative_error([one["signal"] for one in measured], weight)
    assert off <= 4 * error
    for name, term in told.terms.items():
        off, error = relative_error([one[name] for one in measured], term * weight**2)
        assert off <= 4 * error + 0.10, name  # a variance: twice the 5 % of its root


@pytest.mark.long
def test_the_noises_add_up_to_the_scores():
    """The cut of the second step into parts is exact: together they are the scores."""
    spec = Retrieval(vocab=128, dim=32, length=16, samples=3000)
    end = next(step for step in simulate(spec, 5, precision="float64").steps if step.name == "W1")
    parts = measure_terms(spec, 5)
    unit = (spec.samples * spec.length) ** 2
    assert end.std is not None
    assert math.sqrt(parts["total"]) / unit == pytest.approx(end.std, rel=1e-9)


@pytest.mark.long
@pytest.mark.parametrize(("activation", "length"), [("hermite2", 4), ("hermite3", 16), ("relu", 16)])
def test_the_mlp_agrees_with_simulation(activation: str, length: int):
    specs = [
        Retrieval.read(
            dict(vocab=128, dim=32, length=length, samples=N, width=m, activation=activation, test_samples=1024)
        )
        for N, m in ((600, 512), (6000, 128), (6000, 512))
    ]
    trials = simulate_many([(spec, seed) for spec in specs for seed in range(10)])
    for at, spec in enumerate(specs):
        values = [trial.accuracy or 0.0 for trial in trials[10 * at : 10 * (at + 1)]]
        error = float(np.std(values, ddof=1)) / math.sqrt(len(values))
        told = predict(spec).accuracy
        assert told is not None
        assert abs(float(np.mean(values)) - told) <= 4 * error + 0.05, spec


def test_hermite_coefficients():
    """(E1): the pure polynomials have one coefficient, ReLU the known ones, at any norm."""
    one = np.array([1.0])
    assert coefficients("hermite3", one, 6)[0] == pytest.approx([0, 0, 0, 1, 0, 0], abs=1e-9)
    assert coefficients("hermite2", one, 4)[0] == pytest.approx([0, 0, 1, 0], abs=1e-9)
    c = coefficients("relu", np.array([4.0]), 3)[0]
    assert c == pytest.approx([2 / math.sqrt(2 * math.pi), 1, 1 / math.sqrt(math.pi)], abs=1e-5)
    for name in get_args(Activation):  # theory's activations are the simulator's
        a = np.linspace(-3, 3, 25)
        assert apply(name, a) == pytest.approx(np.asarray(named(name)(jnp.asarray(a))), abs=1e-5)


def test_the_kernel_is_that_of_many_hidden_units():
    spec = Retrieval(vocab=100, dim=24, length=8, samples=1000, width=256, activation="hermite3")
    rng = np.random.default_rng(7)
    own, mean, square = [], [], []
    for _ in range(60):
        Z = rng.normal(size=(300, 24)) / math.sqrt(24)
        f = apply("hermite3", Z @ rng.normal(size=(24, 256)))
        K = f @ f.T / 256
        own.append(float(np.diag(K).mean()))
        off = K[~np.eye(300, dtype=bool)]
        mean.append(float(off.mean()))
        square.append(float((off**2).mean()))
    told = kernel(spec)
    off, error = relative_error(own, float(told.weight @ told.own))
    assert off <= 4 * error + 0.03  # three nodes for a squared norm, cubed
    assert abs(np.mean(mean)) <= 4 * float(np.std(mean)) / math.sqrt(60)
    off, error = relative_error(square, float(told.weight @ (told.variance + told.mean**2)))
    assert off <= 4 * error + 0.15


@pytest.mark.parametrize(
    ("V", "d", "per_label", "more"),
    [
        (131, 59, 200, {}),
        (279, 73, 3, {}),
        (384, 158, 1, {}),
        (300, 80, 50, {"embedding": "sphere"}),
        (256, 64, 80, {"trigger": "additive"}),
    ],
)
def test_the_memory_alone_agrees_with_a_plain_one(V: int, d: int, per_label: int, more: dict[str, Any]):
    """Hebbian pairs written and read in plain NumPy, attention perfect."""
    rng = np.random.default_rng(5)
    shares = []
    for _ in range(60):
        U, Z = rng.normal(size=(2, V, d)) / math.sqrt(d)
        if more.get("embedding") == "sphere":
            U, Z = (M / np.linalg.norm(M, axis=1, keepdims=True) for M in (U, Z))
        if more.get("trigger") == "additive":
            Z = Z + rng.normal(size=d) / math.sqrt(d)
        n = rng.multinomial(V * per_label, np.full(V, 1 / V))
        V2 = (U - U.mean(axis=0)).T @ (n[:, None] * Z)
        shares.append(float(np.mean((Z @ V2.T @ U.T).argmax(axis=1) == np.arange(V))))
    spec = Retrieval.read(dict(vocab=V, dim=d, length=1, samples=V * per_label, **more))
    told = float(map_accuracy(spec, np.ones((1, 1)), np.zeros((1, 1)), np.ones(1))[0, 0])
    error = float(np.std(shares, ddof=1)) / math.sqrt(len(shares))
    assert abs(float(np.mean(shares)) - told) <= 4 * error + 0.02


def test_orthonormal_embeddings_name_what_was_seen():
    spec = Retrieval(vocab=128, dim=160, length=8, samples=200, embedding="orthonormal")
    told = predict(spec)
    seen = 1 - math.exp(-200 / 128) * (1 - 1 / 128)
    assert told.accuracy == pytest.approx(seen, abs=0.01)
    assert told.regime == "unseen"
    assert told.terms["interference"] == 0


def test_regimes_are_named():
    def regime(**values: int) -> str:
        return predict(Retrieval.read(dict(vocab=512, **values))).regime

    assert regime(dim=256, length=16, samples=50_000) == "recall"
    assert regime(dim=64, length=16, samples=50_000) == "interference"
    assert regime(dim=256, length=16, samples=300) == "unseen"
    assert regime(dim=64, length=256, samples=4000) == "mean_bias"
    assert all(REGIMES.values())


def test_critical_values_are_where_the_target_is_crossed():
    spec = Retrieval(vocab=256, dim=100, length=64, samples=4000)
    cases: list[tuple[Axis, float]] = [("samples", 0.95), ("dim", 0.95), ("length", 1.05)]
    for axis, harder in cases:
        found = critical_value(spec, axis, 0.6)
        assert found is not None
        there = predict(spec.replace(**{axis: found})).accuracy
        past = predict(spec.replace(**{axis: int(found * harder)})).accuracy
        assert there is not None
        assert past is not None
        assert past < 0.6 <= there
    assert critical_value(spec.replace(dim=20), "samples", 0.9) is None
    with pytest.raises(SpecError, match=r"^target: expected a number between 0 and 1, got 2$"):
        critical_value(spec, "samples", 2.0)


def test_what_is_not_derived_is_said():
    spec = Retrieval(vocab=128, dim=40, length=8, samples=2000)
    for change, word in ((dict(then="gd", steps=3), "three"), (dict(eta=1.0), "step sizes")):
        told = predict(spec.replace(**change))
        assert (told.valid, told.accuracy, told.regime) == (False, None, "none")
        assert word in told.notes[0]
        assert critical_value(spec.replace(**change), "samples") is None
    for change in (dict(trigger="additive", activation="hermite2"), dict(activation="linear")):
        mixed = predict(spec.replace(width=64, **change))
        assert not mixed.valid
        assert mixed.accuracy is not None
    rough = predict(spec.replace(vocab=32))
    assert not rough.valid
    assert rough.accuracy is not None
    assert "fewer than 64 tokens" in rough.notes[0]


def test_locked_attention_is_perfect():
    spec = Retrieval(vocab=128, dim=40, length=512, samples=2000, attention="locked")
    assert predict(spec).attention_accuracy == 1


def test_the_command(capsys: pytest.CaptureFixture[str]):
    assert main(["predict", *SMALL, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    for key in ("accuracy", "attention_accuracy", "regime", "terms", "critical", "valid", "notes"):
        assert key in told
    assert set(told["critical"]) == {"samples", "dim", "length"}
    assert told["interval"]["low"] <= told["accuracy"] <= told["interval"]["high"]
    assert main(["predict", *SMALL]) == 0
    shown = capsys.readouterr().out
    assert "interference" in shown
    assert "the least N that reaches it" in shown
    assert main(["predict", *SMALL, "--width", "64", "--activation", "hermite3"]) == 0
    assert "mlp_noise" in capsys.readouterr().out
    assert main(["predict", *SMALL, "--then", "gd", "--steps", "3"]) == 0
    assert "not derived" in capsys.readouterr().out
    assert main(["predict", *SMALL, "--target", "2"]) == 2
    text = capsys.readouterr().err.strip()
    assert text == "mnemoscope: --target: expected a number from 0.001 to 0.999, got '2'"


def test_few_samples_have_a_prediction_too():
    """Far fewer samples than tokens: a covariance among the terms is negative there."""
    told = predict(Retrieval(vocab=1024, dim=24, length=6, samples=20))
    assert told.terms["label_and_count"] < 0
    assert told.accuracy is not None
    assert 0 <= told.accuracy < 0.1
    assert not told.valid
