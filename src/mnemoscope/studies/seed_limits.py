"""Limits seed by seed as plain points, and the seeds of all base seeds in one.

A point keeps `each`, every seed's own limit, so that base seeds can be pooled without weights: the
estimate of a place is the geometric mean over all seeds there, its interval Student's.
"""

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy.special import stdtrit

from mnemoscope.experiments.capacity import Capacity, capacity_many
from mnemoscope.experiments.estimate.estimate import Estimate
from mnemoscope.spec import Memory
from mnemoscope.studies.base import BASES, Bench, Size
from mnemoscope.studies.power import Draw

Point = dict[str, Any]


def search_limits(
    bench: Bench, specs: Sequence[Memory], criterion: float, resolution: float, seeds: int
) -> tuple[Capacity, ...]:
    """The capacity of every memory, with exactly this number of seeds."""
    found = capacity_many(
        specs, criterion, resolution=resolution, seeds=seeds, most_seeds=seeds, first_seed=bench.seed, tools=bench.tools
    )
    return found.points


def limit_point(each: Sequence[float | None], resolution: float, **place: Any) -> Point:
    """A place with the limits of its seeds, each known to within `resolution`."""
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


def draw_limit(rng: np.random.Generator, value: float, scatter: float, seeds: int, **place: Any) -> Point:
    """A point as seeds might measure it where the limit is `value`; half of the steps find the same."""
    each = [value * float(np.exp(rng.normal(0.0, scatter))) for _ in range(seeds)]
    return limit_point(each, 0.0, half=each, **place)


def draw_limits(
    size: Size,
    places: Sequence[Point],
    laws: Mapping[str, Sequence[float]],
    seeds: int | Sequence[int],
    scatter: float,
    place_scatter: float = 0.0,
) -> Draw:
    """The numbers of all base seeds, for a rule's power: under each key, limits about a law's at the places.

    Seeds scatter by `scatter` in the logarithm. A place is off by `place_scatter`, with every base seed alike.
    """
    each = np.broadcast_to(seeds, len(places)).tolist()

    def draw(rng: np.random.Generator) -> list[dict[str, list[Point]]]:
        off = {key: np.ones(len(places)) for key in laws}
        if place_scatter:
            off = {key: np.exp(rng.normal(0.0, place_scatter, len(places))) for key in laws}
        return [
            {
                key: [
                    draw_limit(rng, float(limit), scatter, count, **place)
                    for place, limit, count in zip(places, np.multiply(law, off[key]), each, strict=True)
                ]
                for key, law in laws.items()
            }
            for _ in range(BASES[size])
        ]

    return draw
