"""The matched filter's law (D4): against simulation, at its limits, and where it says nothing."""

import math

import numpy as np
import pytest

from mnemoscope import Retrieval
from mnemoscope.experiments.estimate.agreement import Compared, judge
from mnemoscope.experiments.validation import drawn_settings
from mnemoscope.experiments.validation.validate import matched_seeds
from mnemoscope.theory.critical import critical_value
from mnemoscope.theory.matched_filter import matched_filter_accuracy, matched_filter_doubt
from mnemoscope.training.three_step.batch import simulate_many
from mnemoscope.ui.figures.validation import section

# What docs/theory/bound.md says (D4) is good to; three standard errors of the mean come on top.
STATED = 0.02
SPEC = Retrieval(vocab=512, dim=192, length=32, samples=4000)


def off_by(spec: Retrieval, seeds: int) -> tuple[float, float]:
    """How far the law is from the mean over seeds, and that mean's standard error."""
    trials = simulate_many([(spec.replace(test_samples=16), seed) for seed in range(seeds)])
    shares = [trial.measured("first_gradient") or 0.0 for trial in trials]
    error = float(np.std(shares, ddof=1)) / math.sqrt(seeds)
    return abs(matched_filter_accuracy(spec) - float(np.mean(shares))), error


@pytest.mark.long
@pytest.mark.parametrize(
    ("V", "d", "L", "N", "law", "seeds"),
    [
        # Few meetings at V = d, and uneven labels in long sequences: a normal law is 0.1 off.
        (512, 512, 32, 1000, "gaussian", 12),
        (1024, 512, 256, 20_000, "gaussian", 8),
        (512, 192, 32, 10_000, "gaussian", 8),
        (512, 120, 32, 20_000, "gaussian", 8),
        (256, 256, 8, 300, "sphere", 16),
        (192, 35, 76, 40_000, "sphere", 16),
        (96, 24, 150, 20_000, "gaussian", 32),
    ],
)
def test_the_law_is_what_is_simulated(V: int, d: int, L: int, N: int, law: str, seeds: int):
    spec = Retrieval(vocab=V, dim=d, length=L, samples=N, embedding=law)
    off, error = off_by(spec, seeds)
    assert error < 0.012
    assert off <= STATED + 3 * error


@pytest.mark.long
def test_drawn_settings_are_in_the_domain_and_simulate_as_predicted():
    some = drawn_settings.for_matched(12)
    assert some == drawn_settings.for_matched(12)
    assert {spec.embedding for spec in some} == {"gaussian", "sphere"}
    for at, spec in enumerate(some):
        assert not matched_filter_doubt(spec)
        assert spec.samples * spec.length <= 3e7
        # The search for N ends above the share it was drawn for, by 5 % of N at most.
        assert 0.05 <= matched_filter_accuracy(spec) <= 0.97
        if at % 4 < 3:
            assert 128 <= spec.vocab <= 2048
            assert 0.99 <= spec.vocab / spec.dim <= 16.5
            assert 2 <= spec.length <= spec.vocab / 2 + 1
    cheap = [spec for spec in some if spec.vocab <= 300 and spec.samples * spec.length < 1e6]
    assert len(cheap) >= 3
    for spec in cheap[:4]:
        off, error = off_by(spec, matched_seeds(spec, 4))
        assert off <= STATED + 3 * error, spec


def test_without_noise_a_token_seen_is_a_token_named():
    """L = 1 has no meetings, and d = 4 V little overlap: what was seen is named (B6)."""
    for N in (32, 128, 512):
        spec = Retrieval(vocab=128, dim=512, length=1, samples=N)
        seen = 1 - math.exp(-N / 128) * (1 - 1 / 128)
        assert matched_filter_accuracy(spec) == pytest.approx(seen, abs=0.01)


def test_more_samples_and_dimensions_help_and_longer_sequences_do_not():
    def named(**sizes: int) -> float:
        return matched_filter_accuracy(SPEC.replace(**sizes))

    for values, rising in (
        ([named(samples=N) for N in (500, 1000, 2000, 4000, 16_000, 10**6)], True),
        ([named(dim=d) for d in (32, 64, 128, 256, 512)], True),
        ([named(length=L) for L in (2, 8, 32, 128, 512)], False),
    ):
        assert values == sorted(values, reverse=not rising)
        assert 0 < min(values) < max(values) < 1


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("law", ["gaussian", "sphere"])
def test_numbers_stay_shares_at_the_ends(law: str):
    for V, d, L, N in (
        (2, 1, 1, 1),
        (2, 1, 1, 2**30),
        (100, 1, 3, 500),
        (64, 3, 4, 10),
        (256, 2**20, 16, 2000),
        (10**6, 2000, 1000, 10**8),
        (64, 64, 10**5, 10**5),
    ):
        spec = Retrieval(vocab=V, dim=d, length=L, samples=N, embedding=law)
        assert 0 <= matched_filter_accuracy(spec) <= 1


def test_outside_its_domain_the_law_says_why():
    assert not matched_filter_doubt(SPEC)
    assert not matched_filter_doubt(SPEC.replace(vocab=16_384, dim=1060))
    for change, why in (
        (dict(width=64), "an MLP"),
        (dict(trigger="additive"), "a trigger in the values"),
        (dict(embedding="orthonormal", dim=512), "orthonormal embeddings"),
        (dict(vocab=31, dim=31), "fewer than 32 tokens"),
        (dict(vocab=40, dim=4), "fewer than 5 dimensions"),
        (dict(dim=31), "V/d = 16.5"),
        (dict(dim=2049), "V/d = 0.25"),
        (dict(length=1025), "L/V = 2"),
    ):
        assert matched_filter_doubt(SPEC.replace(**change)).startswith(why)
        assert critical_value(SPEC.replace(**change), "samples", 0.2, "first_gradient") is None


def test_critical_values_are_where_the_law_crosses():
    N = critical_value(SPEC, "samples", 0.5, "first_gradient")
    assert N is not None
    assert matched_filter_accuracy(SPEC.replace(samples=N)) >= 0.5
    assert matched_filter_accuracy(SPEC.replace(samples=round(0.95 * N))) < 0.5
    d = critical_value(SPEC, "dim", 0.5, "first_gradient")
    assert d is not None
    assert matched_filter_accuracy(SPEC.replace(dim=d)) >= 0.5
    # Half of the tokens seen, and each named only without overlaps: the answer is a d far above V.
    few = SPEC.replace(samples=380, length=2)
    assert critical_value(few, "dim", 0.52, "first_gradient") is None


def test_judging_can_fail():
    good = Compared(SPEC, "matched filter", 0.5, 0.51, 0.005, "core")
    bad = Compared(SPEC, "matched filter", 0.5, 0.6, 0.02, "edge")
    assert all(reached for _, reached in judge("matched", [good]).aims.values())
    agreement = judge("matched", [bad])
    assert not any(reached for _, reached in agreement.aims.values())
    text = section("matched", agreement, [bad])
    assert "mean error in edge (1)" in text
    assert "| error | part |" in text
