"""Decoders' accuracy along N d^2 / (L V^2 ln V), for several (V, d, L)."""

import math
from collections.abc import Callable
from typing import NamedTuple

from mnemoscope.experiments.decoders import decode, see
from mnemoscope.experiments.estimate.estimate import Estimate
from mnemoscope.experiments.estimate.intervals import mean_interval
from mnemoscope.spec import Retrieval
from mnemoscope.spec.validators import Device
from mnemoscope.theory.bound import collapse

SHAPES = ((128, 64), (256, 64), (256, 128), (512, 256))
LENGTHS = (4, 16, 64)
PLACES = (0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
NAMES = ("matched_filter", "message_assignment")


class Point(NamedTuple):
    """One setting on the collapsed axis, and what each decoder names."""

    spec: Retrieval
    x: float
    shares: dict[str, Estimate]


def settings() -> list[Retrieval]:
    """N is what puts (V, d, L) at each of PLACES."""
    return [
        Retrieval(vocab=V, dim=d, length=L, samples=round(x * L * V**2 * math.log(V) / d**2))
        for V, d in SHAPES
        for L in LENGTHS
        for x in PLACES
    ]


def measure_collapse(
    specs: list[Retrieval], seeds: int, device: Device, progress: Callable[[int], None]
) -> list[Point]:
    """Every setting, `seeds` times."""
    points = []
    for spec in specs:
        decoded = [decode(see(spec, seed, device), NAMES) for seed in range(seeds)]
        shares = {name: mean_interval([answer[name] for answer in decoded], float(spec.vocab)) for name in NAMES}
        points.append(Point(spec, collapse(spec).x, shares))
        progress(1)
    return points
