"""The answer of a search, a fit or a mean over seeds: a value with its interval, and how it was come by."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

Status = Literal["found", "below-range", "above-range", "unresolved"]


@dataclass(frozen=True)
class Estimate:
    """A value and its 95 % interval; parts that are not known are None.

    The range that was searched may not hold the value (`below-range`, `above-range`). `unresolved`
    means that the interval stayed wider than asked for, that trials which were needed crashed, or
    that there are too few of them for an interval.
    """

    status: Status
    value: float | None = None
    low: float | None = None
    high: float | None = None

    @classmethod
    def read(cls, point: Mapping[str, Any], name: str) -> "Estimate":
        """From plain data with the keys `name`, `low` and `high`: an estimate that was found."""
        return cls("found", point[name], point["low"], point["high"])

    @property
    def bounded(self) -> bool:
        """Whether the value and both ends are known, and above 0."""
        return bool(self.value and self.low and self.high)

    @property
    def width(self) -> float:
        """Half of the interval over the value, as a ratio: 0.1 is +-10 %."""
        return math.sqrt(self.high / self.low) - 1 if self.low and self.high else math.inf

    def map(self, function: Callable[[float], float]) -> "Estimate":
        """The same of a quantity that rises with this one."""
        value, low, high = (None if part is None else function(part) for part in (self.value, self.low, self.high))
        return replace(self, value=value, low=low, high=high)

    def ends(self, name: str) -> dict[str, float | None]:
        """The value under this name, and its interval."""
        return {name: self.value, "low": self.low, "high": self.high}

    def as_dict(self, name: str = "estimate") -> dict[str, Any]:
        """Plain data, ready for JSON, the value under this name."""
        return {**self.ends(name), "status": self.status}

    def __str__(self) -> str:
        if self.value is None:
            return "none"
        if self.low is None or self.high is None:
            return f"{self.value:.3f}"
        return f"{self.value:.3f} [{self.low:.3f}, {self.high:.3f}]"


@dataclass(frozen=True)
class Estimated:
    """A result with one estimate, whose parts can be read off the result itself."""

    answer: Estimate

    @property
    def status(self) -> Status:
        """How the search ended."""
        return self.answer.status

    @property
    def estimate(self) -> float | None:
        """The value."""
        return self.answer.value

    @property
    def low(self) -> float | None:
        """The lower end of the 95 % interval."""
        return self.answer.low

    @property
    def high(self) -> float | None:
        """The upper end of the 95 % interval."""
        return self.answer.high
