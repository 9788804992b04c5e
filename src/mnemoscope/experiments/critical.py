"""Critical values: where a measure crosses a target along an axis, for one setting or many side by side."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, ClassVar, Literal, Unpack, cast

from mnemoscope.engine.record import Trial
from mnemoscope.experiments.drawable import Drawable
from mnemoscope.experiments.estimate.estimate import Estimated
from mnemoscope.experiments.estimate.search import search_crossing
from mnemoscope.experiments.searches import SearchInProgress, run_searches
from mnemoscope.experiments.signatures import spells_out
from mnemoscope.experiments.tabular import Tabular
from mnemoscope.experiments.tools import GivenTools, open_tools
from mnemoscope.spec import SpecError
from mnemoscope.spec.summary import Summary, brief, number, span
from mnemoscope.spec.token_laws import UNIFORM
from mnemoscope.spec.validators import Measure
from mnemoscope.theory.critical import SEARCH, TRAINED_SEARCH, critical_value, has_trained_law
from mnemoscope.theory.registry import derived_laws, not_derived

Along = Literal["vocab", "dim", "length", "samples", "width"]
AROUND = 8
# What has axes to search along: a setting of retrieval, or of a model of one's own.
AnySpec = Any


class SearchOptions(GivenTools, total=False):
    """How a crossing is searched for; see `critical_many` for meanings and defaults."""

    tolerance: float
    most_seeds: int
    first_seed: int
    use_theory: bool


@dataclass(frozen=True, repr=False)
class Critical(Drawable, Tabular, Estimated):
    """A critical value, theory's beside it, and the trials it is based on."""

    figure: ClassVar[str] = "crossing"
    spec: AnySpec
    axis: str
    measure: Measure
    target: float
    predicted: float | None
    trials: tuple[Trial, ...] = field(default=(), repr=False)

    @property
    def tokens(self) -> int:
        """The number of tokens simulated for it."""
        return sum(trial.spec.tokens_seen(trial.metrics.get("steps")) for trial in self.trials)

    @property
    def unreached(self) -> int:
        """The number of trainings that had not settled after all their steps; they count with the accuracy reached."""
        return sum(trial.status == "unreached" for trial in self.trials)

    def labels(self) -> tuple[str, ...]:
        """The axis that was searched, and the seeds."""
        return self.axis, "seed"

    def records(self) -> list[dict[str, Any]]:
        """A row for each trial."""
        names = ("seed", "status", "accuracy")
        rows = [
            {
                self.axis: trial.spec.value_of(self.axis),
                **{name: getattr(trial, name) for name in names},
                self.measure: trial.measured(self.measure),
            }
            for trial in self.trials
        ]
        return sorted(rows, key=lambda row: (row[self.axis], row["seed"]))

    def summary(self) -> Summary:
        """Where it crosses, and theory's guess."""
        return Summary(
            f"{brief(self.spec, without=(self.axis,))}, {self.measure.replace('_', ' ')} {self.target:g}",
            {
                "status": self.status,
                self.axis: f"{number(self.estimate, 1)} {span(self.low, self.high, 1)}",
                "predicted": number(self.predicted, 0),
                "trials": f"{len(self.trials)}",
            },
        )

    def as_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        return {
            "spec": self.spec.model_dump(exclude={self.axis}),
            "axis": self.axis,
            "measure": self.measure,
            "target": self.target,
            **self.answer.as_dict(),
            "predicted": self.predicted,
            "tokens": self.tokens,
            "unreached": self.unreached,
            "trials": [
                {
                    self.axis: trial.spec.value_of(self.axis),
                    "seed": trial.seed,
                    "status": trial.status,
                    "accuracy": trial.accuracy,
                    self.measure: trial.measured(self.measure),
                }
                for trial in self.trials
            ],
        }


@lru_cache(maxsize=4096)  # asked for the range, for how long it takes, and for the search
def guess_from_theory(spec: AnySpec, axis: str, target: float, measure: Measure) -> float | None:
    """Theory's critical value, where it has one: that of the end of training for a setting that trains on."""
    if not derived_laws(spec.kind):
        return None
    trained = has_trained_law(spec) and measure != "first_gradient"
    known = TRAINED_SEARCH if trained else SEARCH
    value = critical_value(spec, cast(Any, axis), target, measure, trained=trained) if axis in known else None
    return None if value is None else float(value)


