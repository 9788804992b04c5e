"""Intervals for a mean accuracy.

Trials of one setting differ mostly by seed: embeddings are drawn once for each, and near a
threshold one seed recalls where another does not. So the interval comes from the spread between
seeds (Student's t); counting test sequences as if they were independent would be far too narrow.
For eight seeds of a skewed law such as Beta(2, 3) it covers 94 % where it says 95 %
(`tests/experiments/test_intervals.py`). Where the seeds agree, even all at 1.0, the test sequences still bound
what can be said, so the interval is never narrower than Wilson's for the pooled sequences.
"""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from scipy.special import ndtri, stdtrit


@dataclass(frozen=True)
class Interval:
    """A mean and a 95 % interval. The ends are None where one seed cannot tell them."""

    mean: float | None
    low: float | None
    high: float | None

    def as_dict(self) -> dict[str, float | None]:
        """Plain data, ready for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        if self.mean is None:
            return "none"
        if self.low is None or self.high is None:
            return f"{self.mean:.3f}"
        return f"{self.mean:.3f} [{self.low:.3f}, {self.high:.3f}]"


def wilson(share: float, count: float, confidence: float = 0.95) -> tuple[float, float]:
    """Wilson's interval for a share seen in `count` independent draws."""
    z = float(ndtri((1 + confidence) / 2))
    centre = (share + z * z / (2 * count)) / (1 + z * z / count)
    spread = share * (1 - share) / count + z * z / (4 * count * count)
    half = z * math.sqrt(spread) / (1 + z * z / count)
    # At the ends the bound is exact; rounding must not push the mean out of its own interval.
    return min(centre - half, share), max(centre + half, share)


def mean_interval(values: Sequence[float], draws: float, confidence: float = 0.95) -> Interval:
    """The mean over seeds of an accuracy that was measured on `draws` sequences for each seed."""
    seeds = len(values)
    if seeds == 0:
        return Interval(None, None, None)
    mean = math.fsum(values) / seeds
    if seeds == 1:
        return Interval(mean, None, None)
    variance = math.fsum((value - mean) ** 2 for value in values) / (seeds - 1)
    half = float(stdtrit(seeds - 1, (1 + confidence) / 2)) * math.sqrt(variance / seeds)
    low, high = wilson(mean, seeds * draws, confidence)
    return Interval(mean, max(0.0, min(low, mean - half)), min(1.0, max(high, mean + half)))
