"""Paper A's summary of what dimension and length cost in samples, with numbers."""

from typing import Any

from mnemoscope.studies.base import Bench, Judgement, Numbers, Size, Study
from mnemoscope.studies.exponents import Axes, draw_critical, measure_exponents, say_exponents
from mnemoscope.studies.panels import finish
from mnemoscope.ui.figures.canvas import plain_log_ticks

AXES: dict[Size, Axes] = {
    "quick": [("dim", (48, 64, 96)), ("length", (8, 32, 128))],
    "full": [("dim", (128, 192, 320)), ("length", (16, 64, 256, 1024))],
}
VOCAB: dict[Size, int] = {"quick": 128, "full": 1024}


def measure(size: Size, bench: Bench) -> Numbers:
    """The critical N for small and large d, short and long sequences."""
    base = {"vocab": VOCAB[size]}
    return {"vocab": VOCAB[size], **measure_exponents(bench, base, AXES[size])}


def corners(numbers: Numbers) -> dict[str, dict[str, Any]]:
    """The four corners of the grid; a corner whose search found nothing is missing."""
    points = numbers["points"]
    dims = sorted({point["dim"] for point in points})
    lengths = sorted({point["length"] for point in points})
    names = {
        "small d, short": (dims[0], lengths[0]),
        "large d, short": (dims[-1], lengths[0]),
        "small d, long": (dims[0], lengths[-1]),
        "large d, long": (dims[-1], lengths[-1]),
    }
    return {
        name: point
        for name, at in names.items()
        for point in points
        if (point["dim"], point["length"]) == at and point["samples"]
    }


def judge(numbers: Numbers) -> Judgement:
    """Small d costs samples, most of all in long sequences."""
    points = corners(numbers)
    text = "; ".join(
        f"{name} (d={point['dim']}, L={point['length']}): N = {point['samples']:,.0f} "
        f"[{point['low']:,.0f}, {point['high']:,.0f}], theory {point['predicted']:,.0f}"
        for name, point in points.items()
    )
    if len(points) < 4:
        return Judgement(text, "inconclusive")
    short = points["small d, short"], points["large d, short"]
    long = points["small d, long"], points["large d, long"]
    # Ends of the ratio N(small d) / N(large d), from the ends of its two intervals.
    apart = [pair[0]["low"] / pair[1]["high"] for pair in (short, long)]
    near = [pair[0]["high"] / pair[1]["low"] for pair in (short, long)]
    longer = long[1]["low"] > short[1]["high"]
    if min(near) < 1 or long[1]["high"] < short[1]["low"]:
        return Judgement(text, "refuted")
    return Judgement(text, "supported" if min(apart) > 1 and longer else "inconclusive")


def draw(numbers: Numbers, figure: Any) -> None:
    """Critical N against L, a line for each d."""
    axes = figure.add_subplot()
    points = [point for point in numbers["points"] if point["samples"]]
    for at, dim in enumerate(sorted({point["dim"] for point in points})):
        line = sorted((point for point in points if point["dim"] == dim), key=lambda point: point["length"])
        draw_critical(axes, "length", line, f"d = {dim}", f"C{at}")
        x = [point["length"] for point in line]
        axes.plot(x, [point["predicted"] for point in line], "x:", color=f"C{at}")
    lengths, samples = ([point[key] for point in points] for key in ("length", "samples"))
    plain_log_ticks(axes, "x", min(lengths), max(lengths))
    plain_log_ticks(axes, "y", min(samples), max(samples))
    axes.set_title(f"V = {numbers['vocab']:,}, {say_exponents(numbers)}", fontsize=7)
    finish(axes, "length, L", "critical N (crosses: theory)")


STUDY = Study(
    id="a-dimension-and-length",
    revision=1,
    source="paper A (statement)",
    place="critical N over d and L",
    statement="A small dimension needs more samples; short sequences get by with few, long ones must raise d or N.",
    expected="N falls with d and grows with L",
    rule="Critical N (accuracy 0.5) at the four corners of small and large d, short and long sequences. Supported if N "
    "is larger at small d than at large d for both lengths, and larger for long than for short sequences at large d, "
    "95 % intervals apart. Refuted if an order is the other way round, intervals apart.",
    measure=measure,
    judge=judge,
    draw=draw,
)
