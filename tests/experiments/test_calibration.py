"""Confidence on seen and unseen tokens, measured and predicted."""

import numpy as np
import pytest

from mnemoscope.experiments.calibration import auc, calibrate
from mnemoscope.spec import Retrieval, SpecError
from mnemoscope.theory.calibration import predicted_auc


def test_auc_counts_pairs():
    rng = np.random.default_rng(0)
    confidence, seen = rng.integers(0, 9, 60).astype(float), rng.random(60) < 0.4
    pairs = [(a > b) + (a == b) / 2 for a in confidence[seen] for b in confidence[~seen]]
    assert auc(confidence, seen) == pytest.approx(np.mean(pairs))


@pytest.mark.parametrize(("dim", "samples"), [(128, 800), (48, 600)])
def test_confidence_is_as_predicted(dim: int, samples: int):
    spec = Retrieval(vocab=512, dim=dim, length=8, samples=samples)
    found = calibrate(spec, range(8))
    assert found.auc.value is not None
    assert found.auc.low is not None
    assert found.predicted is not None
    # Of Student's interval over eight seeds, half is 2.4 standard errors; the law itself is known to be off by 0.04.
    assert abs(found.predicted - found.auc.value) < found.auc.value - found.auc.low + 0.02
    assert found.share_seen == pytest.approx(1 - (1 - 1 / 512) ** samples, abs=0.02)


def test_without_unseen_tokens_there_is_nothing_to_tell():
    found = calibrate(Retrieval(vocab=16, dim=16, length=4, samples=4000), range(2))
    assert found.auc.value is None
    assert found.share_seen == 1
    assert found.unseen is None


def test_only_what_is_derived_is_predicted():
    assert predicted_auc(Retrieval(vocab=64, dim=32, length=4, samples=100, width=64)) is None
    assert predicted_auc(Retrieval(vocab=64, dim=32, length=4, samples=100, tokens="zipf:1")) is None


def test_further_training_is_refused():
    with pytest.raises(SpecError, match="then: expected none for calibration"):
        calibrate(Retrieval(vocab=64, dim=32, length=4, samples=100, then="gd", steps=3), [0])
