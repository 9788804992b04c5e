"""Capacity: up to how many items the seeds of a memory or a transformer meet a criterion."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, Unpack

from mnemoscope.engine.record import Trial
from mnemoscope.experiments.drawable import Drawable
from mnemoscope.experiments.estimate.estimate import Estimated
from mnemoscope.experiments.estimate.limits import Limits, search_limits, turned
from mnemoscope.experiments.estimate.search import LARGEST
from mnemoscope.experiments.searches import Result, SearchInProgress, Tries, run_searches
from mnemoscope.experiments.signatures import spells_out
from mnemoscope.experiments.stored_bits import StoredBits
from mnemoscope.experiments.tabular import Tabular
from mnemoscope.experiments.tools import GivenTools, open_tools
from mnemoscope.spec import Memory, SpecError
from mnemoscope.spec.memory import MOST
from mnemoscope.spec.summary import Shown, Summary, brief, number, span
from mnemoscope.theory.associative import BEST_LINEAR, HEBBIAN_ALL, expected_items, items_by_law

# How far beyond the expected number a memory's limit may lie.
BEYOND = 2.0


@dataclass(frozen=True)
class Question:
    """One search: the trials at a place on the axis, what counts as success, and where to begin.

    A seed succeeds if one of its tries meets the aim: up to its limit, or from there on where success `rises`. For
    forecasts of the run time: the limit is expected at `usual`, and not beyond `most`. No place beyond `largest` is
    tried.
    """

    tries: Tries
    aim: float
    guess: float
    usual: float
    most: float
    ends: tuple[int, int] | None = None
    rises: bool = False
    largest: int = LARGEST

    def read(self, records: Sequence[Trial]) -> bool | None:
        """Whether a seed succeeds; None if no trial meets the aim and one crashed."""
        met = [record.meets(self.aim) for record in records]
        return True if True in met else None if None in met else False


class LimitOptions(GivenTools, total=False):
    """How limits are searched for, and with which tools; see `find_limits` for meanings and defaults."""

    seeds: int
    most_seeds: int
    first_seed: int
    resolution: float
    tolerance: float


@spells_out(open_tools)
def find_limits(
    questions: Sequence[Question],
    along: str,
    *,
    seeds: int = 4,
    most_seeds: int = 16,
    first_seed: int = 0,
    resolution: float = 0.03,
    tolerance: float = 0.1,
    **given: Unpack[GivenTools],
) -> list[Result[Limits]]:
    """Answer all questions side by side; `along` names their axis for progress.

    Each begins with `seeds` seeds and takes up to `most_seeds`, until the mean is known to +-`tolerance`; every seed's
    own limit is found to within `resolution`. Trials are kept in `store`, the user's own by default; workers and
    progress are given by name as well, or all three as `tools`.
    """
    how = {"resolution": resolution, "tolerance": tolerance}
    search = partial(search_limits, **how, seeds_at_first=seeds, most_seeds=most_seeds)
    searches = []
    for q in questions:
        asking = search(q.guess, ends=q.ends, largest=q.largest)
        searches.append(SearchInProgress(turned(asking) if q.rises else asking, q.tries, q.read, first_seed))
    with open_tools(**given) as opened:
        return run_searches(searches, along, opened)


@dataclass(frozen=True, repr=False)
class Capacity(Shown, Tabular, Estimated):
    """How many items a memory holds: with all of them right (criterion 1), or a share."""

    axes: ClassVar[tuple[str, ...]] = ("items", "seed")
    spec: Memory
    criterion: float
    limits: Limits
    expected: float
    trials: tuple[tuple[int, Trial], ...] = field(default=(), repr=False)

    @property
    def laws(self) -> dict[str, float]:
        """The N of each sharp law at this size, if the law covers this memory."""
        spec = self.spec
        # They are laws of all items right: beside a share of them they would say nothing.
        if spec.form == "mlp" or spec.rank or spec.outputs or self.criterion < 1:
            return {}
        return {
            "hebbian, all right: d^2 = 8 N ln N": items_by_law(spec.dim**2, HEBBIAN_ALL),
            "best, all right (conjectured): d^2 = 2 N ln N": items_by_law(spec.dim**2, BEST_LINEAR),
        }

    @property
    def stored_bits(self) -> StoredBits | None:
        """What rounded weights store at the capacity; None where weights are not rounded."""
        spec, items = self.spec, self.estimate
        if not spec.bits:
            return None
        named = None if items is None else self.criterion * items
        return StoredBits(spec.bits, spec.parameters, named, spec.outputs or items)

    def as_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        spec = self.spec
        return {
            "spec": spec.model_dump(exclude={"items", "target"}),
            "kind": spec.form,
            "method": spec.method,
            "criterion": criterion_name(self.criterion),
            **self.answer.as_dict("capacity"),
            "parameters": spec.parameters,
            "each_seed": list(self.limits.each),
            "items_per_parameter": self.estimate and self.estimate / spec.parameters,
            "expected": self.expected,
            "laws": self.laws,
            **({} if self.stored_bits is None else {"rounding": self.stored_bits.as_dict()}),
            "trials": self.records(),
        }

    def records(self) -> list[dict[str, Any]]:
        """A row for each trial."""
        return [
            {"items": items, "seed": trial.seed, "status": trial.status, "accuracy": trial.accuracy}
            for items, trial in self.trials
        ]

    def summary(self) -> Summary:
        """The capacity, and the laws' for a memory of this size."""
        return Summary(
            f"{brief(self.spec, without=('items', 'target'))}, {criterion_name(self.criterion)} right",
            {
                "status": self.status,
                "items": f"{number(self.estimate, 1)} {span(self.low, self.high, 1)}",
                "expected": number(self.expected, 0),
                "parameters": f"{self.spec.parameters:,}",
            },
            ("law", "items"),
            tuple((law, f"{items:,.0f}") for law, items in self.laws.items()),
        )


