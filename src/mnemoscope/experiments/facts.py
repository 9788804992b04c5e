"""Factual recall: several seeds of one setting, and how many facts a model of a given size holds."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Unpack, get_args

from mnemoscope.engine.record import Trial
from mnemoscope.experiments.capacity import BEYOND, LimitOptions, Question, find_limits
from mnemoscope.experiments.estimate.estimate import Estimate, Estimated
from mnemoscope.experiments.estimate.intervals import mean_interval
from mnemoscope.experiments.estimate.limits import Limits
from mnemoscope.experiments.signatures import spells_out
from mnemoscope.experiments.stored_bits import StoredBits, before_and_after
from mnemoscope.experiments.tabular import Tabular
from mnemoscope.experiments.tools import GivenTools, open_tools
from mnemoscope.spec import Facts, SpecError
from mnemoscope.spec.summary import Shown, Summary, brief, number, span
from mnemoscope.spec.token_laws import UNIFORM
from mnemoscope.theory.associative import GUIDE_FACTS

# How S, R and D grow together: S = R, R = sqrt(S), or S = R = D.
Scaling = Literal["equal", "sqrt", "own"]
# In the first two, a relation has this many answers (our choice), or as many as there are subjects if those are fewer.
ANSWERS = 8
RATES = (1e-3, 3e-3, 1e-2)
# A search begins at this share of the authors' guide line. Too many facts cost most: trainings take all their steps.
BEGIN = 0.25


@dataclass(frozen=True, repr=False)
class FactsRun(Shown, Tabular):
    """The trainings of one setting."""

    axes: ClassVar[tuple[str, ...]] = ("seed",)
    spec: Facts
    outcomes: tuple[Trial, ...]

    @property
    def interval(self) -> Estimate:
        """Mean accuracy over seeds; a training that was cut short counts with what it reached."""
        accuracies = [outcome.accuracy for outcome in self.outcomes if outcome.accuracy is not None]
        return mean_interval(accuracies, float(self.spec.test_samples))

    @property
    def by_fact(self) -> Estimate:
        """The same with every fact asked for equally often; measured where facts have frequencies of their own."""
        known = [outcome.metrics.get("accuracy_by_fact") for outcome in self.outcomes]
        return mean_interval([value for value in known if value is not None], float(self.spec.test_samples))

    @property
    def bits(self) -> float:
        """S R log2 D: what storing the facts takes, whatever the model."""
        return self.spec.facts * math.log2(self.spec.answers)

    @property
    def stored_bits(self) -> StoredBits | None:
        """What rounded weights store, of all facts alike; None where weights are not rounded."""
        spec = self.spec
        share = (self.interval if spec.frequencies == UNIFORM else self.by_fact).value
        named = None if share is None else share * spec.facts
        return (
            StoredBits(spec.bits, spec.parameters, named, spec.answers, *before_and_after(self.outcomes))
            if spec.bits
            else None
        )

    def records(self) -> list[dict[str, Any]]:
        """A row for each seed."""
        return [{"seed": trial.seed, "status": trial.status, **trial.metrics} for trial in self.outcomes]

    def summary(self) -> Summary:
        """Accuracy over seeds, and what the weights hold."""
        spec = self.spec
        rows = [
            (str(trial.seed), trial.status, number(trial.accuracy), number(trial.metrics.get("steps"), 0))
            for trial in self.outcomes
        ]
        return Summary(
            brief(spec),
            {
                "accuracy": str(self.interval),
                "facts": f"{spec.facts:,}",
                "parameters": f"{spec.parameters:,}",
                "bits each": number(self.bits / spec.parameters),
            },
            ("seed", "status", "accuracy", "steps"),
            tuple(rows),
        )

    def as_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        spec = self.spec
        return {
            "spec": spec.model_dump(),
            "id": spec.id,
            "trials": [outcome.as_dict() for outcome in self.outcomes],
            "accuracy": self.interval.ends("mean"),
            **({} if spec.frequencies == UNIFORM else {"accuracy_by_fact": self.by_fact.ends("mean")}),
            "parameters": spec.parameters,
            "facts": spec.facts,
            "facts_per_parameter": spec.facts / spec.parameters,
            "bits": self.bits,
            "bits_per_parameter": self.bits / spec.parameters,
            **({} if self.stored_bits is None else {"rounding": self.stored_bits.as_dict()}),
        }


@spells_out(open_tools)
def learn_facts(spec: Facts, seeds: Sequence[int] = range(4), **given: Unpack[GivenTools]) -> FactsRun:
    """Train on each seed, or read it from the store, the user's own by default."""
    jobs = [(spec, seed) for seed in seeds]
    with open_tools(**given) as opened:
        return FactsRun(spec, tuple(opened.run(jobs).values()))


