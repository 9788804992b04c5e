"""Where a predicted measure crosses a target along one axis."""

import math
from collections.abc import Callable
from importlib import import_module
from typing import Literal, cast

from mnemoscope.spec import Retrieval, Spec, SpecError
from mnemoscope.spec.token_laws import UNIFORM
from mnemoscope.spec.validators import Measure
from mnemoscope.theory.matched_filter import matched_filter_accuracy, matched_filter_doubt
from mnemoscope.theory.predict import solve
from mnemoscope.theory.registry import derived_laws, embedding_law, not_derived
from mnemoscope.theory.stated import stand_in

Axis = Literal["samples", "dim", "length"]
TrainedAxis = Literal["samples", "dim", "vocab"]
# The range of the search for a critical value, and its relative precision.
SEARCH: dict[Axis, tuple[int, int]] = {"samples": (1, 2**31), "dim": (2, 2**20), "length": (1, 2**20)}
# At the end of training the length matters only through the attention that training starts with.
TRAINED_SEARCH: dict[TrainedAxis, tuple[int, int]] = {"samples": (1, 2**31), "dim": (2, 2**20), "vocab": (2, 2**31 - 1)}
FINE = 0.01
# Ratio of successive numbers in a search for peaks.
PEAK_STEP = 1.25


def critical_value(
    spec: Retrieval,
    axis: Axis | TrainedAxis | Literal["width"],
    target: float = 0.5,
    measure: Measure = "accuracy",
    *,
    trained: bool = False,
) -> int | None:
    """Where the predicted measure crosses `target` along an axis, to 1 %.

    The smallest N or d that reaches it, or the largest L or V that still does; None where none does. For
    the first gradient, None also where the answer is outside the domain of (D4). After the three steps the axis is
    samples, dim or length; at the end of training, with `trained`, samples, dim or vocab.
    """
    if not 0 < target < 1:
        raise SpecError("target", f"expected a number between 0 and 1, got {target:g}")
    search: dict[str, tuple[int, int]] = dict(TRAINED_SEARCH.items() if trained else SEARCH.items())
    if axis not in search:
        raise SpecError("axis", f"expected one of {', '.join(search)}, got {axis!r}")
    predicted = _at_the_end(spec, target, measure) if trained else lambda spec: _predicted(spec, measure)
    standing = stand_in(spec)
    if not_derived(standing.three_steps() if trained else standing, trained=trained):
        return None
    if measure == "first_gradient" and spec.tokens != UNIFORM:
        return None  # (D4) is for uniform tokens
    low, high = search[axis]
    tied = embedding_law(standing.embedding).least_dim(spec.vocab) > 1
    if axis == "dim" and tied:
        low = max(low, spec.vocab)
    if axis == "vocab":
        # A learner that has seen N samples names at most N of V facts, and one more by chance.
        high = min(spec.dim if tied else high, int(spec.samples / target) + 2)
    else:
        high = spec.most_allowed(axis, min(spec.value_of(axis), high), high)

    def at(value: int) -> float:
        return predicted(stand_in(spec.replace(**{axis: value})))

    def reaches(value: int) -> bool:
        # Fewer samples than a batch are no setting.
        return spec.allows(axis, value) and at(value) >= target

    # Longer sequences and larger vocabularies are harder; more samples and dimensions are easier.
    if axis == "vocab":
        # Not the smallest vocabularies, though: they fill a long sequence with repetitions, and attention errs.
        crossing = last_peak_that(at, target, low, high)
    elif axis == "length":
        crossing = last_that(reaches, low, high)
    elif trained and axis == "samples":
        crossing = _least_samples(spec, target, measure)
    else:
        crossing = first_that(reaches, low, high)
    if crossing is None or measure != "first_gradient":
        return crossing
    return None if matched_filter_doubt(spec.replace(**{axis: crossing})) else crossing


def has_trained_law(spec: Spec) -> bool:
    """Whether the law of the end of training is a setting's own: it trains on after three steps at their limits."""
    if not derived_laws(spec.kind):
        return False
    spec = cast(Retrieval, spec)
    return spec.then != "none" and (spec.eta, spec.gamma) == ("limit", "limit")


