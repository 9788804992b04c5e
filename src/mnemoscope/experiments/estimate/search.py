"""A search for where a noisy measure crosses a target, as questions and answers.

1. Both ends of the range are tried. If the easy end does not reach the target, or the hard end
   already does, there is nothing to search for, and the status says so. A range that is open
   upwards is closed by steps of four.
2. Bisection in the logarithm with few seeds, from a guess where there is one, until the bracket is
   narrow.
3. Three points about the crossing, the same seeds at each; seeds are added until the interval is as
   narrow as asked for, or there are no more.

The search only asks; whoever drives it runs the trials, several searches side by side if it likes.
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

# Yields the places it wants measured, is sent what they gave (None: crashed), returns the answer.
Search = Generator[list[Place], Answers, Estimate]

A = TypeVar("A")
R = TypeVar("R")


def drive(
    search: Generator[list[Place], Mapping[Place, A], R], answer: Callable[[list[Place]], Mapping[Place, A]]
) -> R:
    """Answer one search's questions to its end."""
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

    `rising` says whether it grows along the axis; only then may `high` be open.
    """
    known: dict[Place, float | None] = {}
    few = min(FEW_SEEDS, most_seeds)

    def ask(values: list[int], seeds: int) -> Generator[list[Place], Answers, None]:
        wanted = [(value, seed) for value in values for seed in range(seeds)]
        new = [place for place in wanted if place not in known]
        if new:
            known.update((yield new))

    def reaches(value: int, surely: bool = False) -> Generator[list[Place], Answers, bool]:
        """By few seeds, or by as many as it takes to be two standard errors away."""
        seeds = few
        while True:
            yield from ask([value], seeds)
            good = [measured for seed in range(seeds) if (measured := known[value, seed]) is not None]
            if not good:
                raise _AllCrashed
            mean = math.fsum(good) / len(good)
            error = statistics.stdev(good) / math.sqrt(len(good)) if len(good) > 1 else 0.0
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
            low, high = max(lowest, low // 4), low  # few seeds had it closed too late
        while not (yield from reaches(high if rising else low, surely=True)):
            if not unbounded or high >= LARGEST:
                return Estimate("above-range" if rising else "below-range")
            low, high = high, min(4 * high, LARGEST)  # few seeds had it closed too early
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
    """The first step of four that reaches the target, or the last there may be."""
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
        # After the guess, its neighbourhood; then halves.
        near = guess is not None and middle == round(guess)
        step = NARROW if middle == low else 1 / NARROW
        middle = round(middle * step) if near and low < middle * step < high else None
    return low, high


def _columns(known: Answers) -> tuple[tuple[int, ...], tuple[int, ...], tuple[float, ...]]:
    rows = [(value, seed, measured) for (value, seed), measured in sorted(known.items()) if measured is not None]
    values, seeds, measures = zip(*rows, strict=True)
    return values, seeds, measures


def crossing_of(known: Answers, target: float, rising: bool) -> Estimate:
    """The estimate from all that is known so far."""
    values, seeds, measures = _columns(known)
    if rising:
        return find_crossing(values, seeds, measures, target)
    # A measure that falls along x rises along 1/x.
    turned = find_crossing([1 / value for value in values], seeds, measures, target)
    assert turned.value is not None
    low = 1 / turned.high if turned.high else 0.0
    return replace(turned, value=1 / turned.value, low=low, high=1 / turned.low if turned.low else None)


def _about(known: Answers, target: float, rising: bool, low: int, high: int) -> list[int]:
    """The crossing and a point on either side, where accuracy is about 0.3 from the target.

    None lies outside the range.
    """
    values, _, measures = _columns(known)
    curve = fit_curve(values if rising else [1 / value for value in values], measures, target)
    middle = math.exp(curve.log_x) if rising else 1 / math.exp(curve.log_x)
    gap = min(max(1.2 / curve.slope, math.log(1.1)), math.log(2.0))
    points = {middle * math.exp(share * gap) for share in (-1, 0, 1)}
    return sorted({min(max(round(value), low), high) for value in points})
