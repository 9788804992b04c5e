"""The trade-off of a plan: parameters against training tokens."""

from typing import Any

from mnemoscope.experiments.plan import Plan
from mnemoscope.ui.figures.canvas import open_canvas, plain_log_ticks, saved


def make_figure(plan: Plan) -> Any:
    """Every option; the recommended one is marked."""
    figure, axes = open_canvas(width=6.4, height=4.2)
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
            # Models with an MLP may lie close together: their labels alternate above and below.
            beside = (-40, -13) if wide and at % 2 else (4, 4)
            axes.annotate(word, (option.parameters, option.tokens), beside, "data", "offset points", fontsize=7)
    if best is not None:
        axes.plot(
            [best.parameters], [best.tokens], "s", color="black", markersize=10, fillstyle="none", label="recommended"
        )
    parameters, tokens = ([getattr(option, size) for option in options] for size in ("parameters", "tokens"))
    plain_log_ticks(axes, "x", min(parameters), max(parameters))
    plain_log_ticks(axes, "y", min(tokens), max(tokens))
    axes.margins(x=0.15)  # space for the last point's label
    axes.set(xlabel="parameters", ylabel="training tokens, N L")
    axes.legend(fontsize=8)
    return figure


draw_trade_off = saved(make_figure)
