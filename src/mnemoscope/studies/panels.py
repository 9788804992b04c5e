"""What the panels of figures share: estimates with their intervals, lines of a law, labels."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from mnemoscope.studies.base import Numbers


def draw_estimates(
    axes: Any,
    x: Sequence[float] | np.ndarray,
    points: Sequence[Numbers],
    value: str,
    label: str,
    color: str = "C0",
    fmt: str = "o",
    size: float | None = None,
) -> None:
    """The points' values above 0, each with its 95 % interval where it has one."""
    y = np.array([point[value] for point in points], float)
    low, high = (np.array([point[end] or point[value] for point in points], float) for end in ("low", "high"))
    axes.errorbar(x, y, yerr=[y - low, high - y], fmt=fmt, markersize=size, capsize=2, color=color, label=label)


def draw_law(axes: Any, x: Sequence[float] | np.ndarray, y: Any, label: str | None, style: str = "-") -> None:
    """A law's values, as a thin black line."""
    axes.plot(x, y, style, color="black", linewidth=0.9, label=label)


def finish(axes: Any, x_name: str, y_name: str) -> None:
    """Name both axes, and add the legend."""
    axes.set_xlabel(x_name)
    axes.set_ylabel(y_name)
    axes.legend(fontsize=7)
