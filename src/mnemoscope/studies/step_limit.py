"""Capacities of trained memories, with what half of the steps would have made of them beside.

Near its limit a memory takes ever longer to train, so that a search with a step limit finds a
little less than what could be stored. Searching twice, with all steps and with half of them, shows
how much a doubling still moves: where that is more than MOVED, with its 95 % interval, the limit
that was found is that of the steps, and the size is left out of any fit.
"""

from collections.abc import Sequence
from typing import Any

from mnemoscope.spec import Memory
from mnemoscope.studies.base import Bench, Numbers
from mnemoscope.studies.seed_limits import Point, limit_point, mean_limit, pool_limits, search_limits

MOVED = 0.05


def measure_limits(
    bench: Bench, specs: Sequence[Memory], steps: int, *, criterion: float, seeds: int, resolution: float
) -> list[Point]:
    """Weights of a layer against items, every seed's limit, and its limit with half of the steps.

    Both searches run side by side.
    """
    both = [spec.replace(max_steps=limit) for limit in (steps, steps // 2) for spec in specs]
    capacities = search_limits(bench, both, criterion, resolution, seeds)
    each = [list(capacity.limits.each) for capacity in capacities]
    return [
        limit_point(
            full,
            resolution,
            half=half,
            dim=spec.dim,
            width=spec.width,
            outputs=spec.outputs,
            size=spec.dim * (spec.width or spec.dim),
        )
        for spec, full, half in zip(specs, each, each[len(specs) :], strict=False)
    ]


def pool_steps(all_numbers: Sequence[Numbers], name: str) -> tuple[list[Point], list[Point]]:
    """The places of all base seeds: those that count, and those that ran out of steps."""
    bases = [numbers[name] for numbers in all_numbers]
    pooled = pool_limits(bases, ("dim", "width"))
    counted, cut_short = [], []
    for point in pooled:
        pairs = [
            (full, half)
            for points in bases
            for other in points
            if (other["dim"], other["width"]) == (point["dim"], point["width"])
            for full, half in zip(other["each"], other["half"], strict=True)
            if full and half
        ]
        # ln N with all steps less ln N with half of them, paired by seed.
        moves = mean_limit([full / half for full, half in pairs], 2**0.5 * point["resolution"])
        ran_out = (moves.low or 1.0) > 1 + MOVED
        (cut_short if ran_out else counted).append({**point, "moved": (moves.value or 1.0) - 1})
    return counted, cut_short


def say_steps(counted: Sequence[Point], cut_short: Sequence[Point]) -> str:
    """What a doubling of the steps moves, and what was left out for it."""
    every: list[Any] = [*counted, *cut_short]
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
