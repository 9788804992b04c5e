"""The interval over seeds: what it is made of, and how many seeds it holds."""

import math
from typing import Any

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from mnemoscope.experiments.estimate.agreement import OUTSIDE, Compared, judge
from mnemoscope.experiments.validation import drawn_settings
from mnemoscope.experiments.validation.validate import compare_spread
from mnemoscope.spec import Retrieval
from mnemoscope.theory.common import common_overlap
from mnemoscope.theory.frame import by_largest_count, named_in_frame
from mnemoscope.theory.predict import predict
from mnemoscope.theory.seeds import LEVEL, bivariate_normal
from mnemoscope.ui.figures.validation import section

# Cheap settings, one for what each part of the interval is about.
CASES = (
    Retrieval(vocab=96, dim=30, length=4, samples=1200),
    Retrieval(vocab=64, dim=24, length=32, samples=500),
    Retrieval(vocab=96, dim=40, length=8, samples=900, trigger="additive", embedding="sphere"),
    Retrieval(vocab=128, dim=48, length=4, samples=1500, trigger="additive", attention="locked"),
    Retrieval(vocab=96, dim=120, length=4, samples=200, embedding="orthonormal"),
    Retrieval(vocab=96, dim=120, length=4, samples=400, embedding="orthonormal", trigger="additive"),
)
SEEDS = 48


def test_the_bivariate_normal_law():
    h, k = np.array([0.3, 2.5, -1.0]), np.array([1.2, 2.0, 0.4])
    for rho in (0.0, 0.3, 0.8, -0.5):
        found = bivariate_normal(h, k, np.full(3, rho))
        cov: Any = np.array([[1, rho], [rho, 1]])
        law = multivariate_normal(np.zeros(2), cov)
        assert found == pytest.approx([law.cdf(pair) for pair in zip(h, k, strict=True)], abs=2e-5)


@pytest.fixture(scope="module")
def coverage() -> dict[str, Compared]:
    return {row.spec.id: row for row in compare_spread(CASES, SEEDS, "cpu", lambda done: None)}


@pytest.mark.long
@pytest.mark.parametrize("spec", CASES, ids=lambda spec: drawn_settings.spread_law(spec))
def test_the_interval_holds_most_seeds(spec: Retrieval, coverage: dict[str, Compared]):
    """At least 0.9 of them, but for three standard errors of a share of so many seeds."""
    found = coverage[spec.id]
    assert found.observed >= 0.90 - 3 * math.sqrt(0.9 * 0.1 / SEEDS)
    assert found.predicted == LEVEL


@pytest.mark.long
def test_the_intervals_together_hold_what_they_should(coverage: dict[str, Compared]):
    """Neither too few seeds nor all of them."""
    share = np.mean([row.observed for row in coverage.values()])
    error = math.sqrt(0.95 * 0.05 / (SEEDS * len(CASES)))
    assert 0.90 - 3 * error <= share <= 0.98 + error


def test_what_queries_share_widens_the_interval():
    """With the trigger in the values a seed's label counts move all its answers together."""
    spec = Retrieval(vocab=384, dim=148, length=8, samples=10_000, trigger="additive")
    told = predict(spec)
    assert told.accuracy is not None
    assert told.low is not None
    assert told.high is not None
    alone = math.sqrt(told.accuracy * (1 - told.accuracy) / spec.vocab)
    assert told.high - told.low > 2 * 2 * 1.96 * alone


def test_more_test_sequences_narrow_the_interval():
    spec = Retrieval(vocab=512, dim=128, length=4, samples=2000)
    few, many = predict(spec.replace(test_samples=100)), predict(spec)
    assert few.accuracy == many.accuracy
    assert (few.high or 0) - (few.low or 0) > 1.5 * ((many.high or 0) - (many.low or 0))


