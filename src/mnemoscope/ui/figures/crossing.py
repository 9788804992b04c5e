"""A critical value: the trials along its axis, the target, and where it is crossed."""

import statistics
from typing import Any

from mnemoscope.experiments.critical import Critical
from mnemoscope.spec.summary import axis_words, brief
from mnemoscope.ui.figures.canvas import open_canvas, plain_log_ticks, saved


def make_figure(crossing: Critical) -> Any:
    """The search as a matplotlib figure."""
    figure, axes = open_canvas(width=5.6, height=4.0)
    draw_on(axes, crossing)
    figure.legend(loc="outside lower center", ncols=2)
    return figure


def draw_on(axes: Any, crossing: Critical) -> None:
    """Every trial, their means, and the estimate with its interval."""
    shares: dict[int, list[float]] = {}
    for row in crossing.records():
        if row[crossing.measure] is not None:
            shares.setdefault(row[crossing.axis], []).append(row[crossing.measure])
    for place, values in shares.items():
        axes.plot([place] * len(values), values, ".", color="C0", alpha=0.3)
    axes.plot([*shares], [statistics.fmean(values) for values in shares.values()], "o-", markersize=4, label="mean")
    axes.axhline(crossing.target, color="black", linewidth=0.8, linestyle=":", label=f"target {crossing.target:g}")
    if crossing.estimate is not None:
        axes.axvline(crossing.estimate, color="C1", linewidth=1.2, label=f"crossing at {crossing.estimate:,.0f}")
        if crossing.low is not None and crossing.high is not None:
            axes.axvspan(crossing.low, crossing.high, color="C1", alpha=0.15, linewidth=0, label="95 % interval")
    if crossing.predicted is not None:
        axes.axvline(crossing.predicted, color="C2", linewidth=1.2, linestyle="--", label="theory")
    if shares:
        plain_log_ticks(axes, "x", min(shares), max(shares))
    axes.set(xlabel=axis_words(crossing.axis), ylabel=crossing.measure.replace("_", " "))
    axes.set_title(brief(crossing.spec, without=(crossing.axis,)), fontsize=9, wrap=True)


draw_crossing = saved(make_figure)
