"""The base seeds of a study in one: every place of its grid is measured once by each."""

import math
from collections.abc import Sequence
from typing import Any

Point = dict[str, Any]


def pool_points(bases: Sequence[Sequence[Point]], by: Sequence[str], value: str) -> list[Point]:
    """One point for each place, from the points of all base seeds there.

    `by` names what makes a place. The logarithms of `value` are averaged with the weights that
    their 95 % intervals, `low` to `high`, give; what else a point has is the first one's. Points
    without an estimate are left out. A law is then fitted to places and not to single estimates:
    what it misses at one place, it misses with every base seed.
    """
    places: dict[tuple[Any, ...], list[Point]] = {}
    for point in (point for points in bases for point in points):
        if point[value] and point["low"] and point["high"]:
            places.setdefault(tuple(point[name] for name in by), []).append(point)
    return [_pool(points, value) for points in places.values()]


def _pool(points: Sequence[Point], value: str) -> Point:
    errors = [max(math.log(point["high"] / point["low"]) / (2 * 1.96), 1e-4) for point in points]
    weights = [1 / error**2 for error in errors]
    total = math.fsum(weights)
    logs = [math.log(point[value]) for point in points]
    mean = math.fsum(w * log for w, log in zip(weights, logs, strict=True)) / total
    reach = 1.96 / math.sqrt(total)
    return {**points[0], value: math.exp(mean), "low": math.exp(mean - reach), "high": math.exp(mean + reach)}
