"""What the panels of figures share: estimates with their intervals, lines of a law, axes and labels."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from mnemoscope.studies.base import Numbers
from mnemoscope.ui.figures.canvas import plain_log_ticks


def draw_estimates(
    axes: Any,
    x: Sequence[float] | np.ndarray,
    points: Sequence[Numbers],
    value: str = "mean",
    label: str | None = None,
    color: str = "C0",
    fmt: str = "o",
    size: float | None = None,
) -> None:
    """The points' values, each with its 95 % interval if it has one."""
    y, bars = _error_bars(points, value)
    axes.errorbar(x, y, yerr=bars, fmt=fmt, markersize=size, capsize=2, color=color, label=label)


def draw_bars(axes: Any, names: Sequence[str], rows: Sequence[Numbers]) -> None:
    """Means as bars, with their intervals."""
    means, bars = _error_bars(rows, "mean")
    axes.bar(range(len(rows)), means, yerr=bars, capsize=3, color="C0")
    # Many bars are narrow: break a name of two words into two lines.
    labels = [name.replace(" ", "\n", 1) for name in names] if len(names) > 6 else names
    axes.set_xticks(range(len(rows)), labels)


def _error_bars(points: Sequence[Numbers], value: str) -> tuple[np.ndarray, list[np.ndarray]]:
    y = np.array([point[value] or 0.0 for point in points], float)
    ends = [[point[value] if point[end] is None else point[end] for point in points] for end in ("low", "high")]
    low, high = np.array(ends, float)
    return y, [y - low, high - y]


def draw_law(axes: Any, x: Sequence[float] | np.ndarray, y: Any, label: str | None, style: str = "-") -> None:
    """A law's values, as a thin black line."""
    axes.plot(x, y, style, color="black", linewidth=0.9, label=label)


def draw_limits(axes: Any, points: Sequence[Numbers], label: str, color: str) -> None:
    """The number of items stored against the size of the model, where it is known."""
    known = [point for point in points if point["stored"]]
    if known:
        draw_estimates(axes, [point["size"] for point in known], known, "stored", label, color, size=3.5)


def sizes_along(points: Sequence[Numbers]) -> np.ndarray:
    """Sizes from the smallest to the largest, evenly spaced in the logarithm, to draw a law along."""
    sizes = [point["size"] for point in points]
    return np.geomspace(min(sizes), max(sizes), 60)


def finish_limits(axes: Any, points: Sequence[Numbers], x_name: str, y_name: str) -> None:
    """Fit logarithmic axes to the points of `draw_limits`, name them, and add the legend."""
    known = [point for point in points if point["stored"]]
    ends = [float(point[key] or point["stored"]) for point in known for key in ("low", "high")]
    log_axes(axes, [float(point["size"]) for point in known], ends)
    finish(axes, x_name, y_name)


def log_axes(axes: Any, x: Sequence[float], y: Sequence[float]) -> None:
    """Make both axes logarithmic and fit them to these values, if there are any."""
    if x and y:
        plain_log_ticks(axes, "x", min(x), max(x))
        plain_log_ticks(axes, "y", min(y), max(y))


def finish(axes: Any, x_name: str, y_name: str, size: float = 7) -> None:
    """Name both axes, and add the legend, in letters of this size."""
    axes.set_xlabel(x_name)
    axes.set_ylabel(y_name)
    axes.legend(fontsize=size)
