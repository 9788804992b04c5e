"""The trade-off of a plan: parameters against training tokens, shown once in a step."""

from typing import Any

from mnemoscope.experiments.plan import Plan
from mnemoscope.ui.figures.canvas import open_canvas, plain_log_ticks, saved


# Below this width in inches labels need more of the axes, and there are fewer of them.
NARROW = 4.5


def make_figure(plan: Plan) -> Any:
    """Every option, with the recommended one marked."""
    figure, axes = open_canvas(width=6.4, height=4.2)
    draw_on(axes, plan)
    return figure


def draw_on(axes: Any, plan: Plan) -> None:
    """The options on axes of the caller's."""
    best, narrow = plan.recommended, axes.figure.get_figwidth() < NARROW
    options = [*plan.alternatives, *([best] if best else [])]
    repeated = any(option.shown > option.tokens for option in options)
    parameters, tokens = ([getattr(option, size) for option in options] for size in ("parameters", "shown"))
    for name, wide, style, color in (("attention alone", False, "o-", "C0"), ("with an MLP", True, "o", "C1")):
        series = sorted((o for o in options if bool(o.spec.width) == wide), key=lambda option: option.parameters)
        points = [(option.parameters, option.shown) for option in series]
        if series:
            axes.plot(*zip(*points, strict=True), style, color=color, markersize=4, label=name)
        for at, (option, point) in enumerate(zip(series, points, strict=True)):
            if wide and narrow and option is not best:
                continue  # its name would stand on another's
            label = f"d = {option.spec.dim}" + (f", m = {option.spec.width}" if wide else "")
            offset, align = (4, 4), "left"
            if option.parameters == max(parameters):  # to the right there is no space, and below nothing in the way
                offset, align = (-3, -11), "right"
            elif wide:  # models with an MLP may lie close together: their labels alternate above and below
                offset, align = (0, -13 if at % 2 else 7), "center"
            axes.annotate(label, point, offset, "data", "offset points", ha=align, fontsize=7)
    if best is not None:
        marker = {"color": "black", "markersize": 10, "fillstyle": "none", "label": "recommended"}
        axes.plot([best.parameters], [best.shown], "s", **marker)
    plain_log_ticks(axes, "x", min(parameters), max(parameters))
    plain_log_ticks(axes, "y", min(tokens), max(tokens))
    axes.margins(0.25 if narrow else 0.12)
    axes.set(xlabel="parameters", ylabel="training tokens, N L" + (" times the steps" if repeated else ""))
    # Above the axes: within them it would cover a label somewhere.
    axes.legend(
        fontsize=7, loc="lower center", bbox_to_anchor=(0.4, 1), ncols=3, frameon=False, columnspacing=1, handlelength=1
    )


draw_trade_off = saved(make_figure)
