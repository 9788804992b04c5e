"""The mean accuracy over seeds, with its interval.

Trials of one setting differ mostly by seed: embeddings are drawn once for each, and near a threshold one seed recalls
where another does not. So the interval comes from the spread between seeds (Student's t); counting test sequences as if
they were independent would be far too narrow. For eight seeds of a skewed law such as Beta(2, 3) it covers 94 % where
it says 95 % (`tests/experiments/test_intervals.py`). Where the seeds agree, even all at 1.0, the test sequences still
bound what can be said, so the interval is never narrower than Wilson's for the pooled sequences.
"""

import math
from collections.abc import Sequence

from scipy.special import ndtri, stdtrit

from mnemoscope.experiments.estimate.estimate import Estimate


def wilson(share: float, count: float, confidence: float = 0.95) -> tuple[float, float]:
    """Wilson's interval for a share seen in `count` independent draws."""
    z = float(ndtri((1 + confidence) / 2))
    centre = (share + z * z / (2 * count)) / (1 + z * z / count)
    spread = share * (1 - share) / count + z * z / (4 * count * count)
    half = z * math.sqrt(spread) / (1 + z * z / count)
    # At the ends the bound is exact; rounding must not push the mean out of its own interval.
    return min(centre - half, share), max(centre + half, share)


def mean_interval(values: Sequence[float], draws: float, confidence: float = 0.95) -> Estimate:
    """The mean over seeds of an accuracy that was measured on `draws` sequences for each seed.

    It is unresolved with fewer than two seeds: one seed cannot tell the interval.
    """
    seeds = len(values)
    if seeds == 0:
        return Estimate("unresolved")
    mean = math.fsum(values) / seeds
    if seeds == 1:
        return Estimate("unresolved", mean)
    variance = math.fsum((value - mean) ** 2 for value in values) / (seeds - 1)
    half = float(stdtrit(seeds - 1, (1 + confidence) / 2)) * math.sqrt(variance / seeds)
    low, high = wilson(mean, seeds * draws, confidence)
    return Estimate("found", mean, max(0.0, min(low, mean - half)), min(1.0, max(high, mean + half)))
