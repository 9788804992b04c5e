"""Paper A: where the gradient noise binds, the critical N of attention goes as L V d^(-3/2)."""

from typing import Any

from mnemoscope.studies.base import Bench, Judgement, Numbers, Size, Study
from mnemoscope.studies.exponents import (
    Axes,
    draw_exponents,
    judge_leading,
    measure_exponents,
    say_exponents,
)

AXES: dict[Size, Axes] = {
    "quick": [("vocab", (512, 1024)), ("dim", (24, 36)), ("length", (6, 10))],
    "full": [("vocab", (1024, 2048, 4096)), ("dim", (24, 36, 54)), ("length", (6, 12))],
}
LEADING = {"vocab": 1.0, "dim": -1.5, "length": 1.0}


def measure(size: Size, bench: Bench) -> Numbers:
    """Short sequences, V far above d: where attention is right half of the time."""
    return measure_exponents(bench, {}, AXES[size], measure="attention_accuracy")


def judge(numbers: Numbers) -> Judgement:
    """By the powers."""
    return Judgement(say_exponents(numbers), judge_leading(numbers, LEADING))


def draw(numbers: Numbers, figure: Any) -> None:
    """Critical N beside theory's, and the powers."""
    draw_exponents(numbers, figure, LEADING)


STUDY = Study(
    id="a-gradient-noise",
    source="paper A, attention's noise terms",
    statement="For short sequences and V much larger than d, attention is limited by gradient "
    "noise: N d^(3/2) must exceed L V.",
    expected="L V d^-1.5",
    rule="Powers of L, V and d in the critical N. Supported if each is within 0.5 of the claimed "
    "one and theory's power on the same points lies in its 95 % interval (+-0.1). Refuted if an "
    "interval lies further than 0.5 from the claimed power.",
    minutes={"quick": 0.2, "full": 1.0},
    measure=measure,
    judge=judge,
    draw=draw,
)
