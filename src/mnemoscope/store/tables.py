"""The store's tables, and views of them with a column for every field of every kind of spec.

    settings  one row a spec: its id, its kind, its canonical JSON, and a checksum
    trials    one row a (spec, seed, numerics version): status, metrics, how it was computed, and a
              checksum
    claims    trials that some driver is computing now (see `claims`)
    damaged   damaged rows that were replaced or moved aside

No table has a column for a field: a field's value is in the canonical JSON, or it is the default of
the spec's class. So a new field or a new kind needs no change of the file. A sweep has many seeds
of few settings, and queries go through the settings first.
"""

import sqlite3
from functools import lru_cache
from typing import Any

from mnemoscope.spec import KINDS
from mnemoscope.store.rows import SETTING, TRIAL, as_checked, checked_values
from mnemoscope.store.sqlite import transaction

# Raised when a table changes; a newer file is refused, an older one is migrated.
FORMAT = 3

TABLES = """
CREATE TABLE about (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
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
CREATE TABLE claims (
    id TEXT NOT NULL, seed INTEGER NOT NULL, numerics INTEGER NOT NULL, owner TEXT NOT NULL, host TEXT NOT NULL,
    process INTEGER NOT NULL, beat REAL NOT NULL, PRIMARY KEY (id, numerics, seed)
) WITHOUT ROWID;
CREATE TABLE damaged (name TEXT NOT NULL, told TEXT NOT NULL, moved REAL NOT NULL);
"""
SETTING_VALUES = checked_values("settings", SETTING)
TRIAL_VALUES = checked_values("trials", TRIAL)
# Metrics that can always be asked for, by the name of their column; accuracy has one of its own.
METRICS = {
    **{name: name for name in ("attention_accuracy", "recall", "map_accuracy", "signal", "std", "loss")},
    "steps_taken": "steps",  # `steps` is a field
    "relation_accuracy": "relation_accuracy",
}


def statements(script: str) -> list[str]:
    """The statements of a script, which are run one by one within a transaction."""
    return [statement for statement in script.split(";") if statement.strip()]


def make_tables(connection: sqlite3.Connection) -> None:
    """Create the tables, unless another driver has just done so."""
    with transaction(connection):
        if connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0:
            for statement in statements(TABLES):
                connection.execute(statement)
            connection.execute("INSERT INTO about VALUES ('format', ?)", (str(FORMAT),))
            connection.execute(f"PRAGMA user_version = {FORMAT}")


def describe(connection: sqlite3.Connection) -> list[tuple[Any, ...]]:
    """The columns of our tables, as SQLite reports them."""
    return connection.execute(
        'SELECT m.name, c.name, c.type, c."notnull", c.pk FROM sqlite_master m, '
        "pragma_table_info(m.name) c WHERE m.type = 'table' "
        "AND m.name IN ('about', 'settings', 'trials', 'claims', 'damaged') ORDER BY m.name, c.cid"
    ).fetchall()


@lru_cache
def columns_of_a_new_store() -> list[tuple[Any, ...]]:
    """What `describe` returns for a new store."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    make_tables(connection)
    try:
        return describe(connection)
    finally:
        connection.close()


def json_value(column: str, name: str) -> str:
    """SQL for a member of a column's JSON, which may be invalid: SQLite may read it before the checksum is checked."""
    return f"""json_extract(CASE WHEN json_valid({column}) THEN {column} ELSE '{{}}' END, '$."{name}"')"""


def field_columns() -> dict[str, str]:
    """SQL for every field of every kind: its value, or its default if the canonical JSON omits it.

    A field with the name of a trial's column, as a transformer's precision, says the same as that column.
    """
    cases: dict[str, str] = {}
    for kind, spec in KINDS.items():
        for name, field in spec.model_fields.items():
            if name in TRIAL:
                continue
            value = json_value("canonical", name)
            if not field.is_required():
                value = f"coalesce({value}, {_literal(field.get_default(call_default_factory=True))})"
            cases[name] = cases.get(name, "CASE kind") + f" WHEN '{kind}' THEN {value}"
    return {name: f"{case} END" for name, case in cases.items()}


def _literal(value: Any) -> str:
    """A default in SQL."""
    if value is None or isinstance(value, bool | int | float):
        return "NULL" if value is None else repr(+value)
    return "'" + str(value).replace("'", "''") + "'"


def make_views(connection: sqlite3.Connection) -> None:
    """Create `kept`, every trial with its setting, and `sound`, which omits rows with a wrong checksum."""
    columns = field_columns() | {name: json_value("metrics", metric) for name, metric in METRICS.items()}
    named = ", ".join(f'{value} AS "{name}"' for name, value in columns.items())
    # A cross join keeps its order: settings, of which there are few, before their trials.
    rows = f"SELECT number, id, kind, canonical, trials.*, {named} FROM settings CROSS JOIN trials ON setting = number"
    connection.execute(f"CREATE TEMP VIEW kept AS {rows}")
    connection.execute(
        f"CREATE TEMP VIEW sound AS {rows} "
        f"WHERE sound_setting(number, {as_checked('setting_checksum')}, {SETTING_VALUES}) "
        f"AND sound_trial(setting, {as_checked('trial_checksum')}, {as_checked('settings.id')}, {TRIAL_VALUES})"
    )
