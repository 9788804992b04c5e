"""Several seeds of one factual-recall setting, kept as they finish."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mnemoscope.analysis.intervals import Interval, mean_interval
from mnemoscope.experiments.sweep import Progress, ThisProcess, Workers, sweep
from mnemoscope.record import Outcome
from mnemoscope.spec import Facts
from mnemoscope.store.trials import Store


@dataclass(frozen=True)
class Lessons:
    """The trainings of one setting."""

    spec: Facts
    outcomes: tuple[Outcome, ...]

    @property
    def interval(self) -> Interval:
        """Mean accuracy over seeds; a training that was cut short counts with what it reached."""
        found = [one.accuracy for one in self.outcomes if one.accuracy is not None]
        return mean_interval(found, float(self.spec.test_samples))

    @property
    def bits(self) -> float:
        """S R log2 D: what storing the facts takes, whatever the model."""
        return self.spec.facts * math.log2(self.spec.answers)

    def as_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        spec = self.spec
        return {
            "spec": spec.model_dump(),
            "id": spec.id,
            "trials": [one.as_dict() for one in self.outcomes],
            "accuracy": self.interval.as_dict(),
            "parameters": spec.parameters,
            "facts": spec.facts,
            "facts_per_parameter": spec.facts / spec.parameters,
            "bits": self.bits,
            "bits_per_parameter": self.bits / spec.parameters,
        }


def learn_facts(
    spec: Facts,
    seeds: Sequence[int] = range(4),
    *,
    store: Store | None = None,
    workers: Workers | None = None,
    progress: Progress | None = None,
) -> Lessons:
    """Train on each seed, or find it in the store, the user's own by default."""
    if store is None:
        with Store() as own:
            return learn_facts(spec, seeds, store=own, workers=workers, progress=progress)
    jobs = [(spec, seed) for seed in seeds]
    try:
        sweep(jobs, store, workers or ThisProcess(), progress)
    finally:
        found = store.outcomes(spec)
    return Lessons(spec, tuple(found[seed] for seed in seeds if seed in found))
