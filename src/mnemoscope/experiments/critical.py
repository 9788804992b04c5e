"""Where a measure crosses a target along one axis, for one setting or for many side by side.

Every trial goes through the store, so a search that was stopped goes on where it was. Searches that
run together ask together: their trials share batches, and keep many workers busy.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal, get_args

from mnemoscope.engine.record import Job, Trial
from mnemoscope.experiments.estimate.search import Found, Place, Search, Status, search_crossing
from mnemoscope.experiments.sweep import Tally, ThisProcess, Workers, sweep
from mnemoscope.spec import Retrieval, SpecError
from mnemoscope.spec.validators import Measure
from mnemoscope.store.trials import Store
from mnemoscope.theory.critical import SEARCH, critical_value

Along = Literal["vocab", "dim", "length", "samples", "width"]
# Along these accuracy rises; along the others it falls.
RISING = ("dim", "samples", "width")
AROUND = 8
Progress = Callable[[Tally, str], None]


@dataclass(frozen=True)
class Critical:
    """What a search found, and the trials it is based on."""

    spec: Retrieval
    axis: Along
    measure: Measure
    target: float
    status: Status
    estimate: float | None
    low: float | None
    high: float | None
    predicted: float | None
    trials: tuple[Trial, ...] = field(default=(), repr=False)

    @property
    def tokens(self) -> int:
        """How many tokens were simulated for it."""
        return sum(trial.spec.samples * trial.spec.length for trial in self.trials)

    def as_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        return {
            "spec": {k: v for k, v in self.spec.model_dump().items() if k != self.axis},
            "axis": self.axis,
            "measure": self.measure,
            "target": self.target,
            "status": self.status,
            "estimate": self.estimate,
            "low": self.low,
            "high": self.high,
            "predicted": self.predicted,
            "tokens": self.tokens,
            "trials": [
                {
                    self.axis: getattr(trial.spec, self.axis),
                    "seed": trial.seed,
                    "status": trial.status,
                    "accuracy": trial.accuracy,
                    self.measure: trial.measured(self.measure),
                }
                for trial in self.trials
            ],
        }


@lru_cache(maxsize=4096)  # asked for the range, for how long it takes, and for the search
def guess_from_theory(spec: Retrieval, axis: Along, target: float, measure: Measure) -> float | None:
    """Theory's critical value, where it has one."""
    found = critical_value(spec, axis, target, measure) if axis in SEARCH else None
    return None if found is None else float(found)


