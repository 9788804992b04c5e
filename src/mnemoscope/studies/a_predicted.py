"""Paper A's table: predicted and observed critical N agree, for small and large d and L."""

from collections.abc import Sequence
from typing import Any

from mnemoscope.spec import Retrieval
from mnemoscope.studies.base import Bench, Judgement, Numbers, Size, Study
from mnemoscope.studies.exponents import critical_points, pool_points
from mnemoscope.studies.panels import draw_estimates, finish, log_axes
from mnemoscope.theory.critical import critical_value

# Settings that no other study and no validation uses.
VOCAB: dict[Size, int] = {"quick": 128, "full": 1024}
DIMS: dict[Size, tuple[int, int]] = {"quick": (46, 110), "full": (150, 300)}
LENGTHS: dict[Size, tuple[int, int]] = {"quick": (8, 128), "full": (24, 768)}
# Prediction and observation agree within this factor. N varies by a factor of 40 over the grid, so a theory that misses
# d or L is further off.
FACTOR = 1.5


def measure(size: Size, bench: Bench) -> Numbers:
    """The critical N at every corner, searched without theory, and theory's."""
    specs = [Retrieval(vocab=VOCAB[size], dim=d, length=L, samples=2) for d in DIMS[size] for L in LENGTHS[size]]
    points = critical_points(bench, specs)
    return {
        "vocab": VOCAB[size],
        "points": [
            {**point, "predicted": critical_value(spec, "samples")} for spec, point in zip(specs, points, strict=True)
        ],
    }


def judge_all(bases: Sequence[Numbers]) -> Judgement:
    """By the ratio of observed to predicted N at every corner."""
    points = pool_points([numbers["points"] for numbers in bases], ("dim", "length"), "samples")
    known = [point for point in points if point["predicted"]]
    text = "observed over predicted N: " + ", ".join(
        f"{point['samples'] / point['predicted']:.2f} [{point['low'] / point['predicted']:.2f}, "
        f"{point['high'] / point['predicted']:.2f}] at d = {point['dim']}, L = {point['length']} "
        f"(N = {point['samples']:,.0f})"
        for point in known
    )
    boxes = [(point, point["predicted"] / FACTOR, point["predicted"] * FACTOR) for point in known]
    outside = any(point["high"] < least or point["low"] > most for point, least, most in boxes)
    inside = all(least < point["low"] and point["high"] < most for point, least, most in boxes)
    return Judgement.by(text, supported=inside and len(known) == len(bases[0]["points"]), refuted=outside)


def draw(numbers: Numbers, figure: Any) -> None:
    """Observed against predicted N."""
    axes = figure.add_subplot()
    known = [point for point in numbers["points"] if point["samples"] and point["predicted"]]
    for at, point in enumerate(known):
        label = f"d = {point['dim']}, L = {point['length']}"
        draw_estimates(axes, [point["predicted"]], [point], "samples", label, f"C{at}")
    values = [point[key] for point in known for key in ("samples", "predicted")]
    ends = min(values), max(values)
    axes.plot(ends, ends, color="black", linewidth=0.8)
    for factor in (1 / FACTOR, FACTOR):
        axes.plot(ends, [factor * end for end in ends], ":", color="black", linewidth=0.8)
    log_axes(axes, ends, [ends[0] / FACTOR, ends[1] * FACTOR])
    axes.set_title(f"V = {numbers['vocab']:,}; dotted: a factor of {FACTOR:g}", fontsize=8)
    finish(axes, "predicted critical N", "observed critical N")


STUDY = Study(
    id="a-predicted",
    revision=1,
    source="ours, after paper A",
    place="table of predicted and observed critical N; the prediction here is ours",
    statement="Predicted and observed critical N are consistent, for small and large dimension, short and long "
    "sequences.",
    expected="ratios within a factor of 1.5",
    rule="Critical N (accuracy 0.5) at four settings that nothing else uses, searched without theory, over theory's, "
    "the bases pooled. Supported if all four 95 % intervals of the ratio lie within 1/1.5 to 1.5, refuted if one lies "
    "outside.",
    measure=measure,
    draw=draw,
    judge_all=judge_all,
)
