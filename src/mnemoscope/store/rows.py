"""A setting and a record as rows of the store, each with a checksum, and back.

A checksum covers every value of its row, and that of a trial the id of its setting too. A row whose
checksum does not fit was damaged after it was written: nothing in it is believed.
"""

import hashlib
import json
import math
import time
from typing import Any

from mnemoscope.engine.record import Step, Trial
from mnemoscope.spec import KINDS, Retrieval, Spec

FIELDS = tuple(Retrieval.model_fields)
METRICS = ("accuracy", "attention_accuracy", "recall", "map_accuracy", "signal", "std", "loss")
# What a checksum covers, in this order.
SETTING = ("id", "kind", "canonical", *FIELDS)
TRIAL = (
    "spec",
    "seed",
    "numerics",
    "status",
    *METRICS,
    "seconds",
    "message",
    "precision",
    "device",
    "versions",
    "history",
    "written",
)
KEY = TRIAL[:3]
# The columns that make a record, as `read_trial` takes them.
RECORD = "canonical, seed, status, seconds, message, precision, device, versions, history"
# What reading a row may raise that says something else than it should.
UNREADABLE = (ValueError, KeyError, TypeError, AttributeError, RecursionError)


def checksum(*values: Any) -> str:
    """Sixteen hexadecimal digits of a row's values."""
    told = [b"t" + value.encode() if isinstance(value, str) else value for value in values]
    return hashlib.blake2b(repr(told).encode(), digest_size=8).hexdigest()


def as_checked(column: str) -> str:
    """A column as SQLite hands it to `checksum`: text as bytes, which need not be valid UTF-8."""
    return f"CASE typeof({column}) WHEN 'text' THEN CAST('t' || {column} AS BLOB) ELSE {column} END"


def setting_row(spec: Spec) -> tuple[Any, ...]:
    """The values of SETTING, and their checksum."""
    fields = spec.model_dump()
    # What only another kind has stands in the canonical JSON alone.
    own = (_kept(fields.get(name)) for name in FIELDS)
    values = (spec.id, spec.kind, spec.canonical(), *own)
    return (*values, checksum(*values))


def trial_row(trial: Trial) -> tuple[Any, ...]:
    """The values of TRIAL, and their checksum."""
    metrics, history = _columns(trial)
    values = (
        trial.spec.id,
        trial.seed,
        int(trial.versions["numerics"]),
        trial.status,
        *(None if value is None else _kept(float(value)) for value in metrics),
        _kept(float(trial.seconds)),
        trial.message,
        trial.precision,
        trial.device,
        json.dumps(trial.versions),
        json.dumps(history),
        time.time(),
    )
    return (*values, checksum(*values))


def _kept(value: Any) -> Any:
    """A value as SQLite hands it back, which knows no negative zero."""
    return value + 0.0 if isinstance(value, float) else value


def _columns(trial: Trial) -> tuple[list[Any], Any]:
    """The metrics that have columns, in METRICS' order, and the rest of what is kept."""
    end = trial.as_dict()
    if trial.spec.history == "curve":
        own = {name: end[name] for name in trial.metrics}
        return [own.get(name) for name in METRICS], {"metrics": own, "curve": end["curve"]}
    metrics = [end["accuracy"], end["attention_accuracy"], end["recall"], end["map_accuracy"]]
    metrics += [end["margin"]["signal"], end["margin"]["std"]]
    return [*metrics, end["steps"][-1]["loss"] if end["steps"] else None], end["steps"]


def read_setting(canonical: str) -> Spec:
    """The spec that a setting's canonical JSON tells."""
    values = json.loads(canonical)
    return KINDS[values.pop("kind")].read(values)


def read_trial(row: tuple[Any, ...]) -> Trial:
    """A trial from the columns of RECORD."""
    canonical, seed, status, seconds, message, precision, device, versions, history = row
    spec = read_setting(canonical)
    kept = json.loads(history)
    same: dict[str, Any] = {
        "seed": seed,
        "status": status,
        "seconds": seconds,
        "message": message,
        "precision": precision,
        "device": device,
        "versions": json.loads(versions),
        "code": None,
    }
    if spec.history == "steps":
        return Trial(spec, history=tuple(_read_step(step) for step in kept), **same)
    return Trial(spec, history=tuple(kept["curve"]), metrics=kept["metrics"], **same)


def _read_step(values: dict[str, Any]) -> Step:
    values.pop("ratio", None)
    # Numbers that were not finite are kept as nothing; an accuracy that is one reads as such.
    for name in ("accuracy", "attention_accuracy", "map_accuracy"):
        values[name] = math.nan if values[name] is None else values[name]
    return Step(**values)
