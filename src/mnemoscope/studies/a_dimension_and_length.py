"""Paper A's summary of what dimension and length cost in samples, with numbers."""

from typing import Any

from mnemoscope.studies.base import Bench, Judgement, Numbers, Size, Study
from mnemoscope.studies.exponents import Axes, draw_critical, measure_exponents, say_exponents
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
    dims = sorted({one["dim"] for one in points})
    lengths = sorted({one["length"] for one in points})
    names = {
        "small d, short": (dims[0], lengths[0]),
        "large d, short": (dims[-1], lengths[0]),
        "small d, long": (dims[0], lengths[-1]),
        "large d, long": (dims[-1], lengths[-1]),
    }
    return {
        name: one
        for name, at in names.items()
        for one in points
        if (one["dim"], one["length"]) == at and one["samples"]
    }


def judge(numbers: Numbers) -> Judgement:
    """Small d costs samples, most of all in long sequences."""
    told = corners(numbers)
    said = "; ".join(
        f"{name} (d={one['dim']}, L={one['length']}): N = {one['samples']:,.0f} "
        f"[{one['low']:,.0f}, {one['high']:,.0f}], theory {one['predicted']:,.0f}"
        for name, one in told.items()
    )
    if len(told) < 4:
        return Judgement(said, "inconclusive")
    short = told["small d, short"], told["large d, short"]
    long = told["small d, long"], told["large d, long"]
    # Ends of the ratio N(small d) / N(large d), from the ends of its two intervals.
    apart = [pair[0]["low"] / pair[1]["high"] for pair in (short, long)]
    near = [pair[0]["high"] / pair[1]["low"] for pair in (short, long)]
    longer = told["large d, long"]["low"] > told["large d, short"]["high"]
    if min(near) < 1 or told["large d, long"]["high"] < told["large d, short"]["low"]:
        return Judgement(said, "refuted")
    return Judgement(said, "supported" if min(apart) > 1 and longer else "inconclusive")


def draw(numbers: Numbers, figure: Any) -> None:
    """Critical N against L, a line for each d."""
    axes = figure.add_subplot()
    points = [one for one in numbers["points"] if one["samples"]]
    for at, dim in enumerate(sorted({one["dim"] for one in points})):
        some = sorted((one for one in points if one["dim"] == dim), key=lambda one: one["length"])
        draw_critical(axes, "length", some, f"d = {dim}", f"C{at}")
        x = [one["length"] for one in some]
        axes.plot(x, [one["predicted"] for one in some], "x:", color=f"C{at}")
    plain_log_ticks(axes, "x", *_ends([one["length"] for one in points]))
    plain_log_ticks(axes, "y", *_ends([one["samples"] for one in points]))
    axes.set_xlabel("length, L")
    axes.set_ylabel("critical N (crosses: theory)")
    axes.set_title(f"V = {numbers['vocab']:,}, {say_exponents(numbers)}", fontsize=7)
    axes.legend(fontsize=7)


def _ends(values: list[float]) -> tuple[float, float]:
    return min(values), max(values)


STUDY = Study(
    id="a-dimension-and-length",
    revision=1,
    source="paper A (statement)",
    place="critical N over d and L",
    statement="A small dimension needs more samples; short sequences get by with few, long ones must raise d or N.",
    expected="N falls with d and grows with L",
    rule="Critical N (accuracy 0.5) at the four corners of small and large d, short and long "
    "sequences. Supported if N is larger at small d than at large d for both lengths, and larger "
    "for long than for short sequences at large d, 95 % intervals apart. Refuted if an order is "
    "the other way round, intervals apart.",
    measure=measure,
    judge=judge,
    draw=draw,
)
