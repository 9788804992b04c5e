"""The limits of memories, seed by seed: searched, pooled over base seeds, and drawn for a rule's power.

A point keeps `each`, every seed's own limit, so that base seeds can be pooled without weights: the estimate at a place
is the geometric mean over all its seeds, with Student's interval.

Near its limit a memory takes ever longer to train, so a search with a step limit finds a little less than what could be
stored. `measure_limits` searches twice, with all steps and with half of them. Where a doubling raises the limit by more
than MOVED, with its 95 % interval, the limit found is that of the steps, and no fit includes the place.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from mnemoscope.experiments.capacity import capacity_many
from mnemoscope.experiments.estimate.estimate import Estimate
from mnemoscope.experiments.estimate.limits import mean_of_logs
from mnemoscope.spec import Memory
from mnemoscope.studies.base import BASES, Bench, Numbers, Size
from mnemoscope.studies.power import Draw

Point = dict[str, Any]

MOVED = 0.05


def search_limits(
    bench: Bench,
    specs: Sequence[Memory],
    criterion: float,
    resolution: float,
    seeds: int,
    place: Callable[[Memory], Point],
) -> list[Point]:
    """The limits of exactly this number of seeds for every memory, with what `place` says of it."""
    capacities = capacity_many(
        specs, criterion, resolution=resolution, seeds=seeds, most_seeds=seeds, first_seed=bench.seed, tools=bench.tools
    )
    each = [capacity.limits.each for capacity in capacities.points]
    return [limit_point(limits, resolution, **place(spec)) for spec, limits in zip(specs, each, strict=True)]


def measure_limits(bench: Bench, specs: Sequence[Memory], steps: int, seeds: int, resolution: float) -> list[Point]:
    """Every seed's number of items that can be trained to 0.99, with all steps and with half of them.

    Both searches run side by side.
    """
    both = [spec.replace(max_steps=limit) for limit in (steps, steps // 2) for spec in specs]

    def place(memory: Memory) -> Point:
        size = memory.dim * (memory.width or memory.dim)
        return {"dim": memory.dim, "width": memory.width, "outputs": memory.outputs, "size": size}

    points = search_limits(bench, both, 0.99, resolution, seeds, place)
    pairs = zip(points[: len(specs)], points[len(specs) :], strict=True)
    return [{**full, "half": half["each"]} for full, half in pairs]


def limit_point(each: Sequence[float | None], resolution: float, **place: Any) -> Point:
    """A place with the limits of its seeds, each known to within `resolution`."""
    return {**place, "each": list(each), "resolution": resolution, **mean_limit(each, resolution).ends("stored")}


def mean_limit(each: Sequence[float | None], resolution: float) -> Estimate:
    """Geometric mean and Student's 95 % interval; unresolved if fewer than two seeds have a limit."""
    logs = [math.log(limit) for limit in each if limit]
    if len(logs) < 2:
        return Estimate("unresolved")
    # A limit lies anywhere in its bracket, uniformly in the logarithm: width^2 / 12.
    return mean_of_logs(logs, math.log1p(resolution) ** 2 / 12)


def pool_limits(bases: Sequence[Sequence[Point]], by: Sequence[str]) -> list[Point]:
    """One point for each place, with the seeds of all base seeds; `by` names the keys that identify a place."""
    places: dict[tuple[Any, ...], list[Point]] = {}
    for point in (point for points in bases for point in points):
        places.setdefault(tuple(point[name] for name in by), []).append(point)
    return [
        {**points[0], **limit_point([limit for point in points for limit in point["each"]], points[0]["resolution"])}
        for points in places.values()
    ]


def pool_steps(all_numbers: Sequence[Numbers], name: str) -> tuple[list[Point], list[Point]]:
    """The places of all base seeds: those that count, and those that ran out of steps."""
    bases = [numbers[name] for numbers in all_numbers]
    counted, cut_short = [], []
    for pooled in pool_limits(bases, ("dim", "width")):
        pairs = [
            (full, half)
            for point in (point for points in bases for point in points)
            if (point["dim"], point["width"]) == (pooled["dim"], pooled["width"])
            for full, half in zip(point["each"], point["half"], strict=True)
            if full and half
        ]
        # ln N with all steps less ln N with half of them, paired by seed.
        moves = mean_limit([full / half for full, half in pairs], 2**0.5 * pooled["resolution"])
        ran_out = (moves.low or 1.0) > 1 + MOVED
        (cut_short if ran_out else counted).append({**pooled, "moved": (moves.value or 1.0) - 1})
    return counted, cut_short


def say_steps(counted: Sequence[Point], cut_short: Sequence[Point]) -> str:
    """How far a doubling of the steps raises the limits, and which sizes are left out for it."""
    every = [*counted, *cut_short]
    if not every:
        return "no limits"
    largest = max(every, key=lambda point: point["size"])
    text = (
        f"twice the steps raise N by at most {max(point['moved'] for point in every):.1%}, at the "
        f"largest size by {largest['moved']:.1%}"
    )
    if cut_short:
        sizes = ", ".join(f"{point['size']:,}" for point in cut_short)
        text += f"; left out for want of steps: {sizes} weights"
    return text


def simulate_limit(rng: np.random.Generator, value: float, scatter: float, seeds: int, **place: Any) -> Point:
    """A point as seeds might measure it if the limit is `value`, with half of the steps as with all."""
    each = [value * float(np.exp(rng.normal(0.0, scatter))) for _ in range(seeds)]
    return limit_point(each, 0.0, half=each, **place)


def simulate_limits(
    size: Size,
    places: Sequence[Point],
    laws: Mapping[str, Sequence[float]],
    seeds: int | Sequence[int],
    scatter: float,
    place_scatter: float = 0.0,
) -> Draw:
    """Draws the numbers of all base seeds: under each key, limits that scatter about a law's values at the places.

    Seeds scatter by `scatter` in the logarithm. A place is off by `place_scatter`, the same for every base seed.
    """
    counts = np.broadcast_to(seeds, len(places)).tolist()

    def draw(rng: np.random.Generator) -> list[Numbers]:
        off = {key: np.ones(len(places)) for key in laws}
        if place_scatter:
            off = {key: np.exp(rng.normal(0.0, place_scatter, len(places))) for key in laws}
        return [
            {
                key: [
                    simulate_limit(rng, float(limit), scatter, count, **place)
                    for place, limit, count in zip(places, np.multiply(law, off[key]), counts, strict=True)
                ]
                for key, law in laws.items()
            }
            for _ in range(BASES[size])
        ]

    return draw
