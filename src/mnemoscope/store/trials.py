"""Writing trials and finding them again."""

import json
import math
import sqlite3
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from mnemoscope.record import NUMERICS_VERSION, Outcome, Record, Step, Trial
from mnemoscope.spec import KINDS, Retrieval, Spec
from mnemoscope.store.schema import (
    COLUMNS,
    FIELDS,
    METRICS,
    connect,
    default_path,
    told,
    transaction,
)

Key = tuple[str, int]
# The columns that make a record, as `read_trial` takes them.
RECORD = "canonical, seed, status, seconds, message, precision, device, versions, history"


class Store:
    """An open store.

    >>> store = Store(Path("none"))  # in memory
    >>> store.count()
    0
    """

    def __init__(self, path: Path | str | None = None, *, writing: bool = True) -> None:
        self.path = default_path() if path is None else Path(path)
        self.connection = connect(self.path, writing=writing)

    def __enter__(self) -> "Store":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the file."""
        self.connection.close()

    def add(self, trials: Sequence[Record]) -> None:
        """Write trials, all or none; once this returns they are kept.

        A trial that is there already stays as it is, unless it crashed: a crash is no result, and
        gives way to one.
        """
        with told(self.path), transaction(self.connection):
            for trial in trials:
                self.write(trial)

    def write(self, trial: Record) -> None:
        """Write one trial as part of a transaction that the caller holds."""
        number = self._setting(trial.spec)
        metrics, history = _columns(trial)
        row = (
            number, trial.seed, int(trial.versions["numerics"]), trial.status, *metrics,
            trial.seconds, trial.message, trial.precision, trial.device,
            json.dumps(trial.versions), json.dumps(history), time.time(),
        )  # fmt: skip
        marks = ", ".join("?" * len(row))
        self.connection.execute(
            "DELETE FROM trials WHERE setting = ? AND seed = ? AND numerics = ? "
            "AND status = 'crashed'",
            row[:3],
        )
        self.connection.execute(
            f"INSERT INTO trials VALUES ({marks}) ON CONFLICT (setting, numerics, seed) DO NOTHING",
            row,
        )

    def _setting(self, spec: Spec) -> int:
        found = self.connection.execute(
            "SELECT number FROM settings WHERE id = ?", (spec.id,)
        ).fetchone()
        if found is not None:
            return int(found[0])
        values = spec.model_dump()
        # What only another kind has stands in the canonical JSON alone.
        row = (spec.id, spec.kind, spec.canonical(), *(values.get(name) for name in FIELDS))
        marks = ", ".join("?" * len(row))
        made = self.connection.execute(
            f"INSERT INTO settings (id, kind, canonical, {COLUMNS}) VALUES ({marks})", row
        )
        return int(made.lastrowid or 0)

    def finished(self, specs: Iterable[Spec]) -> set[Key]:
        """The (spec id, seed) of these specs that have a result. A crash is none."""
        found: set[Key] = set()
        with told(self.path):
            for name in {spec.id for spec in specs}:
                rows = self.connection.execute(
                    "SELECT seed FROM trials JOIN settings ON setting = number "
                    "WHERE id = ? AND numerics = ? AND status <> 'crashed'",
                    (name, NUMERICS_VERSION),
                )
                found |= {(name, int(seed)) for (seed,) in rows}
        return found

    def get(self, spec: Retrieval, seed: int) -> Trial | None:
        """The trial of this spec and seed, or None."""
        return next(self.find("id = ? AND seed = ?", (spec.id, seed)), None)

    def outcomes(self, spec: Spec) -> dict[int, Outcome]:
        """What was kept of a setting of another kind, by seed."""
        found = self._find("id = ? AND kind <> 'retrieval'", (spec.id,))
        return {one.seed: one for one in found if isinstance(one, Outcome)}

    def find(self, where: str = "1", values: Sequence[Any] = ()) -> Iterator[Trial]:
        """Retrieval's trials of today's numerics that meet a condition, in a fixed order."""
        for one in self._find(f"({where}) AND kind = 'retrieval'", values):
            if isinstance(one, Trial):
                yield one

    def accuracies(
        self, where: str, values: Sequence[Any]
    ) -> Iterator[tuple[str, int, int, float]]:
        """Retrieval's accuracies alone, with their setting's id, samples and test samples."""
        with told(self.path):
            yield from self.connection.execute(
                "SELECT id, samples, test_samples, accuracy FROM trials JOIN settings "
                f"ON setting = number WHERE ({where}) AND kind = 'retrieval' AND numerics = ? "
                "AND accuracy IS NOT NULL ORDER BY samples, seed",
                (*values, NUMERICS_VERSION),
            )

    def _find(self, where: str, values: Sequence[Any]) -> Iterator[Record]:
        with told(self.path):
            rows = self.connection.execute(
                f"SELECT {RECORD} FROM trials JOIN settings ON setting = number WHERE ({where}) "
                "AND numerics = ? ORDER BY canonical, seed",
                (*values, NUMERICS_VERSION),
            )
            for row in rows:
                yield read_trial(row)

    def count(self, where: str = "1", values: Sequence[Any] = ()) -> int:
        """How many trials meet a condition."""
        with told(self.path):
            query = f"SELECT count(*) FROM trials JOIN settings ON setting = number WHERE ({where})"
            return int(self.connection.execute(query, values).fetchone()[0])


def _columns(trial: Record) -> tuple[list[Any], Any]:
    """The metrics that have columns, in METRICS' order, and the rest of what is kept."""
    end = trial.as_dict()
    if isinstance(trial, Outcome):
        own = {name: end[name] for name in trial.metrics}
        return [own.get(name) for name in METRICS], {"metrics": own, "curve": end["curve"]}
    metrics = [end["accuracy"], end["attention_accuracy"], end["recall"], end["map_accuracy"]]
    metrics += [end["margin"]["signal"], end["margin"]["std"]]
    return [*metrics, end["steps"][-1]["loss"] if end["steps"] else None], end["steps"]


def read_trial(row: sqlite3.Row | tuple[Any, ...]) -> Record:
    """A trial, or an outcome of another kind, from its row."""
    canonical, seed, status, seconds, message, precision, device, versions, history = row
    told = json.loads(canonical)
    kind = KINDS[told.pop("kind")]
    kept = json.loads(history)
    same: dict[str, Any] = {
        "seed": seed, "status": status, "seconds": seconds, "message": message,
        "precision": precision, "device": device, "versions": json.loads(versions),
    }  # fmt: skip
    if kind is Retrieval:
        steps = tuple(_read_step(step) for step in kept)
        return Trial(spec=Retrieval.read(told), steps=steps, **same)
    return Outcome(
        spec=kind.read(told), metrics=kept["metrics"], curve=tuple(kept["curve"]), **same
    )


def _read_step(values: dict[str, Any]) -> Step:
    values.pop("ratio", None)
    # Numbers that were not finite are kept as nothing; an accuracy that is one reads as such.
    for name in ("accuracy", "attention_accuracy", "map_accuracy"):
        values[name] = math.nan if values[name] is None else values[name]
    return Step(**values)
