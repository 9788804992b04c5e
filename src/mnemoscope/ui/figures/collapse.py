"""The collapse: settings of many sizes on one curve."""

from collections.abc import Sequence
from typing import Any

from mnemoscope.experiments.collapse import Point
from mnemoscope.ui.figures.canvas import open_canvas, saved

TITLES = {"matched_filter": "matched filter", "message_assignment": "message passing"}
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#56B4E9")
MARKS = ("o", "s", "^", "D", "v", "x")


def make_figure(points: Sequence[Point]) -> Any:
    """One panel a decoder: the share of labels it names against the collapse's variable."""
    figure, axes = open_canvas(width=8.4, height=3.6, columns=len(TITLES))
    shapes = list(dict.fromkeys((point.spec.vocab, point.spec.dim) for point in points))
    lengths = list(dict.fromkeys(point.spec.length for point in points))
    for panel, (name, title) in zip(axes, TITLES.items(), strict=True):
        for row, (V, d) in enumerate(shapes):
            for column, L in enumerate(lengths):
                series = [p for p in points if (p.spec.vocab, p.spec.dim, p.spec.length) == (V, d, L)]
                style = {"color": COLOURS[row % len(COLOURS)], "marker": MARKS[column % len(MARKS)]}
                x, y = [point.x for point in series], [point.shares[name].value for point in series]
                panel.plot(x, y, **style, markersize=4, linewidth=0.8, label=f"V={V} d={d} L={L}")
        panel.set(xscale="log", ylim=(-0.02, 1.02), xlabel=r"$N d^2 / (L V^2 \ln V)$")
        panel.set_title(title, fontsize="medium")
        panel.grid(visible=True, linewidth=0.3)
    axes[0].set_ylabel("share of labels named")
    figure.legend(*axes[0].get_legend_handles_labels(), fontsize=7, loc="outside right upper")
    return figure


draw_collapse = saved(make_figure)
