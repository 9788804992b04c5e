"""The smallest experiment: several seeds of one setting."""

import statistics
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from mnemoscope.engine.device import Precision
from mnemoscope.engine.record import Trial
from mnemoscope.experiments.critical import AnySpec
from mnemoscope.experiments.estimate.estimate import Estimate
from mnemoscope.experiments.estimate.intervals import mean_interval
from mnemoscope.experiments.keeping import place_for
from mnemoscope.experiments.sweep import OneByOne, ThisProcess, sweep
from mnemoscope.experiments.workers.batches import run_trials
from mnemoscope.spec import Retrieval, SpecError
from mnemoscope.spec.validators import Device
from mnemoscope.store.schema import NOWHERE
from mnemoscope.store.trials import Store


@dataclass(frozen=True)
class Run:
    """The trials of one setting."""

    spec: AnySpec
    trials: tuple[Trial, ...]

    @property
    def finished(self) -> list[Trial]:
        """Trials with an outcome to average; a crash is not a failure to recall.

        A training that had not settled after all its steps has the accuracy that it reached.
        """
        return [trial for trial in self.trials if trial.status in ("ok", "unreached")]

    def interval(self, metric: str = "accuracy") -> Estimate:
        """The mean over seeds of accuracy, attention_accuracy or recall, with its interval."""
        trials = [trial for trial in self.finished if getattr(trial, metric) is not None]
        draws = float(self.spec.test_samples)
        if metric == "recall" and trials:  # measured only where attention is right
            draws *= statistics.fmean(trial.attention_accuracy or 0.0 for trial in trials)
        return mean_interval([getattr(trial, metric) for trial in trials], draws)

    def as_dict(self) -> dict[str, object]:
        """Plain data, ready for JSON."""
        return {
            "spec": self.spec.model_dump(),
            "id": self.spec.id,
            "path": self.spec.path,
            "trials": [trial.as_dict() for trial in self.trials],
            **{metric: self.interval(metric).ends("mean") for metric in ("accuracy", "attention_accuracy", "recall")},
        }


class Keep(Enum):
    """Where trials go unless the caller names a store."""

    USER = "the user's store"


def run(
    spec: AnySpec,
    seeds: int = 8,
    *,
    first: int = 0,
    precision: Precision = "float32",
    device: Device = "auto",
    budget: int | None = None,
    store: Store | Path | str | Keep | None = Keep.USER,
) -> Run:
    """`seeds` trials of one setting, with seeds first, first + 1, ... `budget` is in bytes.

    Trials are kept in the user's store, as the command keeps them, and one that was kept is not run again. `store` may
    be another one, or a file; None keeps nothing. A store holds float32 trials: those in float64 are not kept.
    """
    numbers = range(first, first + seeds)
    if precision != "float32":
        if not isinstance(spec, Retrieval):
            raise SpecError("precision", f"expected float32 for settings of kind {spec.kind}, got {precision}")
        return Run(spec, tuple(run_trials(spec, numbers, precision=precision, device=device, budget=budget)))
    if not isinstance(store, Store):
        path = None if isinstance(store, Keep) else NOWHERE if store is None else store
        with Store(path) as kept:
            return run(spec, seeds, first=first, device=device, budget=budget, store=kept)
    with place_for([spec], store) as place:
        sweep([(spec, seed) for seed in numbers], place, workers_for(spec, device, budget))
        return kept_run(spec, numbers, place)


def workers_for(spec: AnySpec, device: Device, budget: int | None) -> ThisProcess:
    """Trials one by one, with progress within each; trainings that settle several at once, on all cores."""
    one_by_one = isinstance(spec, Retrieval) and not spec.settles
    return (OneByOne if one_by_one else ThisProcess)(device, budget)


def kept_run(spec: AnySpec, seeds: Iterable[int], store: Store) -> Run:
    """The trials of these seeds that a store has."""
    return Run(spec, tuple(store.get([(spec, seed) for seed in seeds]).values()))
