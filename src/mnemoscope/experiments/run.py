"""The smallest experiment: several seeds of one setting."""

import statistics
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any, ClassVar

from mnemoscope.engine.device import Precision
from mnemoscope.engine.record import Trial
from mnemoscope.experiments.calibration import Calibration
from mnemoscope.experiments.critical import AnySpec
from mnemoscope.experiments.drawable import Drawable
from mnemoscope.experiments.estimate.estimate import Estimate
from mnemoscope.experiments.estimate.intervals import mean_interval
from mnemoscope.experiments.keeping import place_for
from mnemoscope.experiments.stored_bits import StoredBits
from mnemoscope.experiments.sweep import OneByOne, ThisProcess, sweep
from mnemoscope.experiments.tabular import Tabular
from mnemoscope.experiments.tools import ShowProgress, open_tools
from mnemoscope.experiments.workers.batches import run_trials
from mnemoscope.spec import Retrieval, SpecError
from mnemoscope.spec.summary import Summary, brief, number
from mnemoscope.spec.token_laws import UNIFORM, Band
from mnemoscope.spec.validators import Device
from mnemoscope.store.schema import NOWHERE
from mnemoscope.store.trials import Store
from mnemoscope.training.three_step.evaluation import times_asked


@dataclass(frozen=True)
class BandRecall:
    """The accuracy on sequences that ask for the tokens of a band, each equally often: every seed's, and their mean."""

    band: Band
    accuracy: Estimate
    seeds: tuple[float, ...]

    def as_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        of = {"least": self.band.least, "below": self.band.below, "tokens": len(self.band.tokens)}
        return {**of, "accuracy": self.accuracy.ends("mean")}


@dataclass(frozen=True, repr=False)
class Run(Drawable, Tabular):
    """The trials of one setting, and their calibration where it was asked for."""

    figure: ClassVar[str] = "steps"
    axes: ClassVar[tuple[str, ...]] = ("seed", "after")
    spec: AnySpec
    trials: tuple[Trial, ...]
    calibration: Calibration | None = None

    @property
    def drawn_by(self) -> str:
        """Where tokens differ in frequency, accuracy is drawn by band; else step by step, or as curves of training."""
        if self.by_curve:
            return "training"
        return "bands" if self.by_fact else self.figure

    @property
    def by_curve(self) -> bool:
        """Whether trials have curves of many checks, rather than a few steps."""
        return self.spec.history == "curve"

    def labels(self) -> tuple[str, ...]:
        """A curve's checks are numbered by the steps taken."""
        return ("seed", "step") if self.by_curve else self.axes

    @property
    def finished(self) -> list[Trial]:
        """Trials with an outcome to average; a crash is not a failure to recall.

        A training that had not settled after all its steps has the accuracy that it reached.
        """
        return [trial for trial in self.trials if trial.status in ("ok", "unreached")]

    def interval(self, metric: str = "accuracy") -> Estimate:
        """The mean over seeds of accuracy, attention_accuracy, recall or accuracy_by_fact, with its interval."""
        trials = [trial for trial in self.finished if getattr(trial, metric) is not None]
        draws = float(self.spec.test_samples)
        if metric == "recall" and trials:  # measured only where attention is right
            draws *= statistics.fmean(trial.attention_accuracy or 0.0 for trial in trials)
        if metric == "accuracy_by_fact":
            draws = float(times_asked(self.spec.test_samples, self.spec.vocab) * self.spec.vocab)
        return mean_interval([getattr(trial, metric) for trial in trials], draws)

    @property
    def by_fact(self) -> bool:
        """Whether facts differ in how often they are shown, so that accuracy by sequence and by fact differ."""
        return getattr(self.spec, "tokens", UNIFORM) != UNIFORM

    @property
    def stored_bits(self) -> StoredBits | None:
        """What rounded weights store, of all facts; None where weights are not rounded."""
        spec = self.spec
        if not isinstance(spec, Retrieval) or not spec.bits or not self.finished:
            return None
        before, after = (_mean_of(self.finished, at, "accuracy") for at in (-2, -1))
        named = _mean_of(self.finished, -1, "map_accuracy")
        weights = spec.dim * ((spec.width or spec.dim) + spec.dim)
        return StoredBits(spec.bits, weights, None if named is None else named * spec.vocab, spec.vocab, before, after)

    @property
    def bands(self) -> list[BandRecall]:
        """Accuracy by band, from rare tokens to frequent ones; empty where tokens are uniform."""
        known = [trial.bands for trial in self.finished if trial.bands is not None]
        if not known:
            return []
        asked = times_asked(self.spec.test_samples, self.spec.vocab)
        return [
            BandRecall(band, mean_interval(shares, float(asked * len(band.tokens))), shares)
            for band, shares in zip(self.spec.bands, zip(*known, strict=True), strict=True)
        ]

    def mean(self, metric: str) -> float | None:
        """The mean over seeds of any metric of the trials; None where no trial has it."""
        known = [value for trial in self.finished if (value := trial.metrics.get(metric)) is not None]
        return statistics.fmean(known) if known else None

    def records(self) -> list[dict[str, Any]]:
        """A row for each seed and step, or check of a curve."""
        if self.by_curve:
            return [{"seed": trial.seed, **check} for trial in self.finished for check in trial.curve]
        return [
            {
                "seed": trial.seed,
                "after": step.name,
                "accuracy": step.accuracy,
                "attention_accuracy": step.attention_accuracy,
                "recall": step.recall,
                "map_accuracy": step.map_accuracy,
                **({"accuracy_by_fact": step.accuracy_by_fact} if self.by_fact else {}),
                "lift": step.ratio,
            }
            for trial in self.finished
            for step in trial.steps
        ]

    def summary(self) -> Summary:
        """The means over seeds, and every seed's outcome."""
        shown = [(str(trial.seed), trial.status, number(trial.accuracy)) for trial in self.trials[:MOST_SHOWN]]
        left = len(self.trials) - len(shown)
        return Summary(
            brief(self.spec),
            {
                "accuracy": str(self.interval("accuracy")),
                **({"by fact": str(self.interval("accuracy_by_fact"))} if self.by_fact else {}),
                "attention": str(self.interval("attention_accuracy")),
                "seeds": f"{len(self.finished)}",
                **({"crashed": f"{crashed}"} if (crashed := len(self.trials) - len(self.finished)) else {}),
            },
            ("seed", "status", "accuracy"),
            tuple(shown),
            f"and {left:,} more seeds" if left else "",
        )

    def as_dict(self) -> dict[str, object]:
        """Plain data, ready for JSON."""
        metrics = ["accuracy", "attention_accuracy", "recall", *["accuracy_by_fact"] * self.by_fact]
        more: dict[str, object] = {"bands": [band.as_dict() for band in self.bands]} if self.by_fact else {}
        if self.calibration is not None:
            more["calibration"] = self.calibration.as_dict()
        if self.stored_bits is not None:
            more["rounding"] = self.stored_bits.as_dict()
        return {
            "spec": self.spec.model_dump(),
            "id": self.spec.id,
            "path": self.spec.path,
            "trials": [trial.as_dict() for trial in self.trials],
            **{metric: self.interval(metric).ends("mean") for metric in metrics},
            **more,
        }


