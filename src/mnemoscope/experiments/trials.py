"""Several seeds of one setting: the smallest experiment."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from mnemoscope.analysis.intervals import Interval, mean_interval
from mnemoscope.numerics import Device, Precision
from mnemoscope.record import Trial
from mnemoscope.simulate import simulate
from mnemoscope.spec import Retrieval, SpecError

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
        values = [getattr(trial, metric) for trial in self.finished]
        return mean_interval([v for v in values if v is not None], self.spec.test_samples)


def run_trials(
    spec: Retrieval,
    seeds: Iterable[int],
    *,
    precision: Precision = "float32",
    device: Device = "auto",
    report: Report | None = None,
) -> Iterator[Trial]:
    """One trial a seed, each handed over as soon as it is done.

    `report(seed, share)` hears of progress in passes over the samples. A trial that fails is
    handed over as `crashed`, with the reason; a setting that cannot be run at all raises.
    """
    for seed in seeds:
        progress = None if report is None else lambda share, seed=seed: report(seed, share)
        try:
            yield simulate(spec, seed, precision=precision, device=device, progress=progress)
        except SpecError:
            raise
        except Exception as error:
            reason = f"{type(error).__name__}: {error}".splitlines()[0]
            yield Trial(spec, seed, "crashed", message=reason, precision=precision, device=device)


def run(
    spec: Retrieval,
    seeds: int = 8,
    *,
    first: int = 0,
    precision: Precision = "float32",
    device: Device = "auto",
) -> Run:
    """`seeds` trials of one setting, with seeds first, first + 1, ..."""
    numbers = range(first, first + seeds)
    return Run(spec, tuple(run_trials(spec, numbers, precision=precision, device=device)))
