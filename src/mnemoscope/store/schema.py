"""The store's file: where it is, what is in it, and how it is opened.

    settings  one row a spec: its id, its canonical JSON, its fields as columns to filter by, and a
              checksum
    trials    one row a (spec, seed, numerics version): status, metrics, how it was computed, and a
              checksum
    claims    trials that some driver is computing now (see `claims`)
    damaged   rows that were found damaged and have been replaced or moved aside

Queries go to `sound`, a view of trials with their settings that leaves out every row whose checksum
does not fit; `asking` then has such rows named in `DamagedStore` warnings.

Write-ahead logging lets readers go on while the one driver writes, and keeps every committed row
when a process is killed.
"""

import os
import sqlite3
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

from mnemoscope.engine.files import check_place, data_home
from mnemoscope.spec import SpecError
from mnemoscope.store.rows import FIELDS, METRICS, RECORD, SETTING, TRIAL, UNREADABLE, as_checked, checksum, read_trial

# Raised when a table changes; a newer file is refused, an older one is brought up.
FORMAT = 2
# How long to wait for another process that is writing.
PATIENCE_SECONDS = 30.0
# Files up to this size are checked whole when a store is opened: some 30,000 trials, in 0.1 s.
CHECKED_BYTES = 2**25

# As names in a statement; quoted, since one of them is a word of SQL.
COLUMNS = ", ".join(f'"{name}"' for name in FIELDS)

TABLES = f"""
CREATE TABLE about (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE settings (
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    kind TEXT NOT NULL,
    canonical TEXT NOT NULL,
    {COLUMNS},
    setting_checksum TEXT NOT NULL DEFAULT ''
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
    spec TEXT NOT NULL DEFAULT '',
    trial_checksum TEXT NOT NULL DEFAULT '',
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
CREATE TABLE damaged (name TEXT NOT NULL, told TEXT NOT NULL, moved REAL NOT NULL);
"""
# What FORMAT 1 did not have.
_SINCE_1 = """
ALTER TABLE settings ADD COLUMN setting_checksum TEXT NOT NULL DEFAULT '';
ALTER TABLE trials ADD COLUMN spec TEXT NOT NULL DEFAULT '';
ALTER TABLE trials ADD COLUMN trial_checksum TEXT NOT NULL DEFAULT '';
CREATE TABLE damaged (name TEXT NOT NULL, told TEXT NOT NULL, moved REAL NOT NULL);
"""
SETTING_VALUES = ", ".join(as_checked(f'settings."{name}"') for name in SETTING)
TRIAL_VALUES = ", ".join(as_checked(f'trials."{name}"') for name in TRIAL)
_VIEW = f"""
CREATE TEMP VIEW sound AS
SELECT settings.*, trials.* FROM trials JOIN settings ON setting = number
WHERE sound_setting(number, {as_checked("setting_checksum")}, {SETTING_VALUES})
AND sound_trial(
    setting, {as_checked("trial_checksum")}, {as_checked("settings.id")}, {TRIAL_VALUES}
)
"""


# A table, and the key of a row in it.
Key = tuple[Any, ...]


class DamagedStore(UserWarning):
    """Something in a store is not as it was written, and is not used."""


class DamagedFileError(SpecError):
    """A store's file whose pages are not as SQLite wrote them, or not those of a store."""

    def __init__(self, path: Path, fault: str, why: str = "expected a sound store") -> None:
        self.fault = fault.splitlines()[-1]
        super().__init__("store", f"{why}, got {str(path)!r} ({self.fault})")

    def __reduce__(self) -> tuple[type[SpecError], tuple[str, str]]:
        """In another process only its words matter."""
        return SpecError, (self.field, self.message)


class Connection(sqlite3.Connection):
    """A connection that remembers which rows did not look sound to a query."""

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self.suspects: set[Key] = set()
        self.named: set[Key] = set()


# In place of a file: kept in memory, and gone at the end.
NOWHERE = Path("none")


def default_path() -> Path:
    """The user's own store."""
    return data_home() / "trials.db"


