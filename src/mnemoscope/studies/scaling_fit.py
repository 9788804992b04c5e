"""How stored things grow with a model's size: one power law through measured limits.

Limits come with intervals, and their fit with the weights that these give (`estimate.power_law`).
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from mnemoscope.experiments.estimate.power_law import Points, fit_power_law
from mnemoscope.studies.pooling import pool_points
from mnemoscope.studies.power import scattered
from mnemoscope.ui.figures.canvas import plain_log_ticks


def fit_growth(points: Sequence[dict[str, Any]], *, log: bool) -> dict[str, Any] | None:
    """The power of `size` in `stored`, or in stored ln stored, with its interval.

    Each point has `size`, `stored`, `low` and `high`; those without an estimate are left out. None
    where fewer than four are left, or where the size does not vary.
    """
    kept = [one for one in points if one["stored"] and one["low"] and one["high"]]
    if len(kept) < 4 or len({one["size"] for one in kept}) < 3:
        return None
    size = np.array([[float(one["size"])] for one in kept])
    stored = np.array([one["stored"] for one in kept], float)
    spread = np.array([math.log(one["high"] / one["low"]) / (2 * 1.96) for one in kept])
    y = np.log(stored * np.log(stored)) if log else np.log(stored)
    law = fit_power_law(Points(("size",), size, y, np.maximum(spread, 1e-3)))
    (power,) = law.exponents
    constants = size[:, 0] / np.exp(y)
    return {
        "power": power.value,
        "low": power.low,
        "high": power.high,
        "scatter": law.scatter,
        "points": len(kept),
        # size = constant x stored (ln stored), the power held at one: its geometric mean and range.
        "constant": float(np.exp(np.mean(np.log(constants)))),
        "constant_low": float(constants.min()),
        "constant_high": float(constants.max()),
    }


def fit_pooled_growth(
    bases: Sequence[Sequence[dict[str, Any]]], by: Sequence[str], *, log: bool
) -> dict[str, Any] | None:
    """The same fit to the limits of all base seeds, pooled where all of `by` is the same."""
    return fit_growth(pool_points(bases, by, "stored"), log=log)


def draw_limits(
    rng: np.random.Generator,
    points: Sequence[dict[str, Any]],
    stored: Sequence[float],
    error: float,
    beyond: float = 0.0,
) -> list[dict[str, Any]]:
    """What a study would find at these points if `stored` were the limits, for its power.

    `error` and `beyond` are as for `power.scattered`.
    """
    drawn = []
    for point, limit in zip(points, stored, strict=True):
        estimate, low, high = scattered(rng, limit, error, beyond)
        drawn.append({**point, "stored": estimate, "low": low, "high": high})
    return drawn


def say_growth(fit: dict[str, Any] | None, what: str) -> str:
    """The fit in one line."""
    if fit is None:
        return "too few limits were found"
    return (
        f"{what} grows as size^{fit['power']:.3f} [{fit['low']:.3f}, {fit['high']:.3f}] over "
        f"{fit['points']} sizes; size / {what} {fit['constant']:.2f}, "
        f"{fit['constant_low']:.2f} to {fit['constant_high']:.2f}"
    )


def draw_points(axes: Any, points: Sequence[dict[str, Any]], label: str, color: str) -> None:
    """Limits with their intervals."""
    kept = [one for one in points if one["stored"]]
    if not kept:
        return
    x = [one["size"] for one in kept]
    y = np.array([one["stored"] for one in kept], float)
    low = np.array([one["low"] or one["stored"] for one in kept], float)
    high = np.array([one["high"] or one["stored"] for one in kept], float)
    axes.errorbar(x, y, yerr=[y - low, high - y], fmt="o", markersize=3.5, capsize=2, color=color, label=label)


def scale_axes(axes: Any, points: Sequence[dict[str, Any]], x_name: str, y_name: str) -> None:
    """Both axes logarithmic, about the points."""
    known = [one for one in points if one["stored"]]
    if known:
        sizes = [float(one["size"]) for one in known]
        ends = [float(one[key] or one["stored"]) for one in known for key in ("low", "high")]
        plain_log_ticks(axes, "x", min(sizes), max(sizes))
        plain_log_ticks(axes, "y", min(ends), max(ends))
    axes.set_xlabel(x_name)
    axes.set_ylabel(y_name)
