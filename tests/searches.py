"""What a search is held against: made-up data with a known answer, and plain bisection."""

import math

import numpy as np

from mnemoscope.experiments.estimate.threshold import find_crossing


def covered(number: int, outlier: bool) -> bool:
    """Whether the interval of one made-up data set holds the truth.

    Eight seeds, each with a shift and a slope of its own, four values, 1024 test sequences.
    """
    rng = np.random.default_rng([9, number])
    truth = rng.normal(7, 0.5)
    places = truth + np.linspace(-0.6, 0.6, 4) + rng.normal(0, 0.2)
    values, seeds, shares = [], [], []
    for seed in range(8):
        at, slope = truth + rng.normal(0, 0.25), 3 * math.exp(rng.normal(0, 0.15))
        for place in places:
            values.append(math.exp(place))
            seeds.append(seed)
            chance = 1 / (1 + math.exp(-slope * (place - at)))
            shares.append(float(rng.binomial(1024, chance)) / 1024)
    if outlier:
        shares[int(rng.integers(len(shares)))] = float(rng.integers(2))
    crossing = find_crossing(values, seeds, shares, 0.5, resamples=200)
    assert crossing.low is not None
    assert crossing.high is not None
    return crossing.low <= math.exp(truth) <= crossing.high


def bisection_tokens(low: float, high: float, at: float, seeds: int, length: int) -> float:
    """What plain bisection to +-10 % simulates: all seeds at both ends and at every middle."""
    samples = low + high
    while high / low > 1.1**2:
        middle = math.sqrt(low * high)
        samples += middle
        low, high = (middle, high) if middle < at else (low, middle)
    return samples * seeds * length
