"""The dimension at which half of the labels are named, over a grid of settings."""

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from mnemoscope.spec import Retrieval
from mnemoscope.studies.base import Bench, Numbers, Size
from mnemoscope.studies.expected_scatter import TOLD, TRUE
from mnemoscope.studies.exponents import search_criticals
from mnemoscope.studies.power import Draw, base_by_base, say_bases, scattered


def critical_dims(
    bench: Bench, specs: Sequence[Retrieval], ranges: Sequence[tuple[int, int]], tolerance: float
) -> list[Numbers]:
    """The critical d of each setting, found without theory's help."""
    return search_criticals(bench, specs, "dim", ranges, ("vocab", "length", "samples"), tolerance)


def draw_dims(
    places: Sequence[Mapping[str, int]], value: Callable[[Mapping[str, int]], float], tolerance: float, size: Size
) -> Draw:
    """Numbers of all base seeds if `value` were the true critical d, for the power of a rule.

    A search ends with an interval of `tolerance` and scatters by more (`expected_scatter`).
    """
    error = tolerance / 1.96
    beyond = error * math.sqrt((TRUE / TOLD) ** 2 - 1)

    def base(rng: np.random.Generator) -> Numbers:
        points = []
        for place in places:
            dim, low, high = scattered(rng, value(place), error, beyond)
            points.append({**place, "dim": dim, "low": low, "high": high, "predicted": None})
        return {"points": points}

    return base_by_base(size, base)


def say_drawn(places: int, tolerance: float, size: Size, what: str) -> str:
    """What is drawn, in words."""
    return f"Drawn from {what} at {places} places, each told to {tolerance:.0%}, {say_bases(size)}"