def _least_samples(spec: Retrieval, target: float, measure: Measure) -> int | None:
    """The smallest N that reaches the target at the end of training, of which more may be too many."""
    laws = import_module("mnemoscope.theory.trained.fast")
    most = laws.most_samples(spec)
    if measure == "attention_accuracy":
        return first_that(lambda n: laws.attended_share(spec.replace(samples=n)) >= target, 1, most)
    least = laws.accuracy_within(spec.replace(samples=most), target)[1]
    return None if least is None else least.samples


def first_that(reaches: Callable[[int], bool], low: int, high: int, fine: float = FINE) -> int | None:
    """The smallest number for which `reaches`, which stays true above it; None if there is none."""
    if not reaches(high):
        return None
    if reaches(low):
        return low
    return _bracket(lambda n: not reaches(n), low, high, fine)[1]


def last_that(reaches: Callable[[int], bool], low: int, high: int) -> int | None:
    """The largest number, to 1 %, for which `reaches`, which is true below it; None if there is none."""
    if not reaches(low):
        return None
    if reaches(high):
        return high
    return _bracket(reaches, low, high, FINE)[0]


def last_peak_that(value: Callable[[int], float], target: float, low: int, high: int) -> int | None:
    """The largest number whose value is at least `target`, where the value may rise and fall.

    The search goes down in steps of PEAK_STEP and climbs every peak that might reach the target.
    """
    at, near = high, value(high)
    if near >= target:
        return high
    above, beyond = high, -math.inf  # the neighbour above, and its value
    while True:
        if near >= target:
            return _bracket(lambda n: value(n) >= target, at, above, 0.0)[0]
        below = max(low, min(at - 1, round(at / PEAK_STEP)))
        next_value = value(below) if below < at else -math.inf
        # A peak that could reach the target within a step is at least half as high here.
        if 2 * near >= target and near >= next_value and near >= beyond:
            peak = _climb(value, target, below, above)
            if peak is not None:
                return _bracket(lambda n: value(n) >= target, peak, above, 0.0)[0]
        if at <= low:
            return None
        at, near, above, beyond = below, next_value, at, near


def _climb(value: Callable[[int], float], target: float, low: int, high: int) -> int | None:
    """A number whose value is at least `target`, in a range with one peak; None if there is none."""
    while high - low > 2:
        left, right = low + (high - low) // 3, high - (high - low) // 3
        lower, upper = value(left), value(right)
        for at, height in ((left, lower), (right, upper)):
            if height >= target:
                return at
        low, high = (left, high) if lower < upper else (low, right)
    return next((n for n in range(high, low - 1, -1) if value(n) >= target), None)


def _bracket(below: Callable[[int], bool], low: int, high: int, fine: float) -> tuple[int, int]:
    """Two numbers within relative distance `fine`: `below` is true of the first, not of the second."""
    while high - low > max(1, fine * low):
        middle = min(max(round(math.sqrt(low * high)), low + 1), high - 1)
        low, high = (middle, high) if below(middle) else (low, middle)
    return low, high


def _predicted(spec: Retrieval, measure: Measure) -> float:
    if measure == "first_gradient":
        return matched_filter_accuracy(spec)
    if spec.tokens != UNIFORM:
        frequencies = import_module("mnemoscope.theory.frequencies.predict")
        recall = frequencies.solve(spec, frequencies.FEW)
    else:
        _, recall = solve(spec)
    return recall.accuracy if measure == "accuracy" else recall.attention_accuracy


def _at_the_end(spec: Retrieval, target: float, measure: Measure) -> Callable[[Retrieval], float]:
    """The measure of a trained model; an error where training to the end has no law."""
    if measure == "first_gradient":
        raise SpecError("measure", "expected accuracy or attention_accuracy for a trained model, got first_gradient")
    # Imported late: these laws build on this room's.
    import_module("mnemoscope.theory.trained.predict").check_trained(spec)
    laws = import_module("mnemoscope.theory.trained.fast")
    return (lambda spec: laws.trained_accuracy(spec, target)) if measure == "accuracy" else laws.attended_share
