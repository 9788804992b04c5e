"""How time grows: the exponent of seconds in N, L, V and d, fitted over doublings."""

import numpy as np

from mnemoscope.bench.compare import run_case
from mnemoscope.spec import Retrieval

AXES = ("samples", "length", "vocab", "dim")


def growth_exponents(
    base: Retrieval, device: str, doublings: int, repeats: int
) -> dict[str, float]:
    """For each axis, the slope of log seconds over log size, with all else held at `base`."""
    return {axis: _exponent(base, axis, device, doublings, repeats) for axis in AXES}


def _exponent(base: Retrieval, axis: str, device: str, doublings: int, repeats: int) -> float:
    sizes = [getattr(base, axis) * 2**k for k in range(doublings + 1)]
    seconds = [
        run_case(
            base.replace(**{axis: size}), 1.0, device, with_autodiff=False, repeats=repeats
        ).seconds
        for size in sizes
    ]
    slope, _ = np.polyfit(np.log(sizes), np.log(seconds), 1)
    return float(slope)
