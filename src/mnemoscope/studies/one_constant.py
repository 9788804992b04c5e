"""Laws that say how limits grow and leave one constant open: which fits best, and the constant itself.

For each law, ln N = ln level + ln law(place) is fitted by weighted least squares. All have one constant, so Akaike's
criterion compares their weighted squares alone. A place's error is that of its seeds, and `FORM`, what a law of leading
order is allowed to be off at finite sizes.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from scipy.special import stdtrit

from mnemoscope.experiments.estimate.power_law import DECISIVE
from mnemoscope.studies.scaling_fit import columns_of

Law = Callable[[Mapping[str, Any]], float]
FEWEST = 4
FORM = 0.02


def fit_levels(points: Sequence[Mapping[str, Any]], laws: Mapping[str, Law]) -> dict[str, dict[str, float]] | None:
    """Each law's constant with Student's interval, and its weighted squares; None if there are too few points.

    Where points scatter by more than their errors, the interval is widened.
    """
    kept = [dict(point) for point in points if point["stored"] and point["low"] and point["high"]]
    if len(kept) < FEWEST:
        return None
    _, stored, error = columns_of(kept)
    weight = 1 / (error**2 + FORM**2)
    fits = {}
    for name, law in laws.items():
        off = np.log(stored) - np.log([law(point) for point in kept])
        level = float(weight @ off / weight.sum())
        squares = float(weight @ (off - level) ** 2)
        excess = max(1.0, squares / (len(kept) - 1))
        half = float(stdtrit(len(kept) - 1, 0.975)) * math.sqrt(excess / weight.sum())
        fits[name] = {
            "level": math.exp(level),
            "low": math.exp(level - half),
            "high": math.exp(level + half),
            "squares": squares,
        }
    return fits


def lead_of(fits: Mapping[str, Mapping[str, float]], name: str) -> tuple[float, str]:
    """By how much a law leads the best of the others, and which that is."""
    rival = min((other for other in fits if other != name), key=lambda other: fits[other]["squares"])
    return fits[rival]["squares"] - fits[name]["squares"], rival


def is_ahead(lead: float) -> bool | None:
    """Whether a law is decisively ahead; None if neither is."""
    return True if lead >= DECISIVE else False if lead <= -DECISIVE else None