def test_intervals_stay_within_reach_of_the_mean_at_the_ends():
    """Also where nothing or everything is recalled, and for settings of one or two of anything."""
    for sizes in (
        (2, 1, 1, 1),
        (2, 2, 2, 2),
        (64, 12, 4, 200),
        (64, 2000, 2, 10**6),
        (3, 5, 400, 1),
        (10**5, 40, 100, 10**6),
        (1024, 24, 6, 20),
    ):
        V, d, L, N = sizes
        for choices in (
            {},
            {"trigger": "additive"},
            {"attention": "locked"},
            {"embedding": "sphere"},
            {"width": 16, "activation": "relu"},
            {"width": 16, "activation": "hermite2"},
            {"embedding": "orthonormal", "dim": V + 1},
            {"embedding": "orthonormal", "dim": V + 1, "trigger": "additive"},
        ):
            if V > 3000 and "dim" in choices:
                continue
            shape = {"vocab": V, "dim": d, "length": L, "samples": N}
            told = predict(Retrieval.read({**shape, **choices}))
            assert told.accuracy is not None
            assert told.low is not None
            assert told.high is not None
            assert 0 <= told.low <= told.high <= 1
            assert told.low <= told.accuracy + 0.02
            assert told.high >= told.accuracy - 0.02


def test_twice_a_count_against_the_largest():
    """(B9) and (S8) against counts that are drawn."""
    V, n = 96, 4.0
    draw = np.random.default_rng(3)
    named = []
    for _ in range(4000):
        count = draw.poisson(n, V)
        best = np.array([np.argmax(np.where(np.arange(V) == x, 2 * count, count)) for x in range(0, V, 6)])
        named.append(np.mean(best == np.arange(0, V, 6)))
    mean, error = float(np.mean(named)), float(np.std(named)) / math.sqrt(len(named))
    assert named_in_frame(np.array([n]), n, V)[0] == pytest.approx(mean, abs=4 * error)
    accuracy, weight = by_largest_count(n, V)
    # What a token's own largest count takes away is of order 1/V.
    assert weight @ accuracy == pytest.approx(mean, abs=4 * error + 1 / V)


def test_what_all_queries_find():
    spec = Retrieval(vocab=64, dim=40, length=4, samples=500, embedding="sphere")
    assert common_overlap(spec).mean == pytest.approx([0.0])
    additive = common_overlap(spec.replace(trigger="additive"))
    assert (additive.mean[0], additive.variance[0]) == pytest.approx((1.0, 1 / 40))
    relu = common_overlap(spec.replace(width=10**9, activation="relu"))
    # arc-cosine kernel at small overlaps: (1 + rho^2/2)/(2 pi), rho^2 = 1/d on average
    assert relu.mean[0] == pytest.approx((1 + 1 / 80) / (2 * math.pi), rel=1e-3)


def test_settings_of_every_law_are_drawn_within_their_ranges():
    some = drawn_settings.for_spread(78)
    assert some == drawn_settings.for_spread(78)
    laws = list(drawn_settings.SPREAD_LAWS)
    assert [drawn_settings.spread_law(spec) for spec in some] == [laws[k % len(laws)] for k in range(78)]
    for spec in some:
        assert 64 <= spec.vocab <= 512
        assert 4 <= spec.length <= 64
        assert spec.samples >= 200
        assert spec.width in (0, 128, 256, 512, 1024)


def test_judging_coverage_can_fail():
    def row(share: float, law: str) -> Compared:
        return Compared(CASES[0], "", LEVEL, share, 0.04, law)

    good = judge("spread", [row(0.94, "a"), row(0.96, "a"), row(0.2, f"b{OUTSIDE}")])
    assert good.aims["coverage where valid (2)"][1]
    assert not good.aims["coverage, all settings (3)"][1]
    assert good.figures["a: standard error"] == pytest.approx(0.01)
    assert f"b{OUTSIDE} (1)" not in good.aims
    for share in (0.5, 1.0):
        assert not judge("spread", [row(share, "a")]).aims["coverage where valid (1)"][1]
    assert not judge("spread", [row(0.5, "a")]).aims["a (1)"][1]
    assert "The interval over seeds" in section("spread", good, [row(0.94, "a")])
