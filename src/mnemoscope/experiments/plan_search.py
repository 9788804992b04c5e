"""Models and trainings that reach a target, by theory: the least that does a job, the most that a budget holds.

A job and a budget ask the same question from two ends, so both ask it of the same models: those of a law's shapes, in
which a number of parameters fixes d and m. A budget holds V facts if and only if a job of V facts fits that budget.
"""

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

from mnemoscope.experiments.plan_laws import LAWS, Law, Training
from mnemoscope.spec import Retrieval
from mnemoscope.theory.critical import first_that, last_peak_that

MOST = 2**31 - 1
# How precisely the least d is found; the steps from there are coarser.
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

    def spent(self, vocab: int, length: int, shape: int, law: Law) -> Retrieval | None:
        """The model and the training that use all of it; None if it buys none.

        Theory says nothing of a model with a single dimension.
        """
        d, samples = self.dim(vocab, shape), self.samples(vocab, length)
        if d < 2 or samples < 1:
            return None
        return Retrieval.read({"vocab": vocab, "length": length, "samples": samples, **_sizes(d, shape, law)})


def _sizes(dim: int, shape: int, law: Law) -> dict[str, Any]:
    """A model of one of the shapes."""
    if not shape:
        return {"dim": dim}
    return {"dim": dim, "width": shape * dim, "activation": law.activation}


def most_facts(length: int, shape: int, target: float, budget: Budget, training: Training) -> Retrieval | None:
    """The setting of a shape with the largest V that reaches the target.

    A smaller V need not reach it: where few tokens fill a long sequence, each stands there many
    times, and chance meetings draw attention away (label noise).
    """
    law = LAWS[training]

    def accuracy(vocab: int) -> float:
        spec = budget.spent(vocab, length, shape, law)
        return 0.0 if spec is None else law.reached(spec, target)

    # A learner that has seen N samples names at most N of V facts, and one more by chance.
    seen = budget.samples(MOST_FACTS, length)
    most = last_peak_that(accuracy, target, 2, min(MOST_FACTS, int(seen / target) + 2))
    spec = None if most is None else budget.spent(most, length, shape, law)
    return spec if spec is None or law.spends_all else law.fewest(spec, target)


def nearly_as_many(spec: Retrieval, target: float, budget: Budget, training: Training) -> Retrieval | None:
    """The setting with a few facts less, and the least N that will do for those."""
    law = LAWS[training]
    less = budget.spent(max(2, int(NEARLY * spec.vocab)), spec.length, spec.width // spec.dim, law)
    return law.fewest(less, target) if less is not None and law.reached(less, target) >= target else None


def all_ways(facts: int, length: int, target: float, budget: Budget, training: Training) -> Iterator[Retrieval]:
    """Settings of every shape that reach the target with as few samples as theory allows."""
    law = LAWS[training]
    for shape in law.shapes:
        full = budget.spent(facts, length, shape, law)
        if full is not None and law.reached(full, target) >= target:
            yield from _ways(full, shape, target, law, bounded=budget.parameters is not None)


def _ways(full: Retrieval, shape: int, target: float, law: Law, *, bounded: bool) -> Iterator[Retrieval]:
    def wide(d: int) -> Retrieval:
        return full.replace(**_sizes(min(d, full.dim), shape, law))

    least = first_that(lambda d: law.first_guess(wide(d), target) >= target, 2, full.dim, ROUGH)
    dims = dict.fromkeys(max(2, round((least or full.dim) * step)) for step in law.dims(shape))
    seen, none = full.samples, True
    for d in dims:
        if law.reached(wide(d), target) < target:
            continue
        way = law.fewest(wide(d), target)
        # Once more dimensions save no samples, the rest would only cost.
        if law.spends_all and way.samples > 0.98 * seen and seen < full.samples:
            break
        seen, none = way.samples, False
        yield way
    if none or bounded:  # the model that uses the whole budget is always among them
        yield law.fewest(full, target)
