"""Paper A: what the first gradient knows is one product, N d^2 / (L V^2 ln V)."""

from typing import Any

from mnemoscope.studies.base import Bench, Judgement, Numbers, Size, Study
from mnemoscope.studies.exponents import (
    Axes,
    draw_exponents,
    judge_leading,
    measure_exponents,
    say_exponents,
)

# d^2 / V is large, where the law holds; the law's (1 + V/d)^2 becomes (V/d)^2 where V/d is, too.
AXES: dict[Size, Axes] = {
    "quick": [("vocab", (256, 384, 512)), ("dim", (128, 192)), ("length", (16, 32))],
    "full": [("vocab", (8192, 11585, 16384)), ("dim", (1060, 1240, 1450)), ("length", (64, 128))],
}
LEADING = {"vocab": 2.0, "dim": -2.0, "length": 1.0}
TOLERANCE: dict[Size, float] = {"quick": 0.08, "full": 0.04}


def measure(size: Size, bench: Bench) -> Numbers:
    """Where the matched filter names half of the tokens from the first gradient alone."""
    return measure_exponents(
        bench, {"test_samples": 64}, AXES[size], measure="first_gradient", log_of="vocab",
        tolerance=TOLERANCE[size],
    )  # fmt: skip


def judge(numbers: Numbers) -> Judgement:
    """Multiplied, not added, with the claimed powers."""
    forms = numbers["forms"]
    said = f"{say_exponents(numbers)}, over ln V; the axes: {forms}"
    verdict = judge_leading(numbers, LEADING)
    if forms == "additive":
        verdict = "refuted"
    return Judgement(said, verdict if forms == "multiplicative" or verdict == "refuted" else
                     "inconclusive")  # fmt: skip


def draw(numbers: Numbers, figure: Any) -> None:
    """Critical N beside theory's, and the powers."""
    draw_exponents(numbers, figure, LEADING)


STUDY = Study(
    id="a-first-gradient",
    source="ours, after paper A",
    place="lower bound",
    statement="Samples, dimension, length and vocabulary are coupled by a product: the first "
    "gradient names the labels when N d^2 exceeds L V^2 ln V.",
    expected="N / ln V as L V^2 d^-2, multiplied",
    rule="Powers of L, V and d in the critical N over ln V, and Akaike's criterion between a "
    "product and a sum. Supported if the product wins decisively, each power is within 0.5 of "
    "the claimed one, and theory's on the same points lies in its 95 % interval (+-0.1). Refuted "
    "if the sum wins, or an interval lies further than 0.5 from the claimed power.",
    measure=measure,
    judge=judge,
    draw=draw,
)
