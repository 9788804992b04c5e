"""Factual recall: several seeds of one setting, and how many facts a model of one size holds."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from mnemoscope.engine.record import Trial
from mnemoscope.experiments.capacity import BEYOND, Question, find_limits
from mnemoscope.experiments.estimate.intervals import Interval, mean_interval
from mnemoscope.experiments.estimate.limits import Limits
from mnemoscope.experiments.sweep import Progress, ThisProcess, Workers, sweep
from mnemoscope.spec import Facts, SpecError
from mnemoscope.store.trials import Store
from mnemoscope.theory.associative import GUIDE_FACTS

# How S, R and D grow together: S = R, R = sqrt(S), or S = R = D.
Scaling = Literal["equal", "sqrt", "own"]
# In the first two, a relation has so many answers (our choice), or as many as there are subjects.
ANSWERS = 8
RATES = (1e-3, 3e-3, 1e-2)
# A search begins at this share of the authors' guide line. Too many facts cost most: no training
# reaches its target, and each takes all of its steps.
BEGIN = 0.25


@dataclass(frozen=True)
class FactsRun:
    """The trainings of one setting."""

    spec: Facts
    outcomes: tuple[Trial, ...]

    @property
    def interval(self) -> Interval:
        """Mean accuracy over seeds; a training that was cut short counts with what it reached."""
        found = [one.accuracy for one in self.outcomes if one.accuracy is not None]
        return mean_interval(found, float(self.spec.test_samples))

    @property
    def bits(self) -> float:
        """S R log2 D: what storing the facts takes, whatever the model."""
        return self.spec.facts * math.log2(self.spec.answers)

    def as_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        spec = self.spec
        return {
            "spec": spec.model_dump(),
            "id": spec.id,
            "trials": [one.as_dict() for one in self.outcomes],
            "accuracy": self.interval.as_dict(),
            "parameters": spec.parameters,
            "facts": spec.facts,
            "facts_per_parameter": spec.facts / spec.parameters,
            "bits": self.bits,
            "bits_per_parameter": self.bits / spec.parameters,
        }


def learn_facts(
    spec: Facts,
    seeds: Sequence[int] = range(4),
    *,
    store: Store | None = None,
    workers: Workers | None = None,
    progress: Progress | None = None,
) -> FactsRun:
    """Train on each seed, or find it in the store, the user's own by default."""
    if store is None:
        with Store() as own:
            return learn_facts(spec, seeds, store=own, workers=workers, progress=progress)
    jobs = [(spec, seed) for seed in seeds]
    try:
        sweep(jobs, store, workers or ThisProcess(), progress)
    finally:
        found = store.outcomes(spec)
    return FactsRun(spec, tuple(found[seed] for seed in seeds if seed in found))


@dataclass(frozen=True)
class FactsCapacity:
    """How many facts a model of one size learns to the target, by the best of several rates."""

    spec: Facts
    scaling: Scaling
    rates: tuple[float, ...]
    limits: Limits
    trials: tuple[Trial, ...] = field(default=(), repr=False)

    def facts(self, subjects: float | None) -> float | None:
        """S R at so many subjects, which may be between two whole numbers."""
        if subjects is None:
            return None
        return subjects**1.5 if self.scaling == "sqrt" else subjects**2

    def as_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        found, parameters = self.limits, self.spec.parameters
        capacity = self.facts(found.estimate)
        gone = ("subjects", "relations", "answers", "lr")
        return {
            "spec": {k: v for k, v in self.spec.model_dump().items() if k not in gone},
            "scaling": self.scaling,
            "rates": list(self.rates),
            "capacity": capacity,
            "low": self.facts(found.low),
            "high": self.facts(found.high),
            "status": found.status,
            "each_seed": [self.facts(one) for one in found.each],
            "accuracy": self.spec.target,
            "parameters": parameters,
            "facts_per_parameter": None if capacity is None else capacity / parameters,
            "trials": [
                {"subjects": one.spec.subjects, "lr": one.spec.lr, **one.as_dict(), "curve": []}
                for one in self.trials
                if isinstance(one.spec, Facts)
            ],
        }


def grown(spec: Facts, scaling: Scaling, subjects: int) -> Facts:
    """The setting with so many subjects, and relations and answers to match."""
    relations = max(1, round(math.sqrt(subjects))) if scaling == "sqrt" else subjects
    answers = subjects if scaling == "own" else min(ANSWERS, subjects)
    return spec.replace(subjects=subjects, relations=relations, answers=answers)


def facts_questions(specs: Sequence[Facts], scaling: Scaling, rates: Sequence[float]) -> list[Question]:
    """The search for each model's capacity, in subjects."""
    power = 1 / 1.5 if scaling == "sqrt" else 1 / 2
    fastest_first = sorted(rates, reverse=True)

    def subjects(share: float, spec: Facts) -> float:
        return max(2.0, (share * GUIDE_FACTS * spec.parameters) ** power)

    return [
        Question(
            lambda n, spec=spec: [grown(spec, scaling, n).replace(lr=lr) for lr in fastest_first],
            spec.target,
            guess=subjects(BEGIN, spec),
            usual=subjects(1.0, spec),
            most=subjects(BEYOND, spec),
        )
        for spec in specs
    ]


def facts_capacity_many(
    specs: Sequence[Facts],
    scaling: Scaling = "equal",
    *,
    rates: Sequence[float] = RATES,
    store: Store | None = None,
    **more: Any,
) -> list[FactsCapacity]:
    """How many facts each model holds; subjects, relations, answers and lr of the specs are free.

    A seed manages a number of subjects if it reaches the target with one of the learning rates, the
    largest of which is tried before the others.
    What it takes more is as for `find_limits`, whose tolerance is in subjects.
    """
    if scaling not in get_args(Scaling):
        known = ", ".join(get_args(Scaling))
        raise SpecError("capacity", f"expected one of {known}, got {scaling!r}")
    if store is None:
        with Store() as own:
            return facts_capacity_many(specs, scaling, rates=rates, store=own, **more)
    found = find_limits(facts_questions(specs, scaling, rates), store=store, **more)
    return [
        FactsCapacity(
            spec, scaling, tuple(rates), one.limits, tuple(outcome for made in one.trials.values() for outcome in made)
        )
        for spec, one in zip(specs, found, strict=True)
    ]
