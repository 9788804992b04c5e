"""The store's file: where it is, what is in it, and how it is opened.

    settings  one row a spec: its id, its canonical JSON, and its fields as columns to filter by
    trials    one row a (spec, seed, numerics version): status, metrics, and how it was computed
    claims    trials that some driver is computing now (see `claims`)

Write-ahead logging lets readers go on while the one driver writes, and keeps every committed row
when a process is killed.
"""

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mnemoscope.files import data_home
from mnemoscope.spec import Retrieval, SpecError

# Raised when a table changes; a newer file is refused, an older one would be brought up.
FORMAT = 1
# How long to wait for another process that is writing.
PATIENCE_SECONDS = 30.0

FIELDS = tuple(Retrieval.model_fields)
# As names in a statement; quoted, since one of them is a word of SQL.
COLUMNS = ", ".join(f'"{name}"' for name in FIELDS)
METRICS = ("accuracy", "attention_accuracy", "recall", "map_accuracy", "signal", "std", "loss")

_TABLES = f"""
CREATE TABLE about (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE settings (
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    kind TEXT NOT NULL,
    canonical TEXT NOT NULL,
    {COLUMNS}
);
CREATE INDEX settings_by_size ON settings (vocab, dim, length, samples);
CREATE TABLE trials (
    setting INTEGER NOT NULL REFERENCES settings (number),
    seed INTEGER NOT NULL,
    numerics INTEGER NOT NULL,
    status TEXT NOT NULL,
    {", ".join(f"{name} REAL" for name in METRICS)},
    seconds REAL NOT NULL,
    message TEXT NOT NULL,
    precision TEXT NOT NULL,
    device TEXT NOT NULL,
    versions TEXT NOT NULL,
    history TEXT NOT NULL,
    written REAL NOT NULL,
    PRIMARY KEY (setting, numerics, seed)
) WITHOUT ROWID;
CREATE TABLE claims (
    id TEXT NOT NULL,
    seed INTEGER NOT NULL,
    numerics INTEGER NOT NULL,
    owner TEXT NOT NULL,
    host TEXT NOT NULL,
    process INTEGER NOT NULL,
    beat REAL NOT NULL,
    PRIMARY KEY (id, numerics, seed)
) WITHOUT ROWID;
"""


# In place of a file: kept in memory, and gone at the end.
NOWHERE = Path("none")


def default_path() -> Path:
    """The user's own store."""
    return data_home() / "trials.db"


def connect(path: Path, *, writing: bool) -> sqlite3.Connection:
    """An open store; made if it is not there and `writing`. Trouble becomes one clear line."""
    shown = repr(str(path))
    if path.is_dir() or not path.name:
        raise SpecError("store", f"expected a file, got the folder {shown}")
    if not writing and not path.exists():
        raise SpecError("store", f"expected a store that is there, got {shown}")
    try:
        if writing and path != NOWHERE:
            path.parent.mkdir(parents=True, exist_ok=True)
        with told(path):
            connection = sqlite3.connect(
                _address(path, writing), uri=True, timeout=PATIENCE_SECONDS, isolation_level=None
            )
            connection.execute("PRAGMA foreign_keys = ON")
            if writing:
                _prepare(connection)
            else:
                connection.execute("PRAGMA query_only = ON")
            _check_format(connection, path)
    except OSError as error:
        raise SpecError(
            "store",
            f"expected a place to write to, got {shown} ({error.strerror}); `none` keeps nothing",
        ) from None
    return connection


def _address(path: Path, writing: bool) -> str:
    """The store's file for SQLite.

    Reading a log needs files beside the store. Where none can be made and no log is left, as in a
    folder that is closed to us, the file is read as one that nobody changes.
    """
    if path == NOWHERE:
        return ":memory:"
    log = path.with_name(path.name + "-wal")
    closed = not os.access(path.parent, os.W_OK) and not log.exists()
    return path.absolute().as_uri() + ("?immutable=1" if closed and not writing else "")


def _prepare(connection: sqlite3.Connection) -> None:
    """WAL, and the tables if there are none yet; two drivers may come at the same time."""
    _write_ahead(connection)
    # A commit survives the death of the process; the last ones may not survive a power cut.
    connection.execute("PRAGMA synchronous = NORMAL")
    with transaction(connection):
        if connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0:
            for statement in filter(str.strip, _TABLES.split(";")):
                connection.execute(statement)
            connection.execute("INSERT INTO about VALUES ('format', ?)", (str(FORMAT),))


def _write_ahead(connection: sqlite3.Connection) -> None:
    """Who turns the log on needs the file alone for a moment, and SQLite itself does not wait."""
    until = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > until:
                raise
            time.sleep(0.01)


def _check_format(connection: sqlite3.Connection, path: Path) -> None:
    try:
        row = connection.execute("SELECT value FROM about WHERE key = 'format'").fetchone()
    except sqlite3.OperationalError as error:
        if "no such table" not in str(error):
            raise
        row = None
    if row is None:
        connection.close()
        raise SpecError("store", f"expected a store of mnemoscope's, got {str(path)!r}")
    if int(row[0]) > FORMAT:
        connection.close()
        raise SpecError(
            "store",
            f"expected a store of format {FORMAT} or older, got format {row[0]} in {str(path)!r}: "
            "it was written by a newer mnemoscope",
        )


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """All or nothing; the lock is taken at once, so that what is read stays true until the end."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        if connection.in_transaction:  # a full disk has undone it already
            connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


@contextmanager
def told(path: Path) -> Iterator[None]:
    """SQLite's complaints in one line that names the store. What was committed stays."""
    try:
        yield
    except sqlite3.Error as error:
        text = str(error)
        if "disk is full" in text or "disk I/O error" in text:
            why = "expected room on the disk"
        elif "readonly" in text or "unable to open" in text:
            why = "expected a file that can be written (`none` keeps nothing)"
        elif "locked" in text:
            why = f"expected to get a turn within {PATIENCE_SECONDS:g} s"
        else:  # not a database, malformed, truncated
            why = "expected a sound store"
        raise SpecError("store", f"{why}, got {str(path)!r} ({text})") from None
