"""Paper A's summary of how dimension and length change the samples needed, in numbers."""

from typing import Any

from mnemoscope.studies.base import Bench, Judgement, Numbers, Size, Study
from mnemoscope.studies.exponents import Grid, draw_critical, measure_exponents, say_exponents
from mnemoscope.studies.panels import finish, log_axes

GRIDS: dict[Size, Grid] = {
    "quick": Grid([("dim", (48, 64, 96)), ("length", (8, 32, 128))], {"vocab": 128}),
    "full": Grid([("dim", (128, 192, 320)), ("length", (16, 64, 256, 1024))], {"vocab": 1024}),
}


def measure(size: Size, bench: Bench) -> Numbers:
    """The critical N for small and large d, short and long sequences."""
    return {**GRIDS[size].base, **measure_exponents(bench, GRIDS[size])}


def corners(numbers: Numbers) -> dict[str, dict[str, Any]]:
    """The four corners of the grid, without those whose search found nothing."""
    points = numbers["points"]
    dims, lengths = ([point[axis] for point in points] for axis in ("dim", "length"))
    by_place = {(point["dim"], point["length"]): point for point in points if point["samples"]}
    places = {
        f"{size} d, {name}": (dim, length)
        for name, length in (("short", min(lengths)), ("long", max(lengths)))
        for size, dim in (("small", min(dims)), ("large", max(dims)))
    }
    return {name: by_place[place] for name, place in places.items() if place in by_place}


def judge(numbers: Numbers) -> Judgement:
    """Does a small d need more samples, and do long sequences?"""
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
    # The ends of the ratio N(small d) / N(large d), from the ends of the two intervals.
    apart = [pair[0]["low"] / pair[1]["high"] for pair in (short, long)]
    near = [pair[0]["high"] / pair[1]["low"] for pair in (short, long)]
    supported = min(apart) > 1 and long[1]["low"] > short[1]["high"]
    return Judgement.by(text, supported=supported, refuted=min(near) < 1 or long[1]["high"] < short[1]["low"])


def draw(numbers: Numbers, figure: Any) -> None:
    """Critical N against L, one line for each d."""
    axes = figure.add_subplot()
    points = [point for point in numbers["points"] if point["samples"]]
    for at, dim in enumerate(sorted({point["dim"] for point in points})):
        line = sorted((point for point in points if point["dim"] == dim), key=lambda point: point["length"])
        draw_critical(axes, "length", line, f"d = {dim}", f"C{at}")
        x = [point["length"] for point in line]
        axes.plot(x, [point["predicted"] for point in line], "x:", color=f"C{at}")
    log_axes(axes, *([point[key] for point in points] for key in ("length", "samples")))
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
