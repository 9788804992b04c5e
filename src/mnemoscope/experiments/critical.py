"""Where accuracy crosses a target along one axis: a search among noisy trials.

1. Both ends of the range are tried. If the easy end does not reach the target, or the hard end
   already does, there is nothing to search for, and the status says so.
2. Bisection in the logarithm with few seeds, from theory's guess where there is one, until the
   bracket is narrow.
3. Three points about the crossing, the same seeds at each; seeds are added until the interval is as
   narrow as asked for, or there are no more.

Every trial goes through the store, so a search that was stopped goes on where it was.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from mnemoscope.analysis.threshold import Crossing, find_crossing
from mnemoscope.experiments.sweep import Tally, ThisProcess, Workers, sweep
from mnemoscope.record import Trial
from mnemoscope.spec import Retrieval, SpecError
from mnemoscope.store.trials import Store
from mnemoscope.theory.predict import SEARCH, critical_value

Along = Literal["vocab", "dim", "length", "samples", "width"]
Status = Literal["found", "below-range", "above-range", "unresolved"]
# Along these accuracy rises; along the others it falls.
RISING = ("dim", "samples", "width")
FEW_SEEDS = 4
AROUND = 8
NARROW = 1.5
Progress = Callable[[Tally, str], None]


@dataclass(frozen=True)
class Critical:
    """What a search found, and the trials it is based on."""

    spec: Retrieval
    axis: Along
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
            "spec": self.spec.model_dump(),
            "axis": self.axis,
            "target": self.target,
            "status": self.status,
            "estimate": self.estimate,
            "low": self.low,
            "high": self.high,
            "predicted": self.predicted,
            "tokens": self.tokens,
            "trials": [
                {self.axis: getattr(trial.spec, self.axis), "seed": trial.seed,
                 "status": trial.status, "accuracy": trial.accuracy}
                for trial in self.trials
            ],
        }  # fmt: skip


class Search:
    """One search: what was asked for, and what was run so far."""

    def __init__(
        self, spec: Retrieval, axis: Along, target: float, store: Store, workers: Workers,
        first_seed: int, progress: Progress | None,
    ) -> None:  # fmt: skip
        self.spec, self.axis, self.target = spec, axis, target
        self.store, self.workers, self.progress = store, workers, progress
        self.first = first_seed
        self.trials: dict[tuple[int, int], Trial] = {}

    def mean(self, value: int, seeds: int) -> float:
        """Mean accuracy at a value over its first seeds. Crashes are left out."""
        self.run([value], seeds, f"{self.axis} = {value:,}")
        found = [
            trial.accuracy
            for (at, _), trial in self.trials.items()
            if at == value and trial.accuracy is not None
        ]
        if not found:
            raise SpecError("", f"every trial at {self.axis} = {value:,} crashed")
        return math.fsum(found) / len(found)

    def run(self, values: Sequence[int], seeds: int, what: str) -> None:
        """See to it that these values have their first seeds."""
        jobs = [
            (self.spec.replace(**{self.axis: value}), seed)
            for value in values
            for seed in range(self.first, self.first + seeds)
            if (value, seed) not in self.trials
        ]

        def report(tally: Tally) -> None:
            if self.progress is not None:
                self.progress(tally, what)

        sweep(jobs, self.store, self.workers, report)
        for spec, seed in jobs:
            trial = self.store.get(spec, seed)
            if trial is not None:
                self.trials[getattr(spec, self.axis), seed] = trial

    def crossing(self, resamples: int = 200) -> Crossing:
        """The estimate from all trials so far."""
        rows = [
            (value, seed, trial.accuracy)
            for (value, seed), trial in sorted(self.trials.items())
            if trial.accuracy is not None
        ]
        values, seeds, accuracies = zip(*rows, strict=True)
        rising = self.axis in RISING
        found = find_crossing(
            [value if rising else 1 / value for value in values],
            seeds, accuracies, self.target, resamples=resamples,
        )  # fmt: skip
        if rising:
            return found
        high = 1 / found.low if found.low > 0 else math.inf
        return Crossing(1 / found.estimate, 1 / found.high, high, found.slope)


def range_about(spec: Retrieval, axis: Along, target: float) -> tuple[int, int]:
    """A factor of AROUND to either side of theory's guess."""
    guess = critical_value(spec, axis, target) if axis in SEARCH else None
    if guess is None:
        raise SpecError("range", "expected LOW:HIGH, since theory has no guess here, got none")
    return max(1, guess // AROUND), guess * AROUND


def critical(
    spec: Retrieval,
    axis: Along,
    *,
    target: float = 0.5,
    low: int | None = None,
    high: int | None = None,
    tolerance: float = 0.1,
    most_seeds: int = 32,
    first_seed: int = 0,
    store: Store | None = None,
    workers: Workers | None = None,
    progress: Progress | None = None,
) -> Critical:
    """Find where accuracy crosses `target` between `low` and `high`, to +-`tolerance`.

    Without a range, about theory's guess. Trials are kept in `store`, the user's own by default.
    """
    if low is None or high is None:
        about = range_about(spec, axis, target)
        low, high = low or about[0], high or about[1]
    if not low < high:
        raise SpecError("range", f"expected low < high, got {low}:{high}")
    if store is None:
        with Store() as own:
            return critical(
                spec, axis, target=target, low=low, high=high, tolerance=tolerance,
                most_seeds=most_seeds, first_seed=first_seed, store=own, workers=workers,
                progress=progress,
            )  # fmt: skip
    workers = workers or ThisProcess()
    search = Search(spec, axis, target, store, workers, first_seed, progress)
    rising = axis in RISING
    guess = critical_value(spec, axis, target) if axis in SEARCH else None

    def told(status: Status, found: Crossing | None) -> Critical:
        ends = (found.estimate, found.low, found.high) if found else (None, None, None)
        numbers = [value if value is not None and math.isfinite(value) else None for value in ends]
        return Critical(
            spec, axis, target, status, *numbers,
            predicted=None if guess is None else float(guess),
            trials=tuple(search.trials.values()),
        )  # fmt: skip

    hard, easy = (low, high) if rising else (high, low)
    few = min(FEW_SEEDS, most_seeds)
    if search.mean(hard, few) >= target:
        return told("below-range" if rising else "above-range", None)
    if search.mean(easy, few) < target:
        return told("above-range" if rising else "below-range", None)
    middle = guess if guess is not None and low < guess < high else None
    while high / low > NARROW and high - low > 1:
        if middle is None:
            middle = min(max(round(math.sqrt(low * high)), low + 1), high - 1)
        if (search.mean(middle, few) >= target) == rising:
            high = middle
        else:
            low = middle
        # After theory's guess, its neighbourhood; then halves.
        near = guess is not None and middle == guess
        step = NARROW if (middle == low) else 1 / NARROW
        middle = round(middle * step) if near and low < middle * step < high else None
    seeds = few
    found = search.crossing()
    points = _about(found, low, high)
    while True:
        seeds = min(seeds + FEW_SEEDS, most_seeds)
        search.run(points, seeds, f"{seeds} seeds at {', '.join(f'{value:,}' for value in points)}")
        found = search.crossing()
        if found.width <= tolerance:
            return told("found", found)
        if seeds == most_seeds:
            return told("unresolved", found)


def _about(found: Crossing, low: int, high: int) -> list[int]:
    """The crossing and a point on either side, where accuracy is about 0.3 from the target."""
    gap = min(max(1.2 / found.slope, math.log(1.1)), math.log(2.0))
    middle = min(max(found.estimate, low), high)
    points = {round(middle * math.exp(share * gap)) for share in (-1, 0, 1)}
    return sorted(max(1, value) for value in points)
