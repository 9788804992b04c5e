"""A news summary of paper A says that N grows like d times L."""

from typing import Any

from mnemoscope.studies.a_dimension_and_length import measure
from mnemoscope.studies.base import Judgement, Numbers, Study, Verdict, agreed, within
from mnemoscope.studies.exponents import draw_exponents, say_exponents

CLAIMED = {"dim": 1.0, "length": 1.0}


def judge(numbers: Numbers) -> Judgement:
    """Do the powers of d and L come near one?"""
    said = say_exponents(numbers)
    powers = {one["axis"]: one for one in numbers["exponents"]}
    told: list[Verdict] = [
        within(powers[axis]["low"], powers[axis]["high"], 0.5, 1.5) for axis in CLAIMED
    ]
    return Judgement(said, "refuted" if "refuted" in told else agreed(told))


def draw(numbers: Numbers, figure: Any) -> None:
    """Critical N beside theory's, and the powers."""
    draw_exponents(numbers, figure, CLAIMED)


STUDY = Study(
    id="news-dl",
    source="news",
    place="summary of paper A",
    statement="The number of samples that recall needs grows like d times L.",
    expected="N as d^1 L^1",
    rule="Powers of d and L in the critical N (accuracy 0.5). Supported if both 95 % intervals "
    "lie within 0.5 to 1.5, refuted if one lies outside.",
    measure=measure,
    judge=judge,
    draw=draw,
)
