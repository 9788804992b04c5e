"""A reviewer's question about paper A: what happens beyond three steps?"""

from mnemoscope.studies.a_first_steps import draw, measure, say
from mnemoscope.studies.base import Judgement, Numbers, Study


def judge(numbers: Numbers) -> Judgement:
    """Does more training help somewhere, and hurt nowhere?"""
    gains = [one["gain"] for one in numbers["rows"]]
    if any(one["high"] < 0 for one in gains):
        return Judgement(say(numbers), "refuted")
    helped = any(one["low"] > 0 for one in gains)
    return Judgement(say(numbers), "supported" if helped else "inconclusive")


STUDY = Study(
    id="q-beyond",
    source="review",
    place="what happens beyond three steps?",
    statement="Training beyond the three steps goes on to improve recall.",
    expected="accuracy on fresh sequences rises, or stays",
    rule="Accuracy after AdamW goes on less accuracy after three steps, paired by seed, at "
    "several N. Supported if a 95 % interval lies above 0 and none below, refuted if one lies "
    "below.",
    measure=measure,
    judge=judge,
    draw=draw,
)
