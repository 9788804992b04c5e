"""How much a memory or a transformer stores: up to how many items its seeds meet a criterion.

Every trial goes through the store, so a search that was stopped goes on where it was. Searches that
run together ask together, and their trials share batches.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mnemoscope.engine.record import AnyJob, Trial
from mnemoscope.experiments.estimate.limits import Limits, LimitSearch, search_limits
from mnemoscope.experiments.estimate.search import Place, Status
from mnemoscope.experiments.sweep import Tally, ThisProcess, Workers, sweep
from mnemoscope.spec import Memory, Spec, SpecError
from mnemoscope.spec.memory import MOST
from mnemoscope.store.trials import Store
from mnemoscope.theory.associative import BEST_LINEAR, HEBBIAN_ALL, expected_items, items_by_law

Progress = Callable[[Tally, str], None]
# How far beyond what is expected a memory's limit may lie.
BEYOND = 2.0
# What to run to learn whether a seed manages so many: it does if one of the trials meets the aim.
# The first is made first, and the others only where it was not enough.
Tries = Callable[[int], Sequence[Spec]]


@dataclass(frozen=True)
class Question:
    """One search: the trials at a place on the axis, what counts as yes, and where to begin.

    The answer is expected at `usual`, and not beyond `most`: this is to say how long it may take.
    """

    tries: Tries
    aim: float
    guess: float
    usual: float
    most: float
    ends: tuple[int, int] | None = None


@dataclass(frozen=True)
class SearchResult:
    """What a search found, and every trial it asked for, by place."""

    limits: Limits
    trials: dict[Place, tuple[Trial, ...]] = field(repr=False)


class SearchInProgress:
    """One search under way."""

    def __init__(self, question: Question, first: int, search: LimitSearch) -> None:
        self.question, self.first, self.search = question, first, search
        self.trials: dict[Place, tuple[Trial, ...]] = {}
        self.found: Limits | None = None
        self.asked = next(search)

    def jobs(self) -> list[AnyJob]:
        """What it wants run now."""
        return [job for place in self.asked for job in self.at(place)]

    def at(self, place: Place) -> list[AnyJob]:
        """The trials of one place that are to be made next; none if it can be answered."""
        made = self.trials.get(place, ())
        if self.settle(made):
            return []
        value, seed = place
        tries = self.question.tries(value)
        part = tries[len(made) :] if made else tries[:1]
        return [(spec, self.first + seed) for spec in part]

    def settle(self, made: Sequence[Trial]) -> bool | None:
        """One that meets the aim is enough; a crash among the others leaves it open."""
        met = [one.meets(self.question.aim) for one in made]
        return True if True in met else None if None in met else False

    def answer(self, told: Mapping[tuple[str, int], Trial]) -> None:
        """Hand over the outcomes, and hear what it wants next."""
        for place in self.asked:
            made = tuple(told[spec.id, seed] for spec, seed in self.at(place))
            self.trials[place] = self.trials.get(place, ()) + made
        if self.jobs():
            return  # somewhere the first was not enough
        answers = {place: self.settle(self.trials[place]) for place in self.asked}
        try:
            self.asked = self.search.send(answers)
        except StopIteration as end:
            self.found, self.asked = end.value, []


def find_limits(
    questions: Sequence[Question],
    *,
    seeds: int = 4,
    most_seeds: int = 16,
    first_seed: int = 0,
    resolution: float = 0.03,
    tolerance: float = 0.1,
    store: Store,
    workers: Workers | None = None,
    progress: Progress | None = None,
) -> list[SearchResult]:
    """Answer every question, all side by side."""
    workers = workers or ThisProcess()
    hunts = [
        SearchInProgress(
            one,
            first_seed,
            search_limits(
                one.guess,
                ends=one.ends,
                resolution=resolution,
                tolerance=tolerance,
                seeds_at_first=seeds,
                most_seeds=most_seeds,
            ),
        )
        for one in questions
    ]
    open_hunts = hunts
    while open_hunts:
        jobs = list(dict.fromkeys(job for hunt in open_hunts for job in hunt.jobs()))
        where = f"{len(hunts) - len(open_hunts)} of {len(hunts)} limits found, this round's trials"
        sweep(jobs, store, workers, None if progress is None else lambda t, w=where: progress(t, w))
        told: dict[tuple[str, int], Trial] = {}
        for spec in dict.fromkeys(spec for spec, _ in jobs):
            told |= {(spec.id, seed): one for seed, one in store.outcomes(spec).items()}
        for hunt in open_hunts:
            hunt.answer(told)
        open_hunts = [hunt for hunt in open_hunts if hunt.found is None]
    return [SearchResult(hunt.found, hunt.trials) for hunt in hunts if hunt.found is not None]


@dataclass(frozen=True)
class Capacity:
    """How many items a memory holds by one criterion: all of them right (1), or a share."""

    spec: Memory
    criterion: float
    limits: Limits
    expected: float
    trials: tuple[tuple[int, Trial], ...] = field(default=(), repr=False)

    @property
    def status(self) -> Status:
        """How the search ended."""
        return self.limits.status

    @property
    def laws(self) -> dict[str, float]:
        """The N of each sharp law at this size; those that speak of another case are left out."""
        spec = self.spec
        if spec.form == "mlp" or spec.rank or spec.outputs:
            return {}
        return {
            "hebbian, all right: d^2 = 8 N ln N": items_by_law(spec.dim**2, HEBBIAN_ALL),
            "best, all right (conjectured): d^2 = 2 N ln N": items_by_law(spec.dim**2, BEST_LINEAR),
        }

    def as_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        spec, found = self.spec, self.limits
        return {
            "spec": {k: v for k, v in spec.model_dump().items() if k not in ("items", "target")},
            "kind": spec.form,
            "method": spec.method,
            "criterion": criterion_name(self.criterion),
            "capacity": found.estimate,
            "low": found.low,
            "high": found.high,
            "status": found.status,
            "parameters": spec.parameters,
            "each_seed": list(found.each),
            "items_per_parameter": found.estimate and found.estimate / spec.parameters,
            "expected": self.expected,
            "laws": self.laws,
            "trials": [
                {"items": items, "seed": one.seed, "status": one.status, "accuracy": one.accuracy}
                for items, one in self.trials
            ],
        }


@dataclass(frozen=True)
class Capacities:
    """A series of capacities; told as the one there is, or as a list of points."""

    points: tuple[Capacity, ...]

    def as_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        told = [one.as_dict() for one in self.points]
        if len(told) == 1:
            return told[0]
        return {**{name: told[0][name] for name in ("kind", "method", "criterion")}, "points": told}


def criterion_name(criterion: float) -> str:
    """`all`, or the share as it was given."""
    return "all" if criterion >= 1 else f"{criterion:g}"


def capacity_many(
    specs: Sequence[Memory],
    criterion: float = 0.99,
    *,
    ends: tuple[int, int] | None = None,
    store: Store | None = None,
    **more: Any,
) -> Capacities:
    """The capacity of every memory; `items` and `target` of the specs do not matter.

    What it takes more is as for `find_limits`. Trials are kept in `store`, the user's own by
    default.
    """
    if store is None:
        with Store() as own:
            return capacity_many(specs, criterion, ends=ends, store=own, **more)
    asked = memory_questions(specs, criterion, ends)
    found = find_limits([question for _, question in asked], store=store, **more)
    return Capacities(
        tuple(
            Capacity(
                spec,
                criterion,
                one.limits,
                question.usual,
                tuple((items, outcome) for (items, _), made in one.trials.items() for outcome in made),
            )
            for (spec, question), one in zip(asked, found, strict=True)
        )
    )


def memory_questions(
    specs: Sequence[Memory], criterion: float, ends: tuple[int, int] | None = None
) -> list[tuple[Memory, Question]]:
    """The search for each memory's capacity, and the setting that its trials have."""
    for spec in specs:
        if spec.embedding == "orthonormal":
            raise SpecError(
                "embedding",
                "expected gaussian or sphere, since an orthonormal memory holds "
                "all that there is room for, got orthonormal",
            )
    # Only a training stops at a target: one construction serves every criterion.
    asked = [spec.replace(target=criterion) if spec.method == "trained" else spec for spec in specs]
    made = []
    for spec in asked:
        guess = expected_items(
            spec.dim,
            spec.width or spec.rank,
            spec.outputs,
            trained=spec.method == "trained",
            linear=not spec.width,
            criterion=criterion,
        )
        if ends is None and guess > MOST:
            raise SpecError(
                "dim",
                f"expected a memory of at most {MOST:,} items, got {spec.dim:,}, which is "
                f"expected to hold {guess:,.0f} or more",
            )
        made.append(
            (
                spec,
                Question(lambda n, spec=spec: [spec.replace(items=n)], criterion, guess, guess, BEYOND * guess, ends),
            )
        )
    return made


def capacity(spec: Memory, criterion: float = 0.99, **more: Any) -> Capacity:
    """One memory's capacity; what it takes more is as for `capacity_many`."""
    return capacity_many([spec], criterion, **more).points[0]
