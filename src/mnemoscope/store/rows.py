"""A setting and a trial as rows of the store, each with a checksum, and back.

A checksum covers every value of its row; a trial's also covers the id of its setting. A row with a wrong checksum was
damaged after it was written, and none of its values is used.
"""

import hashlib
import json
import math
import time
from typing import Any, NamedTuple

from mnemoscope.engine.record import Step, Trial, finite
from mnemoscope.spec import KINDS, Spec


class Layout(NamedTuple):
    """The columns of a format that a checksum covers, in its order, and those of real numbers."""

    setting: tuple[str, ...]
    trial: tuple[str, ...]
    reals: tuple[str, ...]


LAYOUT = Layout(
    setting=("id", "kind", "canonical"),
    trial=(
        *("spec", "seed", "numerics", "status", "accuracy", "metrics", "seconds", "message", "precision"),
        *("device", "versions", "code", "history", "written"),
    ),
    reals=("accuracy", "seconds", "written"),
)
SETTING, TRIAL = LAYOUT.setting, LAYOUT.trial
KEY = TRIAL[:3]
# The columns that make a record, as `read_trial` takes them.
RECORD = "canonical, seed, status, metrics, seconds, message, precision, device, versions, code, history"
# Raised when a row that makes no sense is read.
UNREADABLE = (ValueError, KeyError, TypeError, AttributeError, RecursionError)


def checksum(*values: Any) -> str:
    """Sixteen hexadecimal digits of a row's values."""
    marked = [b"t" + value.encode() if isinstance(value, str) else value for value in values]
    return hashlib.blake2b(repr(marked).encode(), digest_size=8).hexdigest()


def as_checked(column: str) -> str:
    """A column as SQLite hands it to `checksum`: text as bytes, which need not be valid UTF-8."""
    return f"CASE typeof({column}) WHEN 'text' THEN CAST('t' || {column} AS BLOB) ELSE {column} END"


def checked_values(table: str, columns: tuple[str, ...]) -> str:
    """Columns of a table as the arguments of `row_checksum`."""
    return ", ".join(as_checked(f'{table}."{name}"') for name in columns)


def setting_row(spec: Spec) -> tuple[Any, ...]:
    """The values of SETTING, and their checksum."""
    values = (spec.id, spec.kind, spec.canonical())
    return (*values, checksum(*values))


def trial_row(trial: Trial) -> tuple[Any, ...]:
    """The values of TRIAL, and their checksum."""
    history = [known(vars(step)) for step in trial.steps] or trial.curve
    key = (trial.spec.id, trial.seed, int(trial.versions["numerics"]))
    outcome = (trial.status, _real(finite(trial.accuracy)), as_json(trial.metrics), _real(trial.seconds), trial.message)
    made = (trial.precision, trial.device, as_json(trial.versions), as_json(trial.code))
    values = (*key, *outcome, *made, as_json(history), time.time())
    return (*values, checksum(*values))


def as_json(value: Any) -> str:
    """Plain data as compact JSON."""
    return json.dumps(finite(value), separators=(",", ":"))


def known(numbers: dict[str, Any]) -> dict[str, Any]:
    """The named numbers that are present and finite."""
    return {name: value for name, value in finite(numbers).items() if value is not None}


def _real(value: float | None) -> float | None:
    """A number as SQLite returns it: without a negative zero."""
    return None if value is None else float(value) + 0.0


def read_setting(canonical: str) -> Spec:
    """The spec that a setting's canonical JSON describes."""
    values = json.loads(canonical)
    return KINDS[values.pop("kind")].read(values)


def read_trial(row: tuple[Any, ...]) -> Trial:
    """A trial from the columns of RECORD."""
    canonical, seed, status, metrics, seconds, message, precision, device, versions, code, history = row
    spec, parts = read_setting(canonical), json.loads(history)
    steps = spec.history == "steps"
    kept = tuple(_read_step(part) for part in parts) if steps else tuple(parts)
    numbers = {} if steps else json.loads(metrics)
    made = (json.loads(versions), json.loads(code))
    return Trial(spec, seed, status, kept, numbers, seconds, message, precision, device, *made)


def _read_step(values: dict[str, Any]) -> Step:
    """A step. An accuracy that is not stored was not finite, and reads as NaN."""
    if "bands" in values:  # JSON has no tuples
        values = {**values, "bands": tuple(values["bands"])}
    return Step(**{"accuracy": math.nan, "attention_accuracy": math.nan, "map_accuracy": math.nan, **values})
