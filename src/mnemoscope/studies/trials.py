"""The trials that a study rests on, as plain rows: small enough to be handed out with a report."""

from collections.abc import Iterable
from typing import Any

from mnemoscope.engine.record import AnyJob, Trial
from mnemoscope.store.trials import Store

# Settings, and rows whose first column is a setting's place among them.
Trials = dict[str, Any]
COLUMNS = ("setting", "seed", "status", "accuracy", "attention_accuracy", "first_gradient", "steps")


def trials_of(store: Store, jobs: Iterable[AnyJob]) -> Trials:
    """What the store has of these jobs."""
    asked: dict[Any, set[int]] = {}
    for spec, seed in jobs:
        asked.setdefault(spec, set()).add(seed)
    rows: list[list[Any]] = []
    for at, (spec, seeds) in enumerate(asked.items()):
        rows += [_row(at, trial) for seed, trial in store.outcomes(spec).items() if seed in seeds]
    settings = [{"kind": spec.kind, **spec.model_dump()} for spec in asked]
    return {"settings": settings, "columns": list(COLUMNS), "rows": rows}


def _row(at: int, trial: Trial) -> list[Any]:
    measured = (trial.accuracy, trial.attention_accuracy, trial.measured("first_gradient"), trial.metrics.get("steps"))
    return [at, trial.seed, trial.status, *(_short(value) for value in measured)]


def _short(value: float | None) -> float | None:
    """Six digits are more than a share of a few thousand sequences has."""
    return None if value is None or value != value else float(f"{value:.6g}")
