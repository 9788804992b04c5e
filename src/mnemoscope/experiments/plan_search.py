"""Models and trainings that reach a target, by theory: the least that does a job, the most that a budget holds.

A job and a budget ask the same question from two ends, so both ask it of the same models: those of SHAPES, in which a
number of parameters fixes d and m. A budget holds V facts if and only if a job of V facts fits that budget.
"""

import math
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple

from mnemoscope.spec import Retrieval
from mnemoscope.theory.critical import first_that, last_peak_that
from mnemoscope.theory.predict import solve

MOST = 2**31 - 1
# Hidden units for each dimension; 0 is the bare model. An MLP has the activation that gains most (docs/claims.md).
SHAPES, ACTIVATION = (0, 7, 31), "hermite3"
# Dimensions to try, in units of the least that will do: of the bare model, and with an MLP.
STEPS, MLP_STEPS = (1.05, 1.2, 1.4, 1.7, 2.2, 3.0, 4.5), (1.22,)
# How precisely the least d is found; STEPS are coarser.
ROUGH = 0.04
# The largest vocabulary to try.
MOST_FACTS = 2**24
# The share of the facts of endless samples that is recommended where tokens are free.
NEARLY = 0.95


class Budget(NamedTuple):
    """The most parameters and training tokens there are; None is no limit."""

    parameters: float | None = None
    tokens: float | None = None

    def samples(self, vocab: int, length: int) -> int:
        """The most training samples; without a limit, as many as a spec may have."""
        # No pair of tokens is counted beyond 2^30.
        most = max(1, min(MOST, int(2**30 / (length / vocab**2 + 1 / vocab))))
        return most if self.tokens is None else min(most, int(self.tokens // length))

    def dim(self, vocab: int, shape: int) -> int:
        """The largest d of a shape; more than a few for each fact add nothing but cost."""
        enough = 4 * vocab + 256
        if self.parameters is None:
            return enough
        # parameters = d^2 + d max(d, m) with m = shape * d
        return min(enough, math.isqrt(int(self.parameters) // (1 + max(1, shape))))

    def spent(self, vocab: int, length: int, shape: int) -> Retrieval | None:
        """The model and the training that use all of it; None if it buys none.

        Theory says nothing of a model with a single dimension.
        """
        d, samples = self.dim(vocab, shape), self.samples(vocab, length)
        if d < 2 or samples < 1:
            return None
        return Retrieval.read({"vocab": vocab, "length": length, "samples": samples, **_sizes(d, shape)})


def _sizes(dim: int, shape: int) -> dict[str, Any]:
    """A model of one of the shapes."""
    if not shape:
        return {"dim": dim}
    return {"dim": dim, "width": shape * dim, "activation": ACTIVATION}


def most_facts(length: int, shape: int, target: float, budget: Budget) -> Retrieval | None:
    """The setting of a shape with the largest V that reaches the target.

    A smaller V need not reach it: where few tokens fill a long sequence, each stands there many
    times, and chance meetings draw attention away (label noise).
    """

    def accuracy(vocab: int) -> float:
        spec = budget.spent(vocab, length, shape)
        return 0.0 if spec is None else _accuracy(spec, target)

    # A learner that has seen N samples names at most N of V facts, and one more by chance.
    seen = budget.samples(MOST_FACTS, length)
    most = last_peak_that(accuracy, target, 2, min(MOST_FACTS, int(seen / target) + 2))
    return None if most is None else budget.spent(most, length, shape)


def nearly_as_many(spec: Retrieval, target: float, budget: Budget) -> Retrieval | None:
    """The setting with a few facts less, and the least N that will do for those."""
    less = budget.spent(max(2, int(NEARLY * spec.vocab)), spec.length, spec.width // spec.dim)
    return _fewest(less, target) if less is not None and _reaches(less, target) else None


def all_ways(facts: int, length: int, target: float, budget: Budget) -> Iterator[Retrieval]:
    """Settings of every shape that reach the target with as few samples as theory allows."""
    for shape in SHAPES:
        full = budget.spent(facts, length, shape)
        if full is not None and _reaches(full, target):
            yield from _ways(full, shape, target, bounded=budget.parameters is not None)


def _ways(full: Retrieval, shape: int, target: float, *, bounded: bool) -> Iterator[Retrieval]:
    # The map alone first: attention that is given makes an MLP cheap to predict.
    given = full.replace(attention="locked") if shape else full
    least = first_that(lambda d: _predicted(given.replace(**_sizes(d, shape))) >= target, 2, full.dim, ROUGH)
    steps = MLP_STEPS if shape else STEPS
    dims = dict.fromkeys(max(2, round((least or full.dim) * step)) for step in steps)
    seen, none = full.samples, True
    for d in dims:
        wide = full.replace(**_sizes(min(d, full.dim), shape))
        if not _reaches(wide, target):
            continue
        way = _fewest(wide, target)
        # Once more dimensions save no samples, the rest would only cost.
        if way.samples > 0.98 * seen and seen < full.samples:
            break
        seen, none = way.samples, False
        yield way
    if none or bounded:  # the model that uses the whole budget is always among them
        yield _fewest(full, target)


def _fewest(spec: Retrieval, target: float) -> Retrieval:
    """A setting that reaches the target, with the least N that does."""
    most, least = spec.samples, min(spec.samples, max(1, spec.vocab // 8))
    low, high = least, most
    if spec.width:
        # An MLP beside attention that errs is slow to predict. What the map needs with attention
        # given is a start from which few steps lead to what both need.
        given = spec.replace(attention="locked")
        low = first_that(lambda n: _predicted(given.replace(samples=n)) >= target, least, most) or most
        high = low
        while high < most and not _reaches(spec.replace(samples=high), target):
            low, high = high, min(most, math.ceil(high * 1.3))
    fewest = first_that(lambda n: _reaches(spec.replace(samples=n), target), low, high)
    return spec.replace(samples=most if fewest is None else fewest)


def _reaches(spec: Retrieval, target: float) -> bool:
    return _accuracy(spec, target) >= target


def _accuracy(spec: Retrieval, target: float) -> float:
    """Theory's accuracy. If an MLP's map misses the target with attention given, that is the answer:
    attention that may err only takes away."""
    if not spec.width:
        return _predicted(spec)
    given = _predicted(spec.replace(attention="locked"))
    return given if given < target else min(given, _predicted(spec))


@lru_cache(maxsize=8192)
def _predicted(spec: Retrieval) -> float:
    """Kept, as a job and a budget meet the same settings again and again."""
    return solve(spec)[1].accuracy
