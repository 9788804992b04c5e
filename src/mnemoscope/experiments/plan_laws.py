"""What a plan asks theory, after three steps or at the end of training: the best that a model reaches, and the least N.

Three steps get better with every sample. A trained model need not: once it has seen more facts than its weights hold,
it keeps fewer. What it reaches with at most N samples is therefore the best over all numbers up to N. Nor is it filled
to the brim, where the law is not valid and training takes ever more steps.
"""

import math
from functools import lru_cache
from typing import Literal, Protocol, runtime_checkable

from mnemoscope.spec import Retrieval
from mnemoscope.theory.critical import first_that
from mnemoscope.theory.predict import solve
from mnemoscope.theory.trained.fast import accuracy_within

Training = Literal["trained", "three-steps"]
# The largest load N/N_c: that of the law's domain (theory/domain_table.py).
FILLED = 0.9
# Samples a token: with fewer, attention came out imperfect in the end, where theory has it perfect (docs/plan.md).
SHOWN = 3.0


@runtime_checkable
class Law(Protocol):
    """What theory says of one kind of training."""

    # Hidden units for each dimension, 0 is the bare model; and the activation of those that have any.
    shapes: tuple[int, ...]
    activation: str
    # Whether every further sample helps.
    spends_all: bool

    def dims(self, shape: int) -> tuple[float, ...]:
        """Dimensions to try, in units of the least that will do."""
        ...

    def reached(self, spec: Retrieval, target: float) -> float:
        """The accuracy with at most so many samples; where it is below the target, a bound will do."""
        ...

    def fewest(self, spec: Retrieval, target: float) -> Retrieval:
        """A setting that reaches the target, with the least N that does."""
        ...

    def first_guess(self, spec: Retrieval, target: float) -> float:
        """`reached`, or what is close to it and quicker, for the least d to begin with."""
        ...


class ThreeSteps:
    """Three gradient steps. The activation is the one that gains most from them (docs/claims.md)."""

    shapes, activation, spends_all = (0, 7, 31), "hermite3", True

    def dims(self, shape: int) -> tuple[float, ...]:
        """Without an MLP, more dimensions save samples for long."""
        return (1.22,) if shape else (1.05, 1.2, 1.4, 1.7, 2.2, 3.0, 4.5)

    def reached(self, spec: Retrieval, target: float) -> float:
        """If an MLP's map misses the target with attention given, that is the answer: attention only takes away."""
        if not spec.width:
            return _after_three_steps(spec)
        given = _after_three_steps(spec.replace(attention="locked"))
        return given if given < target else min(given, _after_three_steps(spec))

    def first_guess(self, spec: Retrieval, target: float) -> float:
        """The map alone: attention that is given makes an MLP cheap to predict."""
        return _after_three_steps(spec.replace(attention="locked") if spec.width else spec)

    def fewest(self, spec: Retrieval, target: float) -> Retrieval:
        """By bisection."""
        most, least = spec.samples, min(spec.samples, max(1, spec.vocab // 8))
        low, high = least, most
        if spec.width:
            # An MLP beside attention that errs is slow to predict. What the map needs with attention
            # given is a start from which few steps lead to what both need.
            low = first_that(lambda n: self.first_guess(spec.replace(samples=n), target) >= target, least, most) or most
            high = low
            while high < most and self.reached(spec.replace(samples=high), target) < target:
                low, high = high, min(most, math.ceil(high * 1.3))
        fewest = first_that(lambda n: self.reached(spec.replace(samples=n), target) >= target, low, high)
        return spec.replace(samples=most if fewest is None else fewest)


class ToTheEnd:
    """Training to its end.

    Hidden units of any activation hold as many facts; with these, attention starts better than with relu's.
    """

    shapes, activation, spends_all = (0, 7, 31), "hermite3", False

    def dims(self, shape: int) -> tuple[float, ...]:
        """More than the least, at which training would take long; further ones save steps."""
        return (1.1, 1.3, 1.6)

    def reached(self, spec: Retrieval, target: float) -> float:
        """The best over all numbers of samples up to the setting's."""
        return _at_the_end(spec, target)[0]

    def first_guess(self, spec: Retrieval, target: float) -> float:
        """Quick enough itself."""
        return self.reached(spec, target)

    def fewest(self, spec: Retrieval, target: float) -> Retrieval:
        """The first on the grid that will do."""
        return _at_the_end(spec, target)[1] or spec


LAWS: dict[Training, Law] = {"trained": ToTheEnd(), "three-steps": ThreeSteps()}


@lru_cache(maxsize=8192)
def _after_three_steps(spec: Retrieval) -> float:
    """Kept, as a job and a budget meet the same settings again and again."""
    return solve(spec)[1].accuracy


@lru_cache(maxsize=8192)
def _at_the_end(spec: Retrieval, target: float) -> tuple[float, Retrieval | None]:
    return accuracy_within(spec, target, FILLED, SHOWN)