def check_measure(spec: AnySpec, measure: Measure) -> None:
    """Refuse a measure that trials of this setting do not have."""
    if measure == "first_gradient" and getattr(spec, "attention", "") == "locked":
        raise SpecError("measure", "expected learned attention for first_gradient, got locked")
    if measure == "accuracy_by_fact" and getattr(spec, "tokens", UNIFORM) == UNIFORM:
        raise SpecError("measure", "expected tokens that are not uniform for accuracy_by_fact, got uniform")


def range_about(spec: AnySpec, axis: str, target: float, measure: Measure = "accuracy") -> tuple[int, int]:
    """The range from 1/AROUND to AROUND times theory's guess, within the sizes that a setting can have."""
    check_measure(spec, measure)
    guess = guess_from_theory(spec, axis, target, measure)
    if guess is None:
        raise SpecError("range", f"expected LOW:HIGH, since theory {_why_no_guess(spec, axis, target)}, got none")
    middle = max(1, int(guess))
    return max(1, middle // AROUND), spec.most_allowed(axis, middle, middle * AROUND)


def _why_no_guess(spec: AnySpec, axis: str, target: float) -> str:
    """Whether theory is silent, or expects that the axis never leads to the target."""
    derived = derived_laws(spec.kind) and axis in SEARCH and not not_derived(spec)
    return f"expects no {axis} at which it crosses {target:g}" if derived else "has no guess here"


@spells_out(open_tools)
def critical_many(
    specs: Sequence[AnySpec],
    axis: str,
    *,
    target: float = 0.5,
    measure: Measure = "accuracy",
    ranges: Sequence[tuple[int, int | None]] | None = None,
    tolerance: float = 0.1,
    most_seeds: int = 32,
    first_seed: int = 0,
    use_theory: bool = True,
    **given: Unpack[GivenTools],
) -> list[Critical]:
    """Find where the measure crosses `target` for every spec, each to +-`tolerance`.

    Without ranges, it searches around theory's guesses; a range may have no upper end. `use_theory=False` keeps theory
    out of the search itself. Trials are kept in `store`, the user's own by default; workers and progress are given by
    name as well, or all three as `tools`.
    """
    _check_axis(specs, axis)
    for spec in specs:
        check_measure(spec, measure)
    if ranges is None:
        ranges = [range_about(spec, axis, target, measure) for spec in specs]
    guesses = [guess_from_theory(spec, axis, target, measure) for spec in specs]

    def read(records: Sequence[Trial]) -> float | None:
        return records[0].measured(measure)

    def search(spec: AnySpec, low: int, high: int | None, guess: float | None) -> SearchInProgress:
        steps = search_crossing(
            low,
            high,
            target,
            rising=spec.rises_along(axis),
            guess=guess if use_theory else None,
            tolerance=tolerance,
            most_seeds=most_seeds,
        )
        return SearchInProgress(steps, lambda value: [spec.vary(**{axis: value})], read, first_seed)

    searches = [search(spec, *ends, guess) for spec, ends, guess in zip(specs, ranges, guesses, strict=True)]
    with open_tools(**given) as opened:
        results = run_searches(searches, axis, opened)
    return [
        Critical(result.end, spec, axis, measure, target, predicted=guess, trials=result.records)
        for spec, guess, result in zip(specs, guesses, results, strict=True)
    ]


@spells_out(critical_many, without=("ranges",))
def critical(
    spec: AnySpec,
    axis: str,
    *,
    low: int | None = None,
    high: int | None = None,
    target: float = 0.5,
    measure: Measure = "accuracy",
    **options: Unpack[SearchOptions],
) -> Critical:
    """One search between `low` and `high`; the other options are those of `critical_many`."""
    _check_axis([spec], axis)
    if low is None or high is None:
        about = range_about(spec, axis, target, measure)
        low, high = low or about[0], high or about[1]
    if not low < high:
        raise SpecError("range", f"expected low < high, got {low}:{high}")
    (result,) = critical_many([spec], axis, target=target, measure=measure, ranges=[(low, high)], **options)
    return result


def _check_axis(specs: Sequence[AnySpec], axis: str) -> None:
    for spec in specs:
        if axis not in spec.axes:
            raise SpecError("along", f"expected one of {', '.join(spec.axes)}, got {axis!r}")
