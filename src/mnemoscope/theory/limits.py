"""Limits of a law, and its domain: the settings that it covers, and where its numbers are reliable.

- `about` says which settings the law covers: for each choice that matters, the values allowed.
- `limits` are closed intervals of quantities listed in QUANTITIES. Each gives the reason why numbers outside are
  unreliable, with the quantity's value in place of `{value}`.
- `validated` is the command that checked the law within these limits. A law that was not checked, or that failed, has a
  `doubt` instead, and its numbers are never valid.
- `held` gives the sizes that the command ran. Limits mark where an approximation breaks down; beyond `held` a valid
  number is extrapolated in size, and `plan` says so.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, Literal

import numpy as np

from mnemoscope.spec import LETTERS
from mnemoscope.spec.validators import Measure
from mnemoscope.theory.spec_grid import Number, Sizes, SpecGrid
from mnemoscope.theory.trained.capacity import effective_inputs, load, seen_share

QUANTITIES: dict[str, tuple[tuple[str, ...], Callable[[Any], Number]]] = {
    **{letter: ((name,), attrgetter(name)) for name, letter in LETTERS.items()},
    "d - V": (("dim", "vocab"), lambda sizes: sizes.dim - sizes.vocab),
    "V/d": (("vocab", "dim"), lambda sizes: sizes.vocab / sizes.dim),
    "L/V": (("length", "vocab"), lambda sizes: sizes.length / sizes.vocab),
    "N/V": (("samples", "vocab"), lambda sizes: sizes.samples / sizes.vocab),
    "m/d": (("width", "dim"), lambda sizes: sizes.width / sizes.dim),
    "N/N_c": (("vocab", "dim", "samples", "width"), lambda sizes: _load(sizes)),
}
"""Quantities that limits refer to: the sizes each depends on, and its formula."""


def _load(sizes: Any) -> Number:
    """The facts seen, over those that the trained weights can hold."""

    def each(V: float, d: float, N: float, m: float) -> float:
        inputs = effective_inputs(int(d), int(m), sizes.activation)
        return load(V * seen_share(N, V), V, int(d), inputs, sizes.embedding)

    loads = np.vectorize(each, otypes=[float])(sizes.vocab, sizes.dim, sizes.samples, sizes.width)
    return float(loads) if np.ndim(loads) == 0 else loads


# Laws of accuracy that are not those of three steps with uniform tokens: the end of training, and three steps where
# tokens are not equally frequent.
Law = Literal["trained", "frequencies"]
TRAINED: Literal["trained"] = "trained"
FREQUENCIES: Literal["frequencies"] = "frequencies"


@dataclass(frozen=True)
class Limit:
    """A closed interval of one quantity, and why numbers outside are unreliable."""

    quantity: str
    low: float = -np.inf
    high: float = np.inf
    why: str = ""

    def holds(self, sizes: Sizes) -> Number:
        """Whether one setting, or each of many, is inside."""
        value = QUANTITIES[self.quantity][1](sizes)
        return (self.low <= value) & (value <= self.high)

    def reason(self, sizes: Sizes) -> str:
        """Why the number for this setting is unreliable."""
        return self.why.format(value=f"{QUANTITIES[self.quantity][1](sizes):.3g}")

    def __str__(self) -> str:
        if np.isinf(self.high):
            return f"{self.quantity} >= {self.low:g}"
        if np.isinf(self.low):
            return f"{self.quantity} <= {self.high:g}"
        return f"{self.low:g} <= {self.quantity} <= {self.high:g}"


@dataclass(frozen=True)
class Domain:
    """The row of one law."""

    law: str
    measure: Measure | Law
    about: Mapping[str, tuple[str, ...]]
    limits: tuple[Limit, ...] = ()
    validated: str = ""
    doubt: str = ""
    held: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    def is_about(self, choices: Mapping[str, str]) -> bool:
        """Whether the law covers settings with these choices; missing choices may be anything."""
        return all(choices[name] in values for name, values in self.about.items() if name in choices)

    def doubts(self, spec: Sizes) -> Iterator[str]:
        """Why the law's numbers for a setting are unreliable; nothing inside the domain."""
        if self.doubt:
            yield self.doubt
        for limit in self.limits:
            if not np.all(limit.holds(spec)):
                yield limit.reason(spec)

    def holds(self, cells: SpecGrid) -> np.ndarray:
        """Which of many settings are in the domain."""
        held = np.full(np.shape(cells.vocab), not self.doubt)
        for limit in self.limits:
            held &= limit.holds(cells)
        return held

    def was_run(self, spec: Sizes) -> bool:
        """Whether the setting's sizes are within those that were run."""
        return all(low <= QUANTITIES[name][1](spec) <= high for name, (low, high) in self.held.items())

    def as_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON; an open end is None."""

        def end(value: float) -> float | None:
            return None if np.isinf(value) else value

        return {
            "law": self.law,
            "measure": self.measure,
            "about": {name: list(values) for name, values in self.about.items()},
            "limits": [
                {"quantity": limit.quantity, "low": end(limit.low), "high": end(limit.high), "why": limit.why}
                for limit in self.limits
            ],
            "validated": self.validated or None,
            "doubt": self.doubt or None,
            "held": {name: list(ends) for name, ends in self.held.items()},
        }
