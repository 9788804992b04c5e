r"""Up to where seeds succeed along an axis: each seed's own limit, found side by side.

`search` is for a measure that is noisy about a curve. Where a trial says only yes or no, and one
seed's trials are nested (its first items are the same at every N), every seed has a limit of its
own, a number up to which it says yes. So:

1. Where a range is given, both its ends are tried; a seed whose limit is not inside makes the
   status say so. Without one, steps away from the guess, ever longer, close the bracket.
2. Bisection in the logarithm, seed by seed, until the bracket is as narrow as `resolution`.
3. The estimate is the geometric mean of the limits, its interval Student's over seeds, widened by
   the brackets' own width; seeds are added until it is as narrow as asked for, or none is left.
"""

import math
import statistics
from collections.abc import Generator, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from scipy.special import stdtrit

from mnemoscope.experiments.estimate.search import LARGEST, Place, Status

SEEDS_AT_FIRST = 4
# How far the first steps from the guess go; after these, a factor of four each.
STRIDES = (1.15, 1.4, 2.0)


@dataclass(frozen=True)
class Limits:
    """How a search ended: the mean limit with its 95 % interval, and every seed's own."""

    status: Status
    estimate: float | None
    low: float | None
    high: float | None
    each: tuple[float | None, ...] = ()

    @property
    def width(self) -> float:
        """Half of the interval over the estimate, as a ratio: 0.1 is +-10 %."""
        if self.low is None or self.high is None:
            return math.inf
        return math.sqrt(self.high / self.low) - 1


# Yields the places it wants tried, is sent what they said (None: crashed), returns the outcome.
LimitSearch = Generator[list[Place], Mapping[Place, bool | None], Limits]


class _Seed:
    """One seed's bracket: it says yes at `low` and no at `high`, where these are known."""

    def __init__(self, number: int, guess: float, ends: tuple[int, int] | None) -> None:
        self.number, self.guess, self.ends = number, guess, ends
        self.low: int | None = None
        self.high: int | None = None
        self.strides = 0
        self.state: Literal["open", "closed", "below", "above", "crashed"] = "open"

    def wants(self) -> list[int]:
        """Where to try next; several places while the ends are not known."""
        if self.low is None and self.high is None:
            return [self.first] if self.ends is None else list(self.ends)
        if self.low is not None and self.high is not None:
            middle = round(math.sqrt(self.low * self.high))
            return [min(max(middle, self.low + 1), self.high - 1)]
        stride = STRIDES[self.strides] if self.strides < len(STRIDES) else 4.0
        if self.low is not None:
            return [min(max(self.low + 1, round(self.low * stride)), LARGEST)]
        assert self.high is not None
        return [max(1, min(self.high - 1, round(self.high / stride)))]

    @property
    def first(self) -> int:
        """The guess as a place."""
        return min(max(1, round(self.guess)), LARGEST)

    def hear(self, told: Mapping[Place, bool | None], resolution: float) -> None:
        """Take the answers to what was wanted."""
        for value in self.wants():
            said = told[value, self.number]
            if said is None:
                self.state = "crashed"
                return
            if said:
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
        elif self.low == LARGEST:
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
    resolution: float = 0.03,
    tolerance: float = 0.1,
    seeds_at_first: int = SEEDS_AT_FIRST,
    most_seeds: int = 16,
) -> LimitSearch:
    """Find up to where seeds say yes, to +-`tolerance`; yes is expected below, no above."""
    seeds: list[_Seed] = []
    while True:
        missing = min(seeds_at_first if not seeds else 2 * len(seeds), most_seeds) - len(seeds)
        limits = [limit for seed in seeds if (limit := seed.limit) is not None]
        about = statistics.geometric_mean(limits) if limits else guess
        seeds += [_Seed(len(seeds) + k, about, ends) for k in range(missing)]
        while open_seeds := [seed for seed in seeds if seed.state == "open"]:
            told = yield [(value, seed.number) for seed in open_seeds for value in seed.wants()]
            for seed in open_seeds:
                seed.hear(told, resolution)
        found = _mean_limit(seeds, tolerance)
        if found.status != "unresolved" or len(seeds) >= most_seeds:
            return found


def _mean_limit(seeds: list[_Seed], tolerance: float) -> Limits:
    each = tuple(seed.limit for seed in seeds)
    states = {seed.state for seed in seeds}
    if states & {"below", "above"}:
        return Limits("below-range" if "below" in states else "above-range", None, None, None, each)
    closed = [seed for seed in seeds if seed.state == "closed"]
    if not closed:
        return Limits("unresolved", None, None, None, each)
    logs = [math.log(limit) for seed in closed if (limit := seed.limit) is not None]
    middle = math.fsum(logs) / len(logs)
    if len(logs) < 2:
        return Limits("unresolved", math.exp(middle), None, None, each)
    # A limit lies anywhere in its bracket, uniformly in the logarithm: width^2 / 12.
    brackets = [math.log(seed.high / seed.low) ** 2 / 12 for seed in closed if seed.low and seed.high]
    variance = statistics.variance(logs) + math.fsum(brackets) / len(brackets)
    half = float(stdtrit(len(logs) - 1, 0.975)) * math.sqrt(variance / len(logs))
    mean, low, high = (math.exp(middle + k * half) for k in (0, -1, 1))
    found = Limits("found", mean, low, high, each)
    most_are_in = 2 * len(closed) > len(seeds)  # the others crashed
    return found if most_are_in and found.width <= tolerance else replace(found, status="unresolved")
