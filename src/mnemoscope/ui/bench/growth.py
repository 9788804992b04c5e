"""How time grows: the exponent of seconds in N, L, V and d, fitted over doublings."""

from collections.abc import Callable

import numpy as np

from mnemoscope.spec import Retrieval
from mnemoscope.ui.bench.compare import run_case

AXES = ("samples", "length", "vocab", "dim")


def growth_exponents(
    base: Retrieval,
    device: str,
    doublings: int,
    repeats: int,
    budget: int | None = None,
    report: Callable[[float], None] | None = None,
) -> dict[str, float]:
    """For each axis, the slope of log seconds over log size, with all else as in `base`.

    `report` is called with each axis's share of the work.
    """
    exponents = {}
    for axis in AXES:
        sizes = [getattr(base, axis) * 2**k for k in range(doublings + 1)]
        seconds = [
            run_case(spec, 1.0, device, with_autodiff=False, repeats=repeats, budget=budget).seconds
            for spec in (base.replace(**{axis: size}) for size in sizes)
        ]
        exponents[axis] = float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])
        if report is not None:
            report(1 / len(AXES))
    return exponents
