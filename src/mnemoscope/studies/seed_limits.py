"""Limits seed by seed as plain points, and the seeds of all base seeds in one.

A point keeps `each`, every seed's own limit, so that base seeds can be pooled without weights: the
estimate of a place is the geometric mean over all seeds there, its interval Student's.
"""

import math
import statistics
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import stdtrit

from mnemoscope.experiments.estimate.estimate import Estimate

Point = dict[str, Any]


def limit_point(each: Sequence[float | None], resolution: float, **place: Any) -> Point:
    """A place, and the limits that its seeds have, each in a bracket of so much."""
    return {**place, "each": list(each), "resolution": resolution, **mean_limit(each, resolution).ends("stored")}


def mean_limit(each: Sequence[float | None], resolution: float) -> Estimate:
    """Geometric mean and Student's 95 % interval; nothing where fewer than two seeds have one."""
    logs = [math.log(limit) for limit in each if limit]
    if len(logs) < 2:
        return Estimate("unresolved")
    middle = statistics.fmean(logs)
    # A limit lies anywhere in its bracket, uniformly in the logarithm: width^2 / 12.
    variance = statistics.variance(logs) + math.log1p(resolution) ** 2 / 12
    half = float(stdtrit(len(logs) - 1, 0.975)) * math.sqrt(variance / len(logs))
    return Estimate("found", math.exp(middle), math.exp(middle - half), math.exp(middle + half))


def pool_limits(bases: Sequence[Sequence[Point]], by: Sequence[str]) -> list[Point]:
    """One point for each place, with the seeds of all base seeds; `by` names what makes a place."""
    places: dict[tuple[Any, ...], list[Point]] = {}
    for point in (point for points in bases for point in points):
        places.setdefault(tuple(point[name] for name in by), []).append(point)
    return [
        {**points[0], **limit_point([limit for point in points for limit in point["each"]], points[0]["resolution"])}
        for points in places.values()
    ]


def draw_limits(rng: np.random.Generator, value: float, scatter: float, seeds: int) -> list[float | None]:
    """What so many seeds might find where the limit is `value`, for a rule's power."""
    return [value * float(np.exp(rng.normal(0.0, scatter))) for _ in range(seeds)]
