"""Search for where a noisy measure crosses a target, as a generator of questions.

1. Try both ends of the range. If the easy end misses the target, or the hard end reaches it, the status says so. Steps
   of a factor of four close a range without an upper end.
2. Bisect in the logarithm with few seeds, from a guess if there is one, until the bracket is narrow.
3. Measure three points around the crossing with the same seeds; add seeds until the interval is narrow enough, or
   none is left.

The search only asks; its caller runs the trials, possibly of several searches side by side.
"""

import math
import statistics
from collections.abc import Callable, Generator, Mapping
from dataclasses import replace
from typing import TypeVar

from mnemoscope.experiments.estimate.estimate import Estimate
from mnemoscope.experiments.estimate.threshold import find_crossing, fit_curve

# A place is a value on the axis and the number of a seed, from 0 on.
Place = tuple[int, int]
Answers = Mapping[Place, float | None]
FEW_SEEDS = 4
NARROW = 1.5
LARGEST = 2**24

# Yields places to measure, is sent their measures (None: crashed), and returns the estimate.
Search = Generator[list[Place], Answers, Estimate]

A = TypeVar("A")
R = TypeVar("R")


def drive(
    search: Generator[list[Place], Mapping[Place, A], R], answer: Callable[[list[Place]], Mapping[Place, A]]
) -> R:
    """Run a search to its end, with `answer` for its questions."""
    places = next(search)
    while True:
        try:
            places = search.send(answer(places))
        except StopIteration as end:
            return end.value


def search_crossing(
    low: int,
    high: int | None,
    target: float,
    *,
    rising: bool,
    guess: float | None = None,
    tolerance: float = 0.1,
    most_seeds: int = 32,
) -> Search:
    """Find where the measure crosses `target` between `low` and `high`, to +-`tolerance`.

    `rising` says whether the measure grows along the axis; only then may `high` be None.
    """
    known: dict[Place, float | None] = {}
    few = min(FEW_SEEDS, most_seeds)

    def ask(values: list[int], seeds: int) -> Generator[list[Place], Answers, None]:
        wanted = [(value, seed) for value in values for seed in range(seeds)]
        new = [place for place in wanted if place not in known]
        if new:
            known.update((yield new))

    def reaches(value: int, surely: bool = False) -> Generator[list[Place], Answers, bool]:
        """Judged by few seeds or, `surely`, by enough to be two standard errors away."""
        seeds = few
        while True:
            yield from ask([value], seeds)
            measures = [measured for seed in range(seeds) if (measured := known[value, seed]) is not None]
            if not measures:
                raise _AllCrashed
            count = len(measures)
            mean = math.fsum(measures) / count
            error = statistics.stdev(measures) / math.sqrt(count) if count > 1 else 0.0
            if not surely or abs(mean - target) > 2 * error or seeds == most_seeds:
                return mean >= target
            seeds = min(seeds + FEW_SEEDS, most_seeds)

    try:
        unbounded, lowest = high is None, low
        if high is None:
            low, high = yield from _close(low, reaches)
        while (yield from reaches(low if rising else high, surely=True)):
            if not unbounded or low == lowest:
                return Estimate("below-range" if rising else "above-range")
            low, high = max(lowest, low // 4), low  # few seeds misjudged it: step back
        while not (yield from reaches(high if rising else low, surely=True)):
            if not unbounded or high >= LARGEST:
                return Estimate("above-range" if rising else "below-range")
            low, high = high, min(4 * high, LARGEST)  # few seeds misjudged it: go on
        ends = low, high
        low, high = yield from _bracket(low, high, reaches, rising, guess)
    except _AllCrashed:
        return Estimate("unresolved")
    seeds = few
    points = _about(known, target, rising, *ends)
    while True:
        seeds = min(seeds + FEW_SEEDS, most_seeds)
        yield from ask(points, seeds)
        crossing = crossing_of(known, target, rising)
        if crossing.width <= tolerance:
            return crossing
        if seeds == most_seeds:
            return replace(crossing, status="unresolved")


class _AllCrashed(Exception):  # noqa: N818 - it ends a search, it is not an error
    """No trial at a place has a result."""


Reaches = Callable[[int], Generator[list[Place], Answers, bool]]


def _close(low: int, reaches: Reaches) -> Generator[list[Place], Answers, tuple[int, int]]:
    """Close the range at the first factor of four that reaches the target, or at LARGEST."""
    high = min(4 * low, LARGEST)
    while high < LARGEST and not (yield from reaches(high)):
        low, high = high, min(4 * high, LARGEST)
    return low, high


def _bracket(
    low: int, high: int, reaches: Reaches, rising: bool, guess: float | None
) -> Generator[list[Place], Answers, tuple[int, int]]:
    """Halve the range until it is narrow."""
    middle = round(guess) if guess is not None and low < round(guess) < high else None
    while high / low > NARROW and high - low > 1:
        if middle is None:
            middle = min(max(round(math.sqrt(low * high)), low + 1), high - 1)
        if (yield from reaches(middle)) == rising:
            high = middle
        else:
            low = middle
        # After the guess, try its neighbourhood; then bisect.
        near = guess is not None and middle == round(guess)
        step = NARROW if middle == low else 1 / NARROW
        middle = round(middle * step) if near and low < middle * step < high else None
    return low, high


def _columns(known: Answers) -> tuple[tuple[int, ...], tuple[int, ...], tuple[float, ...]]:
    rows = [(value, seed, measured) for (value, seed), measured in sorted(known.items()) if measured is not None]
    values, seeds, measures = zip(*rows, strict=True)
    return values, seeds, measures


def crossing_of(known: Answers, target: float, rising: bool) -> Estimate:
    """The estimate from all measurements so far."""
    values, seeds, measures = _columns(known)
    if rising:
        return find_crossing(values, seeds, measures, target)
    # A measure that falls along x rises along 1/x.
    inverse = find_crossing([1 / value for value in values], seeds, measures, target)
    assert inverse.value is not None
    low = 1 / inverse.high if inverse.high else 0.0
    return replace(inverse, value=1 / inverse.value, low=low, high=1 / inverse.low if inverse.low else None)


def _about(known: Answers, target: float, rising: bool, low: int, high: int) -> list[int]:
    """The crossing and a point on either side, within the range, where accuracy is about 0.3 from the target."""
    values, _, measures = _columns(known)
    curve = fit_curve(values if rising else [1 / value for value in values], measures, target)
    middle = math.exp(curve.log_x) if rising else 1 / math.exp(curve.log_x)
    gap = min(max(1.2 / curve.slope, math.log(1.1)), math.log(2.0))
    points = {middle * math.exp(share * gap) for share in (-1, 0, 1)}
    return sorted({min(max(round(value), low), high) for value in points})
