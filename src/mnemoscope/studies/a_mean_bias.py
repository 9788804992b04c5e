"""Paper A: where the mean bias binds, the critical N of attention goes as L^2 V^(1/2) d^(-3/2)."""

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
    "quick": [("vocab", (128, 192)), ("dim", (32, 48)), ("length", (64, 96))],
    "full": [("vocab", (256, 512, 1024)), ("dim", (64, 96, 128)), ("length", (128, 256))],
}
LEADING = {"vocab": 0.5, "dim": -1.5, "length": 2.0}


def measure(size: Size, bench: Bench) -> Numbers:
    """Long sequences: the critical N at which attention is right half of the time."""
    return measure_exponents(bench, {}, AXES[size], measure="attention_accuracy", tolerance=0.1)


def judge(numbers: Numbers) -> Judgement:
    """By the powers."""
    return Judgement(say_exponents(numbers), judge_leading(numbers, LEADING))


def draw(numbers: Numbers, figure: Any) -> None:
    """Critical N beside theory's, and the powers."""
    draw_exponents(numbers, figure, LEADING)


STUDY = Study(
    id="a-mean-bias",
    source="paper A, attention's noise terms",
    statement="For long sequences attention is limited by the mean bias: N d^(3/2) must exceed "
    "L^2 V^(1/2).",
    expected="L^2 V^0.5 d^-1.5",
    rule="Powers of L, V and d in the critical N. Supported if each is within 0.5 of the claimed "
    "one and theory's power on the same points lies in its 95 % interval (+-0.1). Refuted if an "
    "interval lies further than 0.5 from the claimed power.",
    minutes={"quick": 1.2, "full": 1.0},
    measure=measure,
    judge=judge,
    draw=draw,
)
