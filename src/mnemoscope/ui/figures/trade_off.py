"""The trade-off of a plan as a picture: parameters against training tokens."""

from pathlib import Path
from typing import Any

from mnemoscope.experiments.plan import Plan
from mnemoscope.ui.figures.canvas import open_canvas, plain_log_ticks, save


def draw_trade_off(made: Plan, path: Path) -> None:
    """Write the picture into a .png, .svg or .pdf file."""
    save(make_figure(made, path), path)


def make_figure(made: Plan, path: Path | None = None) -> Any:
    """Every way to do the job; the recommended one is marked."""
    figure, axes = open_canvas(path, width=6.4, height=4.2)
    best = made.recommended
    ways = [*made.alternatives, *([best] if best else [])]
    for name, wide, color in (("attention alone", False, "C0"), ("with an MLP", True, "C1")):
        some = sorted((one for one in ways if bool(one.spec.width) == wide), key=lambda one: one.parameters)
        if some:
            axes.plot(
                [one.parameters for one in some],
                [one.tokens for one in some],
                "o" if wide else "o-",
                color=color,
                markersize=4,
                label=name,
            )
        for at, one in enumerate(some):
            word = f"d = {one.spec.dim}" + (f", m = {one.spec.width}" if wide else "")
            # Two models with an MLP may lie side by side: their words stand above and below.
            beside = (-40, -13) if wide and at % 2 else (4, 4)
            axes.annotate(word, (one.parameters, one.tokens), beside, "data", "offset points", fontsize=7)
    if best is not None:
        axes.plot(
            [best.parameters], [best.tokens], "s", color="black", markersize=10, fillstyle="none", label="recommended"
        )
    for name, values in (("x", [one.parameters for one in ways]), ("y", [one.tokens for one in ways])):
        plain_log_ticks(axes, "x" if name == "x" else "y", min(values), max(values))
    axes.margins(x=0.15)  # the words beside the last point fit in
    axes.set_xlabel("parameters")
    axes.set_ylabel("training tokens, N L")
    axes.legend(fontsize=8)
    return figure