def range_about(spec: Retrieval, axis: Along, target: float, measure: Measure = "accuracy") -> tuple[int, int]:
    """A factor of AROUND to either side of theory's guess."""
    guess = guess_from_theory(spec, axis, target, measure)
    if guess is None:
        raise SpecError("range", "expected LOW:HIGH, since theory has no guess here, got none")
    return max(1, int(guess) // AROUND), int(guess) * AROUND


class SearchInProgress:
    """One search under way: its questions as jobs, and the trials that answered them."""

    def __init__(self, spec: Retrieval, axis: Along, measure: Measure, first: int, search: Search) -> None:
        self.spec, self.first, self.search = spec, first, search
        self.axis: Along = axis
        self.measure: Measure = measure
        self.trials: dict[Place, Trial] = {}
        self.found: Found | None = None
        self.asked = next(search)

    def jobs(self) -> list[Job]:
        """What it wants run now."""
        return [(self.spec.replace(**{self.axis: value}), self.first + seed) for value, seed in self.asked]

    def answer(self, told: Mapping[tuple[str, int], Trial]) -> None:
        """Hand over the trials, and hear what it wants next."""
        answers: dict[Place, float | None] = {}
        for place, (spec, seed) in zip(self.asked, self.jobs(), strict=True):
            self.trials[place] = trial = told[spec.id, seed]
            answers[place] = trial.measured(self.measure)
        try:
            self.asked = self.search.send(answers)
        except StopIteration as end:
            self.found, self.asked = end.value, []


def critical_many(
    specs: Sequence[Retrieval],
    axis: Along,
    *,
    target: float = 0.5,
    measure: Measure = "accuracy",
    ranges: Sequence[tuple[int, int | None]] | None = None,
    tolerance: float = 0.1,
    most_seeds: int = 32,
    first_seed: int = 0,
    use_theory: bool = True,
    store: Store | None = None,
    workers: Workers | None = None,
    progress: Progress | None = None,
) -> list[Critical]:
    """Find where the measure crosses `target` for every spec, each to +-`tolerance`.

    Without ranges, about theory's guesses; a range may be open upwards. `use_theory=False` keeps
    theory out of the search itself. Trials are kept in `store`, the user's own by default.
    """
    if store is None:
        with Store() as own:
            return critical_many(
                specs,
                axis,
                target=target,
                measure=measure,
                ranges=ranges,
                tolerance=tolerance,
                most_seeds=most_seeds,
                first_seed=first_seed,
                use_theory=use_theory,
                store=own,
                workers=workers,
                progress=progress,
            )
    _check_axis(axis)
    for spec in specs:
        _check_measure(spec, measure)
    if ranges is None:
        ranges = [range_about(spec, axis, target, measure) for spec in specs]
    workers = workers or ThisProcess()
    guesses = [guess_from_theory(spec, axis, target, measure) for spec in specs]
    hunts = [
        SearchInProgress(
            spec,
            axis,
            measure,
            first_seed,
            search_crossing(
                low,
                high,
                target,
                rising=axis in RISING,
                guess=guess if use_theory else None,
                tolerance=tolerance,
                most_seeds=most_seeds,
            ),
        )
        for spec, (low, high), guess in zip(specs, ranges, guesses, strict=True)
    ]
    open_hunts = hunts
    while open_hunts:
        jobs = list(dict.fromkeys(job for hunt in open_hunts for job in hunt.jobs()))
        done = len(hunts) - len(open_hunts)
        places = {getattr(spec, axis) for spec, _ in jobs}
        at = f"{axis} = {places.pop():,}" if len(places) == 1 else f"{len(places)} places"
        where = at if len(hunts) == 1 else f"{done} of {len(hunts)} points found, this round, {at}"
        sweep(jobs, store, workers, None if progress is None else lambda t, w=where: progress(t, w))
        told = {(s.id, k): trial for s, k in jobs if (trial := store.get(s, k)) is not None}
        for hunt in open_hunts:
            hunt.answer(told)
        open_hunts = [hunt for hunt in open_hunts if hunt.found is None]
    return [_told(hunt, target, guess) for hunt, guess in zip(hunts, guesses, strict=True)]


def critical(
    spec: Retrieval,
    axis: Along,
    *,
    low: int | None = None,
    high: int | None = None,
    target: float = 0.5,
    measure: Measure = "accuracy",
    **more: Any,
) -> Critical:
    """One search; what it takes more is as for `critical_many`."""
    _check_axis(axis)
    if low is None or high is None:
        about = range_about(spec, axis, target, measure)
        low, high = low or about[0], high or about[1]
    if not low < high:
        raise SpecError("range", f"expected low < high, got {low}:{high}")
    (found,) = critical_many([spec], axis, target=target, measure=measure, ranges=[(low, high)], **more)
    return found


def _check_axis(axis: str) -> None:
    if axis not in get_args(Along):
        raise SpecError("along", f"expected one of {', '.join(get_args(Along))}, got {axis!r}")


def _check_measure(spec: Retrieval, measure: Measure) -> None:
    if measure == "first_gradient" and spec.attention == "locked":
        raise SpecError("measure", "expected learned attention for first_gradient, got locked")


def _told(hunt: SearchInProgress, target: float, guess: float | None) -> Critical:
    assert hunt.found is not None
    crossing = hunt.found.crossing
    ends = (crossing.estimate, crossing.low, crossing.high) if crossing else (None,) * 3
    estimate, low, high = (v if v is not None and math.isfinite(v) else None for v in ends)
    return Critical(
        hunt.spec,
        hunt.axis,
        hunt.measure,
        target,
        hunt.found.status,
        estimate,
        low,
        high,
        predicted=guess,
        trials=tuple(hunt.trials.values()),
    )
