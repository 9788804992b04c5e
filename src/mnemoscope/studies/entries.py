"""A ledger's entries: one study measured at one size from one base seed, with the trials it rests on.

An entry holds numbers, not verdicts. It counts as long as the study's revision and the version of the numerics are
what they were.
"""

import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, get_args

import jax

from mnemoscope.engine.record import NUMERICS_VERSION, AnyJob, Trial, versions
from mnemoscope.store.trials import Store
from mnemoscope.studies.base import Bench, Numbers, PlainData, Power, Size, Study

# Settings, and rows whose first column is the index of a setting. Small enough to ship with a report.
Trials = dict[str, Any]
COLUMNS = ("setting", "seed", "status", "accuracy", "attention_accuracy", "first_gradient", "steps")


@dataclass(frozen=True)
class Entry(PlainData):
    """One measurement of one study, and the trials it rests on."""

    study: str
    size: Size
    base: int
    revision: int
    numbers: Numbers = field(repr=False)
    numerics: int = NUMERICS_VERSION
    seconds: float = 0.0
    made: dict[str, str] = field(default_factory=dict)
    trials: Trials = field(default_factory=dict, repr=False)
    power: dict[str, Any] | None = None

    @property
    def key(self) -> tuple[str, str, int]:
        """A ledger has one entry for each of these."""
        return self.study, self.size, self.base


def read_entry(values: dict[str, Any]) -> Entry:
    """An entry from a file that anybody may have written; ValueError if a value has the wrong type."""
    entry = Entry(**values)
    texts: list[Any] = [entry.study, *entry.made, *entry.made.values()]
    counts: list[Any] = [entry.base, entry.revision, entry.numerics]
    numbers: list[Any] = [entry.seconds]
    if entry.power is not None:
        power = Power(**entry.power)
        texts.append(power.note)
        counts.append(power.draws)
        numbers += [power.supported, *power.rivals.values()]
    typed = ((texts, str), (counts, int), (numbers, int | float), ((entry.numbers, entry.trials), dict))
    well_typed = all(isinstance(value, kind) for group, kind in typed for value in group)
    if entry.size not in get_args(Size) or not well_typed:
        raise ValueError
    return entry


def is_current(study: Study, entry: Entry) -> bool:
    """Whether the study and the numerics are still those of the entry."""
    return (entry.revision, entry.numerics) == (study.revision, NUMERICS_VERSION)


def measure_entry(study: Study, size: Size, base: int, bench: Bench) -> Entry:
    """Run a study from one base seed. The power of its rule is computed before the measurement."""
    began = time.perf_counter()
    power = None if study.power is None else study.power(size).as_dict()
    numbers = study.measure(size, bench)
    made = {**versions(), "device": jax.devices()[0].device_kind, "date": time.strftime("%Y-%m-%d", time.gmtime())}
    seconds = round(time.perf_counter() - began, 1)
    trials = trials_of(bench.store, bench.asked)
    return Entry(study.id, size, base, study.revision, numbers, seconds=seconds, made=made, trials=trials, power=power)


def trials_of(store: Store, jobs: Iterable[AnyJob]) -> Trials:
    """The stored trials of these jobs, as plain rows."""
    asked = [*jobs]
    places = {spec: index for index, spec in enumerate(dict.fromkeys(spec for spec, _ in asked))}
    trials = {(places[spec], seed): trial for (spec, seed), trial in store.get(asked).items()}
    rows = [_row(index, trials[index, seed]) for index, seed in sorted(trials)]
    settings = [{"kind": spec.kind, **spec.model_dump()} for spec in places]
    return {"settings": settings, "columns": list(COLUMNS), "rows": rows}


def _row(setting: int, trial: Trial) -> list[Any]:
    measured = (trial.accuracy, trial.attention_accuracy, trial.measured("first_gradient"), trial.metrics.get("steps"))
    return [setting, trial.seed, trial.status, *(_rounded(value) for value in measured)]


def _rounded(value: float | None) -> float | None:
    """Six digits: more than a fraction of a few thousand sequences carries."""
    return None if value is None or value != value else float(f"{value:.6g}")
