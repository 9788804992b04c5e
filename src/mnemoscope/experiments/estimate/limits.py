r"""Limits along an axis: up to where each seed succeeds, for all seeds side by side.

`search` is for a measure that is noisy about a curve. Here a trial says only yes or no, and a seed's trials are nested
(its first items are the same at every N), so every seed has a limit up to which it says yes:

1. With a range, try both its ends; if a seed's limit is outside, the status says so. Without one, growing steps away
   from the guess close the bracket.
2. Bisect in the logarithm, seed by seed, until the bracket is as narrow as `resolution`.
3. The estimate is the geometric mean of the limits. Its interval is Student's over seeds, widened by the brackets' own
   width. Add seeds until it is narrow enough, or none is left.
"""

import math
import statistics
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from scipy.special import stdtrit

from mnemoscope.experiments.estimate.estimate import Estimate, Estimated
from mnemoscope.experiments.estimate.search import LARGEST, Place

# The factors of the first steps from the guess; later ones are a factor of four.
STRIDES = (1.15, 1.4, 2.0)


@dataclass(frozen=True)
class Limits(Estimated):
    """The mean limit, and every seed's own."""

    each: tuple[float | None, ...] = ()


# Yields places to try, is sent their answers (None: crashed), and returns the limits.
LimitSearch = Generator[list[Place], Mapping[Place, bool | None], Limits]


class _Seed:
    """One seed's bracket: it says yes at `low` and no at `high`, if these are known."""

    def __init__(self, number: int, guess: float, ends: tuple[int, int] | None, largest: int) -> None:
        self.number, self.guess, self.ends, self.largest = number, guess, ends, largest
        self.low: int | None = None
        self.high: int | None = None
        self.strides = 0
        self.state: Literal["open", "closed", "below", "above", "crashed"] = "open"

    def wants(self) -> list[int]:
        """The values to try next: both ends of a range first, then one at a time."""
        if self.low is None and self.high is None:
            return [self.first] if self.ends is None else list(self.ends)
        if self.low is not None and self.high is not None:
            middle = round(math.sqrt(self.low * self.high))
            return [min(max(middle, self.low + 1), self.high - 1)]
        stride = STRIDES[self.strides] if self.strides < len(STRIDES) else 4.0
        if self.low is not None:
            return [min(max(self.low + 1, round(self.low * stride)), self.largest)]
        assert self.high is not None
        return [max(1, min(self.high - 1, round(self.high / stride)))]

    @property
    def first(self) -> int:
        """The guess as a place."""
        return min(max(1, round(self.guess)), self.largest)

    def hear(self, answers: Mapping[Place, bool | None], resolution: float) -> None:
        """Take the answers for the values of `wants`."""
        for value in self.wants():
            succeeded = answers[value, self.number]
            if succeeded is None:
                self.state = "crashed"
                return
            if succeeded:
                self.low = value if self.low is None else max(self.low, value)
            else:
                self.high = value if self.high is None else min(self.high, value)
        self.strides += 1
        if self.ends is not None and self.low is None:
            self.state = "below"
        elif self.ends is not None and self.high is None:
            self.state = "above"
        elif self.high == 1:
            self.state = "below"
        elif self.low == self.largest:
            self.state = "above"
        elif self.low is not None and self.high is not None:
            if self.low >= self.high:  # an end that says no below one that says yes
                self.low, self.high = self.high, self.low
            near = self.high / self.low <= 1 + resolution or self.high - self.low == 1
            self.state = "closed" if near else "open"

    @property
    def limit(self) -> float | None:
        """The middle of the bracket."""
        if self.state != "closed" or self.low is None or self.high is None:
            return None
        return math.sqrt(self.low * self.high)


def search_limits(
    guess: float,
    *,
    ends: tuple[int, int] | None = None,
    largest: int = LARGEST,
    resolution: float = 0.03,
    tolerance: float = 0.1,
    seeds_at_first: int = 4,
    most_seeds: int = 16,
) -> LimitSearch:
    """Find the mean limit up to which seeds say yes, to +-`tolerance`; without a range, up to `largest`."""
    seeds: list[_Seed] = []
    while True:
        missing = min(seeds_at_first if not seeds else 2 * len(seeds), most_seeds) - len(seeds)
        limits = [limit for seed in seeds if (limit := seed.limit) is not None]
        about = statistics.geometric_mean(limits) if limits else guess
        seeds += [_Seed(len(seeds) + k, about, ends, largest) for k in range(missing)]
        while open_seeds := [seed for seed in seeds if seed.state == "open"]:
            answers = yield [(value, seed.number) for seed in open_seeds for value in seed.wants()]
            for seed in open_seeds:
                seed.hear(answers, resolution)
        mean = _mean_limit(seeds, tolerance)
        if mean.status != "unresolved" or len(seeds) >= most_seeds:
            return Limits(mean, tuple(seed.limit for seed in seeds))


def turned(search: LimitSearch) -> LimitSearch:
    """The same search where seeds say no up to their limit, and yes beyond it."""
    places = next(search)
    while True:
        answers = yield places
        try:
            places = search.send({place: None if said is None else not said for place, said in answers.items()})
        except StopIteration as end:
            return end.value


def mean_of_logs(logs: Sequence[float], brackets: float) -> Estimate:
    """The geometric mean of limits, with Student's interval; `brackets` is the variance within their brackets."""
    middle, variance = math.fsum(logs) / len(logs), statistics.variance(logs) + brackets
    half = float(stdtrit(len(logs) - 1, 0.975)) * math.sqrt(variance / len(logs))
    return Estimate("found", *(math.exp(middle + k * half) for k in (0, -1, 1)))


def _mean_limit(seeds: list[_Seed], tolerance: float) -> Estimate:
    states = {seed.state for seed in seeds}
    if states & {"below", "above"}:
        return Estimate("below-range" if "below" in states else "above-range")
    closed = [seed for seed in seeds if seed.state == "closed"]
    logs = [math.log(limit) for seed in closed if (limit := seed.limit) is not None]
    if not logs:
        return Estimate("unresolved")
    if len(logs) < 2:
        return Estimate("unresolved", math.exp(logs[0]))
    # A limit lies anywhere in its bracket, uniformly in the logarithm: width^2 / 12.
    brackets = [math.log(seed.high / seed.low) ** 2 / 12 for seed in closed if seed.low and seed.high]
    mean = mean_of_logs(logs, math.fsum(brackets) / len(brackets))
    enough = 2 * len(closed) > len(seeds)  # the others crashed
    return mean if enough and mean.width <= tolerance else replace(mean, status="unresolved")
