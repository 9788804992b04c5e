"""Items recalled against d, with the power law through them and theory's."""

from typing import Any

import numpy as np

from mnemoscope.experiments.recalled import Growth
from mnemoscope.ui.figures.canvas import open_canvas, plain_log_ticks, saved


def make_figure(growth: Growth) -> Any:
    """One series of counts as a matplotlib figure."""
    figure, axes = open_canvas(width=5.6, height=4.2)
    known = [point for point in growth.points if point.estimate]
    spec = growth.points[0].spec
    x = np.array([float(point.spec.dim) for point in known])
    y, low, high = (np.array([getattr(point, name) or point.estimate for point in known], float) for name in ENDS)
    axes.errorbar(x, y, yerr=[y - low, high - y], fmt="o", markersize=4, capsize=2, label=f"{spec.method}, recalled")
    middle = np.exp(np.log(x).mean()), np.exp(np.log(y).mean())
    for power, label, style in (
        (growth.power and growth.power.value, "fitted", "-"),
        (growth.predicted, "theory's power", "--"),
    ):
        if power is not None:
            line = middle[1] * (x / middle[0]) ** power
            axes.plot(x, line, style, color="black", linewidth=0.9, label=f"{label}: d^{power:.2f}")
    if len(x):
        plain_log_ticks(axes, "x", x[0] / 1.1, x[-1] * 1.1)
        plain_log_ticks(axes, "y", max(low.min(), 0.5), high.max())
    axes.set(xlabel="d", ylabel="items recalled", title=f"{spec.optimiser}, items {spec.frequencies}")
    axes.legend(fontsize=8)
    return figure


ENDS = ("estimate", "low", "high")
draw_recalled = saved(make_figure)
