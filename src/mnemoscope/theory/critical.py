"""Where theory says that a measure crosses a target along one axis."""

import math
from collections.abc import Callable
from typing import Literal

from mnemoscope.fields import Measure
from mnemoscope.spec import Retrieval, SpecError
from mnemoscope.theory.matched import matched_filter_accuracy, matched_filter_derived
from mnemoscope.theory.predict import not_derived, solve

Axis = Literal["samples", "dim", "length"]
# How far the search for a critical value goes, and how fine it is.
SEARCH: dict[Axis, tuple[int, int]] = {
    "samples": (1, 2**31), "dim": (2, 2**20), "length": (1, 2**20)
}  # fmt: skip
FINE = 0.01


def critical_value(
    spec: Retrieval, axis: Axis, target: float = 0.5, measure: Measure = "accuracy"
) -> int | None:
    """Where the predicted measure crosses `target` along an axis, to 1 %.

    The least N or d that reaches it, the largest L that still does; None where none does. N and
    d are searched up to 2**31 and 2**20.
    """
    if not 0 < target < 1:
        raise SpecError("target", f"expected a number between 0 and 1, got {target:g}")
    if not_derived(spec) or (measure == "first_gradient" and not matched_filter_derived(spec)):
        return None
    low, high = SEARCH[axis]
    if spec.embedding == "orthonormal" and axis == "dim":
        low = spec.vocab

    def reaches(value: int) -> bool:
        try:
            return _predicted(spec.replace(**{axis: value}), measure) >= target
        except SpecError:  # past what a spec may hold, which only happens at the far end
            return axis != "length"

    # Longer sequences are harder; more samples and dimensions are easier.
    return last_that(reaches, low, high) if axis == "length" else first_that(reaches, low, high)


def first_that(
    reaches: Callable[[int], bool], low: int, high: int, fine: float = FINE
) -> int | None:
    """The least number of a range that reaches what all above it do; None if none does."""
    if not reaches(high):
        return None
    if reaches(low):
        return low
    return _bracket(lambda n: not reaches(n), low, high, fine)[1]


def last_that(reaches: Callable[[int], bool], low: int, high: int) -> int | None:
    """The largest number that reaches what all below it do, to 1 %; None if none does."""
    if not reaches(low):
        return None
    if reaches(high):
        return high
    return _bracket(reaches, low, high, FINE)[0]


def _bracket(below: Callable[[int], bool], low: int, high: int, fine: float) -> tuple[int, int]:
    """Two numbers as close as asked for, the first below an edge and the second not."""
    while high - low > max(1, fine * low):
        middle = min(max(round(math.sqrt(low * high)), low + 1), high - 1)
        low, high = (middle, high) if below(middle) else (low, middle)
    return low, high


def _predicted(spec: Retrieval, measure: Measure) -> float:
    if measure == "first_gradient":
        return matched_filter_accuracy(spec)
    _, recall = solve(spec)
    return recall.accuracy if measure == "accuracy" else recall.attention_accuracy
