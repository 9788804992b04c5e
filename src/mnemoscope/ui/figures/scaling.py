"""A scaling fit as a picture: the points beside the law, and the exponents beside theory's."""

from pathlib import Path
from typing import Any

import numpy as np

from mnemoscope.experiments.fit import Scaling
from mnemoscope.spec import LETTERS
from mnemoscope.ui.figures.canvas import open_canvas, plain_log_ticks, save


def draw_scaling(made: Scaling, path: Path) -> None:
    """Write the figure into a .png, .svg or .pdf file."""
    save(make_figure(made, path), path)


def make_figure(made: Scaling, path: Path | None = None) -> Any:
    """The fit as a matplotlib figure."""
    figure, (left, right) = open_canvas(path, width=9.0, height=4.2, columns=2, share=False)
    if made.status != "found":
        for axes in (left, right):
            axes.set_axis_off()
        said = f"no exponents: {made.status.replace('-', ' ')} ({len(made.found)})"
        left.text(0, 0.5, said, transform=left.transAxes)
        return figure
    _draw_points(left, made)
    _draw_exponents(right, made)
    return figure


def _draw_points(axes: Any, made: Scaling) -> None:
    """Each critical value against the law's: on the diagonal, the law holds."""
    said = np.exp(made.law.log_value(made.points.x))
    found = np.exp(made.points.log_y)
    reach = 1.96 * made.points.error
    bars = [found * (1 - np.exp(-reach)), found * (np.exp(reach) - 1)]
    axes.errorbar(said, found, yerr=bars, fmt="o", markersize=4, capsize=2, label="measured")
    if made.predicted is not None:
        divided = [
            (one.predicted or np.nan) * value / (one.estimate or np.nan)
            for one, value in zip(made.found, found, strict=True)
        ]
        axes.plot(said, divided, "x", color="C1", markersize=5, label="theory")
    ends = [min(said.min(), found.min()), max(said.max(), found.max())]
    axes.plot(ends, ends, color="black", linewidth=0.8)
    plain_log_ticks(axes, "x", *ends)
    plain_log_ticks(axes, "y", *ends)
    letter = LETTERS.get(made.along, made.along)
    over = f" / ln {LETTERS[made.log_of]}" if made.log_of else ""
    powers = " ".join(f"{LETTERS[e.axis]}^{e.value:.2f}" for e in made.law.exponents)
    axes.set_xlabel(f"{np.exp(made.law.constant):.3g} {powers}")
    axes.set_ylabel(f"critical {letter}{over}")
    axes.set_title(f"{made.measure.replace('_', ' ')} {made.target:g}", fontsize=10)
    axes.legend(fontsize=8, loc="best")


def _draw_exponents(axes: Any, made: Scaling) -> None:
    """Powers with their intervals, theory's on the same points, and leading order."""
    for at, one in enumerate(made.law.exponents):
        axes.plot([one.low, one.high], [at, at], color="C0", linewidth=2)
        axes.plot([one.value], [at], "o", color="C0", label="measured" if at == 0 else None)
    if made.predicted is not None:
        values = [one.value for one in made.predicted.exponents]
        axes.plot(values, range(len(values)), "x", color="C1", markersize=7, label="theory")
    if made.leading is not None:
        values = [made.leading[one.axis] for one in made.law.exponents]
        name = f"leading order, {made.leading_name.replace('_', ' ')}"
        axes.plot(values, range(len(values)), "|", color="black", markersize=16, label=name)
    axes.set_yticks(range(len(made.law.exponents)), [LETTERS[one.axis] for one in made.law.exponents])
    axes.set_ylim(-0.7, len(made.law.exponents) + 0.2)  # room for the legend
    axes.set_xlabel("exponent, with its 95 % interval")
    axes.grid(axis="x", linewidth=0.4)
    axes.legend(fontsize=8, loc="best")
