"""Bands of tokens by their expected number of training sequences."""

import numpy as np
import pytest

from mnemoscope.spec.token_laws import bands, probabilities


@pytest.mark.parametrize("law", ["uniform", "zipf:0.7", "zipf:2"])
@pytest.mark.parametrize("samples", [1, 30_000])
def test_bands_part_the_tokens_from_rare_to_frequent(law, samples):
    p = probabilities(law, 300)
    parts = bands(p, samples)
    assert sorted(np.concatenate([band.tokens for band in parts])) == list(range(300))
    for band in parts:
        expected = samples * p[band.tokens]
        assert (band.least <= expected).all()
        assert (expected < band.below).all()
    assert [band.least for band in parts] == sorted(band.least for band in parts)


def test_bands_are_decades_above_one():
    p = np.array([0.9, 0.0899, 0.01, 0.0001, 0.0])
    named = {band.name: list(band.tokens) for band in bands(p, 1000)}
    assert named == {"0-1": [3, 4], "10-100": [1, 2], "100-1000": [0]}
