"""How what is stored grows with a model's size: one power law through measured limits, weighted by their intervals."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from mnemoscope.experiments.estimate.power_law import Points, fit_power_law


def fit_growth(points: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
    """The power of `size` in `stored`, with its interval.

    Each point has `size`, `stored`, `low` and `high`; those without an estimate are left out. None
    where fewer than four are left, or where the size does not vary.
    """
    kept = [point for point in points if point["stored"] and point["low"] and point["high"]]
    if len(kept) < 4 or len({point["size"] for point in kept}) < 3:
        return None
    size, stored, error = columns_of(kept)
    return fit_size(size, np.log(stored), error)


def columns_of(points: Sequence[dict[str, Any]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Sizes, limits, and the standard errors of the limits' logarithms."""
    size = np.array([float(point["size"]) for point in points])
    stored = np.array([point["stored"] for point in points], float)
    ratio = np.array([point["high"] / point["low"] for point in points], float)
    return size, stored, np.maximum(np.log(ratio) / (2 * 1.96), 1e-3)


def fit_size(size: np.ndarray, y: np.ndarray, error: np.ndarray) -> dict[str, Any]:
    """The power of size in exp(y), and size over exp(y) with the power held at one."""
    law = fit_power_law(Points(("size",), size[:, None], y, error))
    (power,) = law.exponents
    constants = size / np.exp(y)
    return {
        "power": power.value,
        "low": power.low,
        "high": power.high,
        "scatter": law.scatter,
        "points": len(y),
        # The geometric mean, and the range.
        "constant": float(np.exp(np.mean(np.log(constants)))),
        "constant_low": float(constants.min()),
        "constant_high": float(constants.max()),
    }


def say_growth(fit: dict[str, Any] | None, what: str) -> str:
    """The fit in one line."""
    if fit is None:
        return "too few limits were found"
    return (
        f"{what} grows as size^{fit['power']:.3f} [{fit['low']:.3f}, {fit['high']:.3f}] over "
        f"{fit['points']} sizes; size / {what} {fit['constant']:.2f}, "
        f"{fit['constant_low']:.2f} to {fit['constant_high']:.2f}"
    )