def connect(path: Path, *, writing: bool) -> Connection:
    """An open store; made if it is not there and `writing`. Trouble becomes one clear line.

    A file whose pages are not sound raises `DamagedFileError`; nothing is written to it.
    """
    shown = repr(str(path))
    check_place(path, "store")
    if not writing and not path.exists():
        raise SpecError("store", f"expected a store that is there, got {shown}")
    try:
        if writing and path != NOWHERE:
            path.parent.mkdir(parents=True, exist_ok=True)
        with sqlite_errors(path):
            connection = Connection(_address(path, writing), uri=True, timeout=PATIENCE_SECONDS, isolation_level=None)
            try:
                connection = _open(connection, path, writing)
            except BaseException:
                connection.close()
                raise
    except OSError as error:
        raise SpecError(
            "store", f"expected a place to write to, got {shown} ({error.strerror}); `none` keeps nothing"
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


def _open(connection: Connection, path: Path, writing: bool) -> Connection:
    connection.execute("PRAGMA foreign_keys = ON")
    # Text of damaged rows need not be UTF-8, and is still to be shown.
    connection.text_factory = lambda text: text.decode(errors="backslashreplace")
    found = _read_format(connection, path)
    if found is None and not writing:
        raise SpecError("store", f"expected a store of mnemoscope's, got {str(path)!r}")
    if writing:
        _write_ahead(connection)
        # A commit survives the death of the process; the last ones may not survive a power cut.
        connection.execute("PRAGMA synchronous = NORMAL")
        if found is None:
            _make_tables(connection)
    if found is not None and found > FORMAT:
        raise SpecError(
            "store",
            f"expected a store of format {FORMAT} or older, got format {found} in {str(path)!r}: "
            "it was written by a newer mnemoscope",
        )
    _add_functions(connection)
    if found is not None and found < FORMAT:
        if not writing:  # a copy, since the file itself is only to be read
            own = Connection(":memory:", isolation_level=None)
            connection.backup(own)
            own.text_factory = connection.text_factory
            connection.close()
            connection = own
            _add_functions(connection)
        _bring_up(connection)
    if _described(connection) != _as_made():
        raise DamagedFileError(path, "tables that are not as they were made")
    connection.execute(_VIEW)
    if not writing:
        connection.execute("PRAGMA query_only = ON")
    return connection


def _read_format(connection: sqlite3.Connection, path: Path) -> int | None:
    """The format of a store, None where there are no tables yet. Its pages are looked at, too."""
    try:
        names = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
        pages, free, size = (
            int(connection.execute(f"PRAGMA {name}").fetchone()[0])
            for name in ("page_count", "freelist_count", "page_size")
        )
        if not names and pages - free <= 1:
            return None
        if pages * size <= CHECKED_BYTES:
            fault = connection.execute("PRAGMA integrity_check(1)").fetchone()[0]
            if fault != "ok":
                raise DamagedFileError(path, fault)
        if not {"about", "settings", "trials", "claims"} <= names:
            raise DamagedFileError(path, "no tables of ours", "expected a store of mnemoscope's")
        row = connection.execute("SELECT value FROM about WHERE key = 'format'").fetchone()
        again = connection.execute("PRAGMA user_version").fetchone()
    except UnicodeDecodeError:  # SQLite quotes the damaged words
        raise DamagedFileError(path, "malformed database schema") from None
    except sqlite3.DatabaseError as error:
        if is_damage(error):
            raise DamagedFileError(path, str(error)) from None
        raise
    # The format stands in two places, so that damage is not taken for another format; FORMAT 1 had
    # it in one.
    if row is None or (row[0], again[0]) not in ((str(again[0]), again[0]), ("1", 0)):
        raise DamagedFileError(path, "no format")
    return int(row[0])


def _described(connection: sqlite3.Connection) -> list[tuple[Any, ...]]:
    """The columns of our tables, as SQLite understands them; others' are none of our business."""
    return connection.execute(
        'SELECT m.name, c.name, c.type, c."notnull", c.pk FROM sqlite_master m, '
        "pragma_table_info(m.name) c WHERE m.type = 'table' "
        "AND m.name IN ('about', 'settings', 'trials', 'claims', 'damaged') ORDER BY m.name, c.cid"
    ).fetchall()


@lru_cache
def _as_made() -> list[tuple[Any, ...]]:
    """What `_described` says of a store that was made a moment ago."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    _make_tables(connection)
    try:
        return _described(connection)
    finally:
        connection.close()


def _make_tables(connection: sqlite3.Connection) -> None:
    """The tables, if another driver has not made them meanwhile."""
    with transaction(connection):
        if connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0:
            for statement in filter(str.strip, TABLES.split(";")):
                connection.execute(statement)
            connection.execute("INSERT INTO about VALUES ('format', ?)", (str(FORMAT),))
            connection.execute(f"PRAGMA user_version = {FORMAT}")


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


def _bring_up(connection: sqlite3.Connection) -> None:
    """From FORMAT 1, which had no checksums: rows that can be read get theirs."""

    def readable(*row: Any) -> bool:
        try:
            read_trial(tuple(part.decode() if isinstance(part, bytes) else part for part in row))
        except UNREADABLE:
            return False
        return True

    connection.create_function("readable", -1, readable)
    record = ", ".join(
        f"CAST({name} AS BLOB)" if name not in ("seed", "seconds") else name for name in RECORD.split(", ")
    )
    with transaction(connection):
        row = connection.execute("SELECT value FROM about WHERE key = 'format'").fetchone()
        if int(row[0]) == FORMAT:  # another driver was faster
            return
        for statement in filter(str.strip, _SINCE_1.split(";")):
            connection.execute(statement)
        connection.execute(f"UPDATE settings SET setting_checksum = row_checksum({SETTING_VALUES})")
        connection.execute("UPDATE trials SET spec = settings.id FROM settings WHERE number = setting")
        connection.execute(
            f"UPDATE trials SET trial_checksum = row_checksum({TRIAL_VALUES}) WHERE EXISTS "
            f"(SELECT 1 FROM settings WHERE number = setting AND readable({record}))"
        )
        connection.execute("UPDATE about SET value = ? WHERE key = 'format'", (str(FORMAT),))
        connection.execute(f"PRAGMA user_version = {FORMAT}")


def _add_functions(connection: Connection) -> None:
    """What SQLite is to ask us about rows. `as_checked` has marked text already."""

    def fits(kept: Any, values: tuple[Any, ...]) -> bool:
        return kept == b"t" + checksum(*values).encode()

    def sound_setting(number: int, kept: Any, *values: Any) -> bool:
        if fits(kept, values):
            return True
        connection.suspects.add(("settings", number))
        return False

    def sound_trial(number: int, kept: Any, setting: Any, *values: Any) -> bool:
        if fits(kept, values) and values[0] == setting:
            return True
        connection.suspects.add(("trials", number, *values[1:3]))
        return False

    connection.create_function("row_checksum", -1, checksum)
    connection.create_function("sound_setting", -1, sound_setting)
    connection.create_function("sound_trial", -1, sound_trial)


@contextmanager
def asking(connection: Connection, path: Path) -> Iterator[None]:
    """Around queries: trouble in one line, and rows that were left out as damaged are named.

    A query may hand the view a constant that it compares a column with, in place of the column's
    own value, so that rows which it does not want look damaged too: each is looked at by itself.
    """
    with sqlite_errors(path):
        yield
        for key in sorted(connection.suspects - connection.named, key=repr):
            name = _damaged_name(connection, key)
            if name is not None:
                connection.named.add(key)
                warn_of_damage(name)
        connection.suspects.clear()


def _damaged_name(connection: Connection, key: Key) -> str | None:
    """What the row of a key is called, if it is damaged."""
    if key[0] == "settings":
        row = connection.execute(
            f"SELECT id FROM settings WHERE number = ? AND setting_checksum IS NOT row_checksum({SETTING_VALUES})",
            key[1:],
        ).fetchone()
        return None if row is None else f"the setting {row[0]}"
    row = connection.execute(
        "SELECT trials.spec, seed FROM trials LEFT JOIN settings ON setting = number "
        "WHERE setting = ? AND seed = ? AND numerics = ? AND "
        f"(trial_checksum IS NOT row_checksum({TRIAL_VALUES}) OR trials.spec IS NOT settings.id)",
        key[1:],
    ).fetchone()
    return None if row is None else f"a trial of {row[0]}, seed {row[1]},"


def warn_of_damage(what: str) -> None:
    """Name something that was damaged and is not used."""
    warnings.warn(
        f"{what} is damaged and not used; `mnemoscope store repair` moves it aside", DamagedStore, stacklevel=2
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


# SQLite's words for a file whose pages are not as it wrote them.
DAMAGE = ("malformed", "not a database", "Could not decode", "file is encrypted", "corrupt")


def is_damage(error: sqlite3.Error) -> bool:
    """Whether SQLite complains of the file itself."""
    return any(word in str(error) for word in DAMAGE)


@contextmanager
def sqlite_errors(path: Path) -> Iterator[None]:
    """SQLite's complaints in one line that names the store. What was committed stays."""
    try:
        yield
    except sqlite3.Error as error:
        text = str(error)
        if is_damage(error):
            why = "expected a sound store (`mnemoscope store repair` keeps what is sound)"
        elif "disk is full" in text or "disk I/O error" in text:
            why = "expected room on the disk"
        elif "readonly" in text or "unable to open" in text:
            why = "expected a file that can be written (`none` keeps nothing)"
        elif "locked" in text:
            why = f"expected to get a turn within {PATIENCE_SECONDS:g} s"
        else:
            why = "expected a sound store"
        raise SpecError("store", f"{why}, got {str(path)!r} ({text})") from None