def _mean_of(trials: list[Trial], step: int, field: str) -> float | None:
    """The mean over trials of a field of one step; None where no trial has it."""
    values = [value for trial in trials if (value := getattr(trial.steps[step], field)) is not None]
    return statistics.fmean(values) if values else None


# More seeds than these are not listed one by one.
MOST_SHOWN = 8


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
    progress: ShowProgress = None,
) -> Run:
    """`seeds` trials of one setting, with seeds first, first + 1, ... `budget` is in bytes.

    Trials are kept in the user's store, as the command keeps them, and one that was kept is not run again. `store` may
    be another one, or a file; None keeps nothing. A store holds float32 trials: those in float64 are not kept. Progress
    is shown in a terminal and in a notebook; `progress` may be False, or a function that is called with it.
    """
    numbers = range(first, first + seeds)
    if precision != "float32":
        if not spec.alone:
            raise SpecError("precision", f"expected float32 for settings of kind {spec.kind}, got {precision}")
        return Run(spec, tuple(run_trials(spec, numbers, precision=precision, device=device, budget=budget)))
    if not isinstance(store, Store):
        path = None if isinstance(store, Keep) else NOWHERE if store is None else store
        with Store(path) as kept:
            return run(spec, seeds, first=first, device=device, budget=budget, store=kept, progress=progress)
    with (
        place_for([spec], store) as place,
        open_tools(store=place, workers=workers_for(spec, device, budget), progress=progress) as tools,
    ):
        sweep([(spec, seed) for seed in numbers], place, tools.workers, tools.report("seeds"))
        return kept_run(spec, numbers, place)


def workers_for(spec: AnySpec, device: Device, budget: int | None) -> ThisProcess:
    """Trials one by one, with progress within each; trainings that settle several at once, on all cores."""
    return (OneByOne if spec.alone and not spec.settles else ThisProcess)(device, budget)


def kept_run(spec: AnySpec, seeds: Iterable[int], store: Store) -> Run:
    """The trials of these seeds that a store has."""
    return Run(spec, tuple(store.get([(spec, seed) for seed in seeds]).values()))
