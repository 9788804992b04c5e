"""Theory where tokens are not equally frequent: its limits, its means, and simulation beside it."""

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mnemoscope.experiments.estimate.agreement import OUTSIDE, Compared, judge
from mnemoscope.experiments.validation import frequencies as validation
from mnemoscope.experiments.validation.frequencies import compare_frequencies
from mnemoscope.spec import Retrieval, SpecError
from mnemoscope.theory.critical import critical_value
from mnemoscope.theory.frequencies.draws import Draws
from mnemoscope.theory.frequencies.predict import FEW, predict_frequencies, solve
from mnemoscope.theory.frequencies.scores import draw_seeds, scores_of
from mnemoscope.theory.frequencies.surface import COARSE, FINER, frequency_surface
from mnemoscope.theory.frequencies.tokens import GROUPS, SINGLE, grouped, tokens_of
from mnemoscope.theory.predict import predict
from mnemoscope.theory.spec_grid import SpecGrid
from mnemoscope.ui.cli import main
from mnemoscope.ui.cli.predict import show

SPEC = Retrieval(vocab=64, dim=32, length=4, samples=1500, tokens="zipf:1")


@pytest.fixture
def own_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Probabilities of one's own are kept in the user's folder."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))


@pytest.mark.parametrize(
    "sizes",
    [
        dict(vocab=256, dim=64, length=8, samples=8000),
        dict(vocab=128, dim=33, length=32, samples=800),
        dict(vocab=128, dim=40, length=16, samples=1500, embedding="sphere"),
        dict(vocab=128, dim=160, length=8, samples=300, embedding="orthonormal"),
        dict(vocab=256, dim=64, length=8, samples=3000, attention="locked"),
    ],
)
def test_uniform_tokens_are_a_special_case(sizes: dict[str, Any]):
    """Up to what each derivation leaves out, and the draws."""
    spec = Retrieval(**sizes)
    usual, own = predict(spec), solve(spec)
    assert own.accuracy == pytest.approx(usual.accuracy, abs=0.03)
    assert own.attention_accuracy == pytest.approx(usual.attention_accuracy, abs=0.05)


def test_the_triggers_weight_has_the_mean_of_the_counts():
    """(Z4). The lift's mean is the weight's, as the trigger is independent of all else."""
    for law in ("zipf:0.6", "zipf:1.4"):
        spec = SPEC.replace(tokens=law, dim=128)
        p, V, L, N = spec.probabilities, spec.vocab, spec.length, spec.samples
        s2, s3, b = (p**2).sum(), (p**3).sum(), L - 1
        columns = s2 + 2 * b * s3 + b**2 * s2**2 - L**2 * s2 / V
        mean = N * (N - 1) * (s2 * (1 - 1 / V) + b * (s3 - s2 / V) - columns / L) * L / b
        lift = scores_of(spec, draw_seeds(spec, Draws(2048))).lift
        assert abs(lift.mean() - mean) < 4 * lift.std() / np.sqrt(len(lift))


def test_coverage_is_all_that_is_left_without_interference():
    """(Z18); a token never seen is named by chance at most."""
    spec = Retrieval(
        vocab=64, dim=80, length=1, samples=200, tokens="zipf:1.2", embedding="orthonormal", attention="locked"
    )
    told = predict_frequencies(spec)
    assert told.seen == pytest.approx(float(1 - spec.probabilities @ (1 - spec.probabilities) ** 200))
    assert told.accuracy == pytest.approx(told.seen, abs=0.01)
    assert told.accuracy_by_fact == pytest.approx(told.seen_facts, abs=0.02)


def test_frequent_tokens_are_recalled_better_and_draw_attention():
    told = predict_frequencies(SPEC)
    recall = [rank.recall for rank in told.ranks]
    assert recall[0] > 0.95
    assert recall[-1] < 0.2
    assert [band.band.name for band in told.bands] == [band.name for band in SPEC.bands]
    shares = [band.accuracy for band in told.bands]
    assert shares == sorted(shares)
    assert told.accuracy is not None
    assert told.accuracy > (told.accuracy_by_fact or 0.0)
    long = predict_frequencies(SPEC.replace(length=64))
    # The mean bias lies along the frequent tokens, too.
    assert long.regime in ("frequent_tokens", "mean_bias")
    # Where the most frequent token always wins, its own sequences are right.
    assert long.accuracy == pytest.approx(SPEC.probabilities[0], abs=0.05)


@pytest.mark.long
def test_more_dimensions_and_shorter_sequences_help():
    by_dim = [solve(SPEC.replace(dim=d)).accuracy for d in (12, 24, 48, 96)]
    assert by_dim == sorted(by_dim)
    by_length = [solve(SPEC.replace(length=L)).attention_accuracy for L in (32, 8, 2, 1)]
    assert by_length == sorted(by_length)
    assert by_length[-1] == pytest.approx(1)
    least = critical_value(SPEC, "dim", 0.6)
    assert least is not None
    assert solve(SPEC.replace(dim=least), FEW).accuracy >= 0.6
    assert solve(SPEC.replace(dim=round(least * 0.95)), FEW).accuracy < 0.6


def test_tokens_are_grouped_without_loss():
    for p in (tokens_probabilities(), np.array([0.5, 0.5, 0, 0]), np.full(300, 1 / 300)):
        tokens = grouped(p)
        assert len(tokens.single) <= SINGLE
        assert len(tokens.groups) <= GROUPS + 1
        assert sorted(np.concatenate([tokens.single, *tokens.groups])) == list(range(len(p)))
        ones = tokens.by_token(np.ones(len(tokens.single)), np.ones(len(tokens.groups)))
        assert (ones == 1).all()
        assert tokens.mean(np.ones((1, len(tokens.single))), np.ones((1, len(tokens.groups)))) == pytest.approx(1)
    assert len(tokens_of("zipf:1", 65_536).groups) <= GROUPS