@dataclass(frozen=True, repr=False)
class FactsCapacity(Shown, Estimated):
    """How many facts a model of one size learns to the target, by the best of several rates.

    The answer is in facts, the seeds' limits in subjects.
    """

    spec: Facts
    scaling: Scaling
    rates: tuple[float, ...]
    limits: Limits
    trials: tuple[Trial, ...] = field(default=(), repr=False)

    def summary(self) -> Summary:
        """How many facts, and per parameter."""
        return Summary(
            brief(self.spec, without=("subjects", "relations", "answers", "lr")),
            {
                "status": self.status,
                "facts": f"{number(self.estimate, 0)} {span(self.low, self.high, 0)}",
                "parameters": f"{self.spec.parameters:,}",
            },
        )

    def facts(self, subjects: float | None) -> float | None:
        """S R at a number of subjects, which need not be whole."""
        return None if subjects is None else facts_at(subjects, self.scaling)

    @property
    def stored_bits(self) -> StoredBits | None:
        """What rounded weights store at the capacity; None where weights are not rounded."""
        subjects = self.limits.estimate
        if not self.spec.bits:
            return None
        answers = None if subjects is None else answers_at(subjects, self.scaling)
        named = None if self.estimate is None else self.spec.target * self.estimate
        return StoredBits(self.spec.bits, self.spec.parameters, named, answers)

    def as_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        parameters = self.spec.parameters
        return {
            "spec": self.spec.model_dump(exclude={"subjects", "relations", "answers", "lr"}),
            "scaling": self.scaling,
            "rates": list(self.rates),
            **self.answer.as_dict("capacity"),
            "each_seed": [self.facts(subjects) for subjects in self.limits.each],
            "accuracy": self.spec.target,
            "parameters": parameters,
            "facts_per_parameter": None if self.estimate is None else self.estimate / parameters,
            **({} if self.stored_bits is None else {"rounding": self.stored_bits.as_dict()}),
            "trials": [
                {**trial.spec.model_dump(include={"subjects", "lr"}), **trial.as_dict(), "curve": []}
                for trial in self.trials
            ],
        }


def facts_at(subjects: float, scaling: Scaling) -> float:
    """S R at a number of subjects."""
    return subjects**1.5 if scaling == "sqrt" else subjects**2


def answers_at(subjects: float, scaling: Scaling) -> float:
    """D at a number of subjects."""
    return subjects if scaling == "own" else min(ANSWERS, subjects)


def grown(spec: Facts, scaling: Scaling, subjects: int) -> Facts:
    """The setting with this many subjects, and relations and answers to match."""
    relations = max(1, round(math.sqrt(subjects))) if scaling == "sqrt" else subjects
    return spec.replace(subjects=subjects, relations=relations, answers=answers_at(subjects, scaling))


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


@spells_out(find_limits)
def facts_capacity_many(
    specs: Sequence[Facts],
    scaling: Scaling = "equal",
    *,
    rates: Sequence[float] = RATES,
    **options: Unpack[LimitOptions],
) -> list[FactsCapacity]:
    """How many facts each model holds; subjects, relations, answers and lr of the specs do not matter.

    A seed manages a number of subjects if it reaches the target with one of the learning rates; the largest is tried
    first. Resolution and tolerance are in subjects.
    """
    if scaling not in get_args(Scaling):
        raise SpecError("capacity", f"expected one of {', '.join(get_args(Scaling))}, got {scaling!r}")
    results = find_limits(facts_questions(specs, scaling, rates), "subjects", **options)
    capacities = []
    for spec, result in zip(specs, results, strict=True):
        answer = result.end.answer.map(lambda subjects: facts_at(subjects, scaling))
        capacities.append(FactsCapacity(answer, spec, scaling, tuple(rates), result.end, result.records))
    return capacities
