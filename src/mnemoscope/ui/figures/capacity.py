"""Capacities: items against parameters, with the laws for comparison."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from mnemoscope.experiments.capacity import Capacities, Capacity, criterion_name
from mnemoscope.theory.associative import BEST_LINEAR, GUIDE_LINEAR, GUIDE_MLP, GUIDE_MLP_FEW, HEBBIAN_ALL, items_by_law
from mnemoscope.ui.figures.canvas import open_canvas, plain_log_ticks, saved


def make_figure(capacities: Capacities) -> Any:
    """One series of capacities as a matplotlib figure."""
    figure, axes = open_canvas(width=5.6, height=4.2)
    draw_on(axes, capacities)
    figure.legend(loc="outside lower center", fontsize=8)
    return figure


def draw_on(axes: Any, capacities: Capacities) -> None:
    """The series with the laws, on axes of the caller's."""
    spec = capacities.points[0].spec
    right = criterion_name(capacities.points[0].criterion)
    named = "all right" if right == "all" else f"{right} right"
    draw_series(axes, capacities.points, f"{spec.method}, {named}", "C0")
    draw_laws(axes, capacities.points)
    axes.set_title(f"{spec.form} memory", fontsize="medium")


draw_capacity = saved(make_figure)


def draw_series(axes: Any, points: Sequence[Capacity], label: str, color: str) -> None:
    """Capacities with their intervals, against the number of weights of a layer."""
    known = [point for point in points if point.limits.estimate is not None]
    if not known:
        return
    x = [layer(point) for point in known]
    limits = [point.limits for point in known]
    y = np.array([limit.estimate for limit in limits], float)
    low, high = (
        np.array([getattr(limit, end) or limit.estimate for limit in limits], float) for end in ("low", "high")
    )
    axes.errorbar(x, y, yerr=[y - low, high - y], fmt="o", markersize=4, capsize=2, label=label, color=color)


def layer(capacity: Capacity) -> int:
    """d^2, r d or m d: what the laws count."""
    spec = capacity.spec
    return spec.dim * (spec.width or spec.rank or spec.dim)


def draw_laws(axes: Any, points: Sequence[Capacity]) -> None:
    """The laws for these memories, over the range of the points."""
    sizes = [layer(point) for point in points]
    x = np.geomspace(min(sizes) / 1.3, max(sizes) * 1.3, 60)
    spec = points[0].spec
    name = "m d" if spec.width else "r d" if spec.rank else "d²"
    drawn = [np.array([point.limits.estimate or np.nan for point in points], float)]

    def draw(label: str, items: np.ndarray, style: str) -> None:
        axes.plot(x, items, style, color="black", linewidth=0.9, label=label)
        drawn.append(items)

    if spec.width and spec.outputs:
        draw(f"authors' guide: {name} = {GUIDE_MLP_FEW:g} N", x / GUIDE_MLP_FEW, "--")
    elif not spec.outputs:
        laws = [("authors' guide", GUIDE_MLP if spec.width else GUIDE_LINEAR, "--")]
        if spec.full_rank:
            laws += [("all right, Hebbian", HEBBIAN_ALL, "-"), ("all right, best (conjectured)", BEST_LINEAR, ":")]
        for label, constant, style in laws:
            items = np.array([items_by_law(float(weights), constant) for weights in x])
            draw(f"{label}: {name} = {constant:g} N ln N", items, style)
    plain_log_ticks(axes, "x", x[0], x[-1])
    plain_log_ticks(axes, "y", *(float(f(np.concatenate(drawn))) for f in (np.nanmin, np.nanmax)))
    axes.set(xlabel=f"{name}, weights of a layer" if name != "d²" else "d², weights", ylabel="items stored, N")
