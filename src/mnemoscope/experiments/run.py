"""Several seeds of one setting: the smallest experiment."""

import statistics
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import cast

from mnemoscope.engine.device import Precision
from mnemoscope.engine.record import Trial
from mnemoscope.experiments.estimate.intervals import Interval, mean_interval
from mnemoscope.experiments.workers.batches import run_guarded
from mnemoscope.spec import Retrieval
from mnemoscope.spec.validators import Device
from mnemoscope.training.three_step.simulation import simulate

Report = Callable[[int, float], None]


@dataclass(frozen=True)
class Run:
    """The trials of one setting."""

    spec: Retrieval
    trials: tuple[Trial, ...]

    @property
    def finished(self) -> list[Trial]:
        """Trials that have an outcome to average; a crash is not a failure to recall."""
        return [trial for trial in self.trials if trial.status == "ok"]

    def interval(self, metric: str = "accuracy") -> Interval:
        """Mean over seeds, with its interval, of accuracy, attention_accuracy or recall."""
        trials = [one for one in self.finished if getattr(one, metric) is not None]
        draws = float(self.spec.test_samples)
        if metric == "recall" and trials:  # measured only where attention is right
            draws *= statistics.fmean(one.attention_accuracy or 0.0 for one in trials)
        return mean_interval([getattr(one, metric) for one in trials], draws)


def run_trials(
    spec: Retrieval,
    seeds: Iterable[int],
    *,
    precision: Precision = "float32",
    device: Device = "auto",
    budget: int | None = None,
    report: Report | None = None,
) -> Iterator[Trial]:
    """One trial a seed, each handed over as soon as it is done.

    `report(seed, share)` hears of progress in passes over the samples. A trial that fails is
    handed over as `crashed`, with the reason; a setting that cannot be run at all raises.
    """
    for seed in seeds:
        progress = None if report is None else lambda share, seed=seed: report(seed, share)
        trial = partial(simulate, spec, seed, precision=precision, device=device, budget=budget, progress=progress)
        yield from cast(list[Trial], run_guarded([(spec, seed)], lambda _, trial=trial: [trial()], device, precision))


def run(
    spec: Retrieval,
    seeds: int = 8,
    *,
    first: int = 0,
    precision: Precision = "float32",
    device: Device = "auto",
    budget: int | None = None,
) -> Run:
    """`seeds` trials of one setting, with seeds first, first + 1, ... `budget` is in bytes."""
    numbers = range(first, first + seeds)
    trials = run_trials(spec, numbers, precision=precision, device=device, budget=budget)
    return Run(spec, tuple(trials))