def tokens_probabilities() -> np.ndarray:
    p = np.random.default_rng(0).dirichlet(np.full(200, 0.1))
    p[:20] = 0
    return p / p.sum()


def test_probabilities_of_ones_own(own_home: None):
    p = np.where(np.arange(64) < 8, 10.0, 1.0)
    p[-1] = 0
    told = predict(Retrieval(vocab=64, dim=32, length=4, samples=2000, tokens=p / p.sum())).as_dict()
    assert 0 < told["accuracy_by_fact"] < told["accuracy"] < 1
    assert sum(band["tokens"] for band in told["bands"]) == 64


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (dict(width=64), "with an MLP"),
        (dict(trigger="additive"), "with the trigger in the values"),
        (dict(eta=1.0, gamma=1.0), "finite step sizes"),
    ],
)
def test_what_is_not_derived(change: dict[str, Any], why: str):
    told = predict(SPEC.replace(**change))
    assert (told.accuracy, told.valid) == (None, False)
    assert why in told.notes[0]


def test_other_laws_are_for_uniform_tokens():
    assert "the end of training is not derived" in predict(SPEC, trained=True).notes[0]
    assert critical_value(SPEC, "samples", 0.5, trained=True) is None
    assert critical_value(SPEC, "samples", 0.5, "first_gradient") is None
    with pytest.raises(SpecError, match="expected learned"):
        predict(SPEC.replace(attention="locked"), trained=True)


def test_the_command(capsys: pytest.CaptureFixture[str]):
    words = ["predict", "--vocab", "64", "--dim", "32", "--length", "4", "--samples", "1500", "--tokens", "zipf:1"]
    assert main([*words, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    contract = {"accuracy", "attention_accuracy", "regime", "terms", "critical", "valid", "notes"}
    assert contract | {"accuracy_by_fact", "bands", "ranks", "seen"} <= set(told)
    assert told["interval"]["low"] < told["accuracy"] < told["interval"]["high"]
    show(predict_frequencies(SPEC), 0.5, told["critical"])
    assert "accuracy by fact" in capsys.readouterr().out
    assert main(["predict", "--domain", "--tokens", "zipf:1", "--json"]) == 0
    laws = [row["law"] for row in json.loads(capsys.readouterr().out)["domains"]]
    assert laws == ["frequencies of tokens, attention-only", "frequencies of tokens, orthonormal"]


@pytest.mark.long
def test_theory_agrees_with_simulation():
    """Within three standard errors of the mean over seeds, beside the aim of the mean error."""
    cases = [SPEC, SPEC.replace(tokens="zipf:0.6")]
    rows = list(compare_frequencies(cases, 12, "cpu", lambda done: None))
    assert {row.spec for row in rows} == set(cases)
    for row in rows:
        assert abs(row.predicted - row.observed) < 3 * row.error + 0.03, (row.spec.canonical(), row.name)


def test_the_figures_count_settings_in_the_domain():
    rows = [
        Compared(SPEC, "by sequence", 0.5, 0.52, 0.01, "interference"),
        Compared(SPEC, "by fact", 0.2, 0.1, 0.01, "interference"),
        Compared(SPEC, "band 1-10", 0.2, 0.21, 0.01, "interference"),
        Compared(SPEC.replace(vocab=32), "by sequence", 0.5, 0.9, 0.01, "interference" + OUTSIDE),
    ]
    found = judge("frequencies", rows)
    assert found.figures["settings"] == 2
    assert found.figures["mean error by sequence"] == pytest.approx(0.02)
    assert found.aims["mean error by sequence"][1]
    assert not found.aims["mean error by fact"][1]
    assert found.aims["mean error band"][1]
    assert found.figures["worst error by sequence, outside the domain"] == pytest.approx(0.4)


def test_settings_are_drawn_beforehand(own_home: None, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(validation, "SOME", -1.0)  # theory is not asked for long
    drawn = validation.for_frequencies(8)
    assert drawn == validation.for_frequencies(8)
    assert {spec.embedding for spec in drawn} == {"gaussian", "sphere", "orthonormal"}
    assert {spec.tokens[:4] for spec in drawn} == {"zipf", "file"}


@pytest.mark.long
def test_a_map_with_few_seeds_is_near_predict():
    sizes = list(itertools.product((128,), (32, 512), (4, 32), (500, 5000, 50_000)))
    V, d, L, N = np.array(sizes, float).T
    cells = SpecGrid(V, d, L, N, 0 * V)
    for tokens in ("zipf:0.5", "zipf:1.1"):
        exact = [
            predict_frequencies(Retrieval(vocab=v, dim=dim, length=length, samples=n, tokens=tokens))
            for v, dim, length, n in sizes
        ]
        accuracy, regimes = [one.accuracy for one in exact], [one.regime for one in exact]
        for seeds, mean, worst in ((FINER, 0.02, 0.08), (COARSE, 0.04, 0.2)):
            found = frequency_surface(cells, tokens, seeds)
            away = np.abs(found.accuracy - accuracy)
            assert away.mean() < mean
            assert away.max() < worst
            assert found.valid.tolist() == [one.valid for one in exact]
        # Two noises of like size are told apart by more seeds only.
        assert np.mean(frequency_surface(cells, tokens, FINER).regime == np.array(regimes)) > 0.75
