"""Migrations from older formats: one step per format, one transaction per step.

A process killed during a step leaves the store as it was before that step. A released step never
changes: it names the columns of its time and does not use the current tables.
"""

import json
import sqlite3
from collections.abc import Callable
from typing import Any

from mnemoscope.engine.record import Step
from mnemoscope.store.rows import LAYOUT, UNREADABLE, Layout, as_json, checked_values, checksum, known, read_setting
from mnemoscope.store.sqlite import transaction
from mnemoscope.store.tables import statements

_FIELDS_2 = "vocab dim length samples width activation embedding trigger eta gamma attention then steps lr test_samples"
_METRICS_2 = "accuracy attention_accuracy recall map_accuracy signal std loss"
_TRIAL_2 = f"spec seed numerics status {_METRICS_2} seconds message precision device versions history written"
LAYOUT_2 = Layout(
    setting=("id", "kind", "canonical", *_FIELDS_2.split()),
    trial=tuple(_TRIAL_2.split()),
    reals=(*_METRICS_2.split(), "seconds", "written"),
)

_TO_2 = """
ALTER TABLE settings ADD COLUMN setting_checksum TEXT NOT NULL DEFAULT '';
ALTER TABLE trials ADD COLUMN spec TEXT NOT NULL DEFAULT '';
ALTER TABLE trials ADD COLUMN trial_checksum TEXT NOT NULL DEFAULT '';
CREATE TABLE damaged (name TEXT NOT NULL, told TEXT NOT NULL, moved REAL NOT NULL);
"""
_TO_3 = """
ALTER TABLE trials RENAME TO trials_2;
ALTER TABLE settings RENAME TO settings_2;
CREATE TABLE settings (
    number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, kind TEXT NOT NULL, canonical TEXT NOT NULL,
    setting_checksum TEXT NOT NULL DEFAULT ''
);
CREATE TABLE trials (
    setting INTEGER NOT NULL REFERENCES settings (number), seed INTEGER NOT NULL, numerics INTEGER NOT NULL,
    status TEXT NOT NULL, accuracy REAL, metrics TEXT NOT NULL, seconds REAL NOT NULL, message TEXT NOT NULL,
    precision TEXT NOT NULL, device TEXT NOT NULL, versions TEXT NOT NULL, code TEXT NOT NULL, history TEXT NOT NULL,
    written REAL NOT NULL, spec TEXT NOT NULL DEFAULT '', trial_checksum TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (setting, numerics, seed)
) WITHOUT ROWID;
"""


def _to_2(connection: sqlite3.Connection) -> None:
    """FORMAT 1 had no checksums: give one to every readable row."""

    def readable(canonical: bytes, history: bytes, versions: bytes) -> bool:
        try:
            spec, kept = read_setting(canonical.decode()), json.loads(history)
            if spec.history == "steps":
                for step in kept:
                    Step(**{name: value for name, value in step.items() if name != "ratio"})
            return isinstance(json.loads(versions), dict) and (
                spec.history == "steps" or {"metrics", "curve"} <= {*kept}
            )
        except UNREADABLE:
            return False

    connection.create_function("readable", -1, readable)
    for statement in statements(_TO_2):
        connection.execute(statement)
    connection.execute(
        f"UPDATE settings SET setting_checksum = row_checksum({checked_values('settings', LAYOUT_2.setting)})"
    )
    connection.execute("UPDATE trials SET spec = settings.id FROM settings WHERE number = setting")
    texts = ", ".join(f"CAST({name} AS BLOB)" for name in ("canonical", "history", "versions"))
    connection.execute(
        f"UPDATE trials SET trial_checksum = row_checksum({checked_values('trials', LAYOUT_2.trial)}) "
        f"WHERE EXISTS (SELECT 1 FROM settings WHERE number = setting AND readable({texts}))"
    )


def _to_3(connection: sqlite3.Connection) -> None:
    """FORMAT 2 had a column for each field of one kind and for some metrics. Damaged rows stay damaged."""
    for statement in statements(_TO_3):
        connection.execute(statement)
    connection.execute(
        "INSERT INTO settings SELECT number, id, kind, canonical, CASE WHEN setting_checksum IS "
        f"row_checksum({checked_values('settings_2', LAYOUT_2.setting)}) THEN "
        f"row_checksum({checked_values('settings_2', LAYOUT.setting)}) ELSE '' END FROM settings_2"
    )
    columns = ", ".join(f'trials_2."{name}"' for name in LAYOUT_2.trial)
    names = ", ".join(f'"{name}"' for name in LAYOUT.trial)
    insert = (
        f"INSERT INTO trials (setting, {names}, trial_checksum) VALUES (?, {', '.join('?' * len(LAYOUT.trial))}, ?)"
    )
    rows = connection.execute(
        f"SELECT trials_2.setting, trial_checksum IS row_checksum({checked_values('trials_2', LAYOUT_2.trial)}), "
        f"{columns} FROM trials_2"
    )
    connection.executemany(insert, ((setting, *trial_from_2(row, sound=bool(fits))) for setting, fits, *row in rows))
    connection.execute("DROP TABLE trials_2")
    connection.execute("DROP TABLE settings_2")


def setting_from_2(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """A sound row of FORMAT 2's settings as one of FORMAT 3, with its checksum."""
    row = values[: len(LAYOUT.setting)]
    return (*row, checksum(*row))


def trial_from_2(values: list[Any] | tuple[Any, ...], *, sound: bool = True) -> tuple[Any, ...]:
    """A row of FORMAT 2's trials as one of FORMAT 3, with its checksum; with none if it is not sound."""
    old = dict(zip(LAYOUT_2.trial, values, strict=True))
    metrics, history = "{}", old["history"]
    try:
        metrics, history = _parts_of_2(old["status"], old["history"])
    except UNREADABLE:
        sound = False
    new = {**old, "metrics": metrics, "history": history, "code": "null"}
    row = [new[name] for name in LAYOUT.trial]
    return (*row, checksum(*row) if sound else "")


def _parts_of_2(status: str, history: str) -> tuple[str, str]:
    """Metrics and history out of FORMAT 2's history: a list of steps, or both by name."""
    kept = json.loads(history)
    if isinstance(kept, dict):
        return as_json(kept["metrics"]), as_json(kept["curve"])
    steps = [known({name: value for name, value in step.items() if name != "ratio"}) for step in kept]
    last = {name: value for name, value in steps[-1].items() if name != "name"} if steps and status == "ok" else {}
    return as_json(last), as_json(steps)


# The step that leads to each format from the one before.
STEPS: dict[int, Callable[[sqlite3.Connection], None]] = {2: _to_2, 3: _to_3}


def migrate(connection: sqlite3.Connection) -> None:
    """Migrate a store step by step; the connection needs the function `row_checksum`."""
    for target, step in STEPS.items():
        with transaction(connection):
            # Read inside the transaction: another driver may have migrated the store meanwhile.
            current = int(connection.execute("SELECT value FROM about WHERE key = 'format'").fetchone()[0])
            if current < target:
                step(connection)
                connection.execute("UPDATE about SET value = ? WHERE key = 'format'", (str(target),))
                connection.execute(f"PRAGMA user_version = {target}")
