"""A reviewer's question about paper A: is the coupling of L and V real?"""

from typing import Any

from mnemoscope.studies.base import Bench, Judgement, Numbers, Size, Study
from mnemoscope.studies.exponents import Axes, draw_exponents, measure_exponents, say_exponents

AXES: dict[Size, Axes] = {
    "quick": [("vocab", (128, 192, 256)), ("length", (16, 32, 64))],
    "full": [("vocab", (512, 1024, 2048)), ("length", (32, 64, 128, 256))],
}
DIM: dict[Size, int] = {"quick": 96, "full": 512}


def measure(size: Size, bench: Bench) -> Numbers:
    """The critical N of the first gradient over L and V."""
    return measure_exponents(
        bench, {"dim": DIM[size], "test_samples": 64}, AXES[size], measure="first_gradient"
    )


def judge(numbers: Numbers) -> Judgement:
    """By which form says the points better."""
    criterion = numbers["criterion"]
    said = say_exponents(numbers)
    if criterion is not None:
        said += f"; Akaike's criterion is {criterion:+.1f} for a product over a sum"
    match numbers["forms"]:
        case "multiplicative":
            return Judgement(said, "supported")
        case "additive":
            return Judgement(said, "refuted")
    return Judgement(said, "inconclusive")


def draw(numbers: Numbers, figure: Any) -> None:
    """Critical N beside theory's, and the powers."""
    draw_exponents(numbers, figure)


STUDY = Study(
    id="q-coupling",
    source="review",
    place="why do L and V couple?",
    statement="Length and vocabulary are coupled: what a longer sequence costs is multiplied, "
    "not added, to what a larger vocabulary costs.",
    expected="a product of powers of L and V",
    rule="A product of powers and a sum of powers are fitted to the critical N of the first "
    "gradient over a grid of L and V. Supported if Akaike's criterion prefers the product by 4 "
    "or more, refuted if it prefers the sum by as much.",
    measure=measure,
    judge=judge,
    draw=draw,
)