@dataclass(frozen=True, repr=False)
class Capacities(Drawable, Tabular):
    """A series of capacities; plain data of a single one is that capacity itself."""

    figure: ClassVar[str] = "capacity"
    axes: ClassVar[tuple[str, ...]] = ("dim",)
    points: tuple[Capacity, ...]

    def as_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        points = [point.as_dict() for point in self.points]
        if len(points) == 1:
            return points[0]
        return {**{name: points[0][name] for name in ("kind", "method", "criterion")}, "points": points}

    def records(self) -> list[dict[str, Any]]:
        """A row for each memory."""
        return [
            {
                "dim": point.spec.dim,
                "items": point.estimate,
                "low": point.low,
                "high": point.high,
                "status": point.status,
                "seeds": len(point.limits.each),
                "expected": point.expected,
                "parameters": point.spec.parameters,
            }
            for point in self.points
        ]

    def summary(self) -> Summary:
        """The capacity of each memory."""
        rows = [
            (f"{point.spec.dim:,}", number(point.estimate, 1), span(point.low, point.high, 1), f"{point.expected:,.0f}")
            for point in self.points
        ]
        first = self.points[0]
        numbers = {"memories": f"{len(rows)}"} | {f"d={row[0]}": f"{row[1]} items" for row in rows}
        title = f"{first.spec.form} memory, {first.spec.method}, {criterion_name(first.criterion)} right"
        return Summary(title, numbers, ("d", "items", "95 % interval", "expected"), tuple(rows))


def criterion_name(criterion: float) -> str:
    """`all`, or the share as it was given."""
    return "all" if criterion >= 1 else f"{criterion:g}"


@spells_out(find_limits)
def capacity_many(
    specs: Sequence[Memory],
    criterion: float = 0.99,
    *,
    ends: tuple[int, int] | None = None,
    **options: Unpack[LimitOptions],
) -> Capacities:
    """The capacity of every memory, between `ends` if given. `items` and `target` of the specs do not matter."""
    settings = memory_questions(specs, criterion, ends)
    results = find_limits([question for _, question in settings], "items", **options)
    points = []
    for (spec, question), result in zip(settings, results, strict=True):
        trials = tuple((items, record) for (items, _), records in result.trials.items() for record in records)
        points.append(Capacity(result.end.answer, spec, criterion, result.end, question.usual, trials))
    return Capacities(tuple(points))


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
    # Only a training stops at a target; a construction serves every criterion.
    settings = [spec.replace(target=criterion) if spec.method == "trained" else spec for spec in specs]
    questions = []
    for spec in settings:
        how = {"trained": spec.method == "trained", "linear": not spec.width}
        guess = expected_items(spec.dim, spec.width or spec.rank, spec.outputs, **how, criterion=criterion)
        if ends is None and guess > MOST:
            raise SpecError(
                "dim",
                f"expected a memory of at most {MOST:,} items, got {spec.dim:,}, which is "
                f"expected to hold {guess:,.0f} or more",
            )
        question = Question(lambda n, spec=spec: [spec.replace(items=n)], criterion, guess, guess, BEYOND * guess, ends)
        questions.append((spec, question))
    return questions


@spells_out(capacity_many)
def capacity(
    spec: Memory, criterion: float = 0.99, *, ends: tuple[int, int] | None = None, **options: Unpack[LimitOptions]
) -> Capacity:
    """One memory's capacity; the options are those of `capacity_many`."""
    return capacity_many([spec], criterion, ends=ends, **options).points[0]
