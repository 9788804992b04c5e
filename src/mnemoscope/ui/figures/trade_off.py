"""The trade-off of a plan as a picture: parameters against training tokens."""

from pathlib import Path
from typing import Any

from mnemoscope.experiments.plan import Plan
from mnemoscope.ui.figures.canvas import open_canvas, plain_log_ticks, save


def draw_trade_off(plan: Plan, path: Path) -> None:
    """Write the picture into a .png, .svg or .pdf file."""
    save(make_figure(plan, path), path)


def make_figure(plan: Plan, path: Path | None = None) -> Any:
    """Every way to do the job; the recommended one is marked."""
    figure, axes = open_canvas(path, width=6.4, height=4.2)
    best = plan.recommended
    options = [*plan.alternatives, *([best] if best else [])]
    for name, wide, color in (("attention alone", False, "C0"), ("with an MLP", True, "C1")):
        series = sorted((o for o in options if bool(o.spec.width) == wide), key=lambda option: option.parameters)
        if series:
            axes.plot(
                [option.parameters for option in series],
                [option.tokens for option in series],
                "o" if wide else "o-",
                color=color,
                markersize=4,
                label=name,
            )
        for at, option in enumerate(series):
            word = f"d = {option.spec.dim}" + (f", m = {option.spec.width}" if wide else "")
            # Two models with an MLP may lie side by side: their words stand above and below.
            beside = (-40, -13) if wide and at % 2 else (4, 4)
            axes.annotate(word, (option.parameters, option.tokens), beside, "data", "offset points", fontsize=7)
    if best is not None:
        axes.plot(
            [best.parameters], [best.tokens], "s", color="black", markersize=10, fillstyle="none", label="recommended"
        )
    for name, values in (
        ("x", [option.parameters for option in options]),
        ("y", [option.tokens for option in options]),
    ):
        plain_log_ticks(axes, "x" if name == "x" else "y", min(values), max(values))
    axes.margins(x=0.15)  # the words beside the last point fit in
    axes.set_xlabel("parameters")
    axes.set_ylabel("training tokens, N L")
    axes.legend(fontsize=8)
    return figure
