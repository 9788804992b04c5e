"""A scaling fit: the points against the law, and the exponents next to theory's."""

from typing import Any

import numpy as np

from mnemoscope.experiments.fit import Scaling
from mnemoscope.spec import LETTERS
from mnemoscope.ui.figures.canvas import open_canvas, plain_log_ticks, saved


def make_figure(scaling: Scaling) -> Any:
    """The fit as a matplotlib figure."""
    figure, (left, right) = open_canvas(width=9.0, height=4.2, columns=2, share=False)
    if scaling.status != "found":
        for axes in (left, right):
            axes.set_axis_off()
        message = f"no exponents: {scaling.status.replace('-', ' ')} ({len(scaling.found)})"
        left.text(0, 0.5, message, transform=left.transAxes)
        return figure
    _draw_points(left, scaling)
    _draw_exponents(right, scaling)
    return figure


def draw_on(axes: Any, scaling: Scaling) -> None:
    """The points against the law, on axes of the caller's."""
    _draw_points(axes, scaling)


draw_scaling = saved(make_figure)


def _draw_points(axes: Any, scaling: Scaling) -> None:
    """Each critical value against the law's: on the diagonal, the law holds."""
    by_law = np.exp(scaling.law.log_value(scaling.points.x))
    measured = np.exp(scaling.points.log_y)
    reach = 1.96 * scaling.points.error
    bars = [measured * (1 - np.exp(-reach)), measured * (np.exp(reach) - 1)]
    axes.errorbar(by_law, measured, yerr=bars, fmt="o", markersize=4, capsize=2, label="measured")
    if scaling.predicted is not None:
        divided = [
            (point.predicted or np.nan) * value / (point.estimate or np.nan)
            for point, value in zip(scaling.found, measured, strict=True)
        ]
        axes.plot(by_law, divided, "x", color="C1", markersize=5, label="theory")
    ends = [min(by_law.min(), measured.min()), max(by_law.max(), measured.max())]
    axes.plot(ends, ends, color="black", linewidth=0.8)
    plain_log_ticks(axes, "x", *ends)
    plain_log_ticks(axes, "y", *ends)
    letter = LETTERS.get(scaling.along, scaling.along)
    over = f" / ln {LETTERS.get(scaling.log_of, scaling.log_of)}" if scaling.log_of else ""
    powers = " ".join(f"{LETTERS.get(e.axis, e.axis)}^{e.value:.2f}" for e in scaling.law.exponents)
    axes.set(xlabel=f"{np.exp(scaling.law.constant):.3g} {powers}", ylabel=f"critical {letter}{over}")
    axes.set_title(f"{scaling.measure.replace('_', ' ')} {scaling.target:g}", fontsize="medium")
    axes.legend(fontsize=8, loc="best")


def _draw_exponents(axes: Any, scaling: Scaling) -> None:
    """Powers with their intervals, theory's on the same points, and leading order."""
    for at, exponent in enumerate(scaling.law.exponents):
        axes.plot([exponent.low, exponent.high], [at, at], color="C0", linewidth=2)
        axes.plot([exponent.value], [at], "o", color="C0", label="measured" if at == 0 else None)
    if scaling.predicted is not None:
        values = [exponent.value for exponent in scaling.predicted.exponents]
        axes.plot(values, range(len(values)), "x", color="C1", markersize=7, label="theory")
    if scaling.leading is not None:
        values = [scaling.leading[exponent.axis] for exponent in scaling.law.exponents]
        name = f"leading order, {scaling.leading_name.replace('_', ' ')}"
        axes.plot(values, range(len(values)), "|", color="black", markersize=16, label=name)
    axes.set_yticks(
        range(len(scaling.law.exponents)),
        [LETTERS.get(exponent.axis, exponent.axis) for exponent in scaling.law.exponents],
    )
    axes.set_ylim(-0.7, len(scaling.law.exponents) + 0.2)  # space for the legend
    axes.set_xlabel("exponent, with its 95 % interval")
    axes.grid(axis="x", linewidth=0.4)
    axes.legend(fontsize=8, loc="best")
