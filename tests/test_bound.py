"""The information bound, and the decoders that must stay below it."""

import json
import math

import numpy as np
import pytest

from mnemoscope import Retrieval, simulate
from mnemoscope.cli import main
from mnemoscope.experiments.decoders import decode, see
from mnemoscope.theory.bound import (
    bound_accuracy,
    bound_samples,
    collapse,
    known_nats,
    needed_nats,
)

SPEC = Retrieval(vocab=128, dim=48, length=8, samples=4000)


def test_needed_nats_from_nothing_to_all():
    assert needed_nats(128, 1.0) == pytest.approx(math.lgamma(129))
    assert needed_nats(128, 1 / 128) == 0
    shares = [needed_nats(128, share) for share in (0.1, 0.3, 0.5, 0.9, 1.0)]
    assert shares == sorted(shares)


def test_the_bound_is_where_the_two_meet():
    for share in (0.5, 0.9):
        least = bound_samples(SPEC, share)
        at = SPEC.replace(samples=max(1, round(least)))
        assert known_nats(at) == pytest.approx(needed_nats(128, share), rel=0.02)
        assert bound_accuracy(at) == pytest.approx(share, abs=0.02)
    assert bound_samples(SPEC.replace(dim=1), 0.9) == math.inf


def test_the_bound_scales_as_the_multiplicative_law():
    """For N << L V: N d^2 proportional to L V ln V! , whatever the constant."""
    far = Retrieval(vocab=2**12, dim=2**11, length=64, samples=1)
    base = bound_samples(far, 1.0)
    assert bound_samples(far.replace(length=128), 1.0) == pytest.approx(2 * base)
    assert bound_samples(far.replace(dim=2**10), 1.0) == pytest.approx(4 * base, rel=0.05)


def test_decoders_stay_below_the_bound():
    for samples in (300, 1000, 4000):
        spec = SPEC.replace(samples=samples)
        shares = [decode(see(spec, seed)) for seed in range(6)]
        most = bound_accuracy(spec)
        for name in shares[0]:
            values = [one[name] for one in shares]
            error = float(np.std(values, ddof=1)) / math.sqrt(len(values))
            assert np.mean(values) <= most + 4 * error, name
    # Where there is enough to see, putting every label once helps.
    assert np.mean([one["matched_assignment"] for one in shares]) > np.mean(
        [one["matched_filter"] for one in shares]
    )


def test_the_matched_filter_is_the_map_after_the_first_step():
    first = next(step for step in simulate(SPEC, 3).steps if step.name == "V1")
    assert decode(see(SPEC, 3))["matched_filter"] == pytest.approx(first.map_accuracy, abs=2 / 128)


def test_the_command(capsys: pytest.CaptureFixture[str]):
    words = ["--vocab", "64", "--dim", "32", "--length", "4", "--samples", "2000", "--seeds", "3"]
    assert main(["bound", *words, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["information_bound_samples"] > 0
    assert set(told["matched_filter"]) >= {"mean", "low", "high"}
    assert told["collapse"]["x"] == pytest.approx(2000 * 32**2 / (4 * 64**2 * math.log(64)))
    assert collapse(SPEC).formula in told["collapse"]["formula"]
    assert main(["bound", *words]) == 0
    assert "no estimator more than" in capsys.readouterr().out
    assert main(["bound", *words, "--width", "4"]) == 2
    assert "--width: expected 0" in capsys.readouterr().err
