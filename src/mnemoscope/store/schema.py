"""The store's file: where it is, how it is opened, and how damage is reported.

Queries go to `sound`, a view of trials with their settings that omits rows with a wrong checksum; `asking` logs a
warning that names each of them. Write-ahead logging lets readers continue while a driver writes, and keeps every
committed row when a process is killed.
"""

import logging
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from mnemoscope.engine.files import check_place, data_home
from mnemoscope.spec import SpecError
from mnemoscope.store.migrations import migrate
from mnemoscope.store.rows import checksum
from mnemoscope.store.sqlite import PATIENCE_SECONDS, is_damage, sqlite_errors, write_ahead
from mnemoscope.store.tables import (
    FORMAT,
    SETTING_VALUES,
    TRIAL_VALUES,
    columns_of_a_new_store,
    describe,
    make_tables,
    make_views,
)

# Opening a store checks all pages of files up to this size: some 30,000 trials, in 0.1 s.
CHECKED_BYTES = 2**25

log = logging.getLogger(__name__)
_quiet = ContextVar("_quiet", default=False)

# A table, and the key of a row in it.
Key = tuple[Any, ...]


class DamagedFileError(SpecError):
    """A file with damaged pages, or without the tables of a store."""

    def __init__(self, path: Path, fault: str, why: str = "expected a sound store") -> None:
        self.fault = fault.splitlines()[-1]
        super().__init__("store", f"{why}, got {str(path)!r} ({self.fault})")

    def __reduce__(self) -> tuple[type[SpecError], tuple[str, str]]:
        """Pickle as a plain `SpecError`: another process needs only the message."""
        return SpecError, (self.field, self.message)


class Connection(sqlite3.Connection):
    """A connection that remembers which rows failed a check in a query."""

    def __init__(self, database: str, *, uri: bool = False, timeout: float = PATIENCE_SECONDS) -> None:
        super().__init__(database, uri=uri, timeout=timeout, isolation_level=None)
        self.suspects: set[Key] = set()
        self.named: set[Key] = set()


# The path of a store in memory.
NOWHERE = Path("none")


def default_path() -> Path:
    """The user's own store."""
    return data_home() / "trials.db"


def connect(path: Path, *, writing: bool) -> Connection:
    """Open a store, and create it if it is missing and `writing`.

    A file with damaged pages raises `DamagedFileError`, and is not written to.
    """
    shown = repr(str(path))
    check_place(path, "store")
    if not writing and not path.exists():
        raise SpecError("store", f"expected a store that is there, got {shown}")
    try:
        if writing and path != NOWHERE:
            path.parent.mkdir(parents=True, exist_ok=True)
        with sqlite_errors(path):
            connection = Connection(_address(path, writing), uri=True)
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

    Reading a write-ahead log needs files beside the store. In a folder that we may not write to, a store without a
    log is opened as immutable.
    """
    if path == NOWHERE:
        return ":memory:"
    log = path.with_name(path.name + "-wal")
    closed = not os.access(path.parent, os.W_OK) and not log.exists()
    return path.absolute().as_uri() + ("?immutable=1" if closed and not writing else "")


def _open(connection: Connection, path: Path, writing: bool) -> Connection:
    connection.execute("PRAGMA foreign_keys = ON")
    _prepare(connection)
    stored_format = _read_format(connection, path)
    if stored_format is None and not writing:
        raise SpecError("store", f"expected a store of mnemoscope's, got {str(path)!r}")
    if stored_format is not None and stored_format > FORMAT:
        raise SpecError(
            "store",
            f"expected a store of format {FORMAT} or older, got format {stored_format} in {str(path)!r}: "
            "it was written by a newer mnemoscope",
        )
    if writing:
        write_ahead(connection)
        if stored_format is None:
            make_tables(connection)
    if stored_format is not None and stored_format < FORMAT:
        connection = _migrated(connection, path, writing)
    if describe(connection) != columns_of_a_new_store():
        raise DamagedFileError(path, "tables that are not as they were made")
    make_views(connection)
    if not writing:
        connection.execute("PRAGMA query_only = ON")
    return connection


def _migrated(connection: Connection, path: Path, writing: bool) -> Connection:
    """The store in the current format: the file itself or, if it is only read, a copy in memory."""
    if not writing:
        copy = Connection(":memory:")
        connection.backup(copy)
        connection.close()
        _prepare(copy)
        connection = copy
    try:
        migrate(connection)
    except sqlite3.OperationalError as error:
        if not str(error).startswith("no such"):
            raise
        raise DamagedFileError(path, "tables that are not as they were made") from None
    return connection


def _read_format(connection: sqlite3.Connection, path: Path) -> int | None:
    """The format of a store, None if it has no tables yet. Checks the pages, too."""
    try:
        # Pages first: another process may make the tables between the two, and pages without names are damage.
        pages, free, size = (
            int(connection.execute(f"PRAGMA {name}").fetchone()[0])
            for name in ("page_count", "freelist_count", "page_size")
        )
        names = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
        if not names and pages - free <= 1:
            return None
        if pages * size <= CHECKED_BYTES:
            fault = connection.execute("PRAGMA integrity_check(1)").fetchone()[0]
            if fault != "ok":
                raise DamagedFileError(path, fault)
        if not {"about", "settings", "trials", "claims"} <= names:
            raise DamagedFileError(path, "no tables of ours", "expected a store of mnemoscope's")
        row = connection.execute("SELECT value FROM about WHERE key = 'format'").fetchone()
        (version,) = connection.execute("PRAGMA user_version").fetchone()
    except UnicodeDecodeError:  # SQLite quotes the damaged words
        raise DamagedFileError(path, "malformed database schema") from None
    except sqlite3.DatabaseError as error:
        if is_damage(error):
            raise DamagedFileError(path, str(error)) from None
        raise
    # The format is stored twice, so that damage is not taken for another format; FORMAT 1 stored it once.
    if row is None or (row[0], version) not in ((str(version), version), ("1", 0)):
        raise DamagedFileError(path, "no format")
    return int(row[0])


def _prepare(connection: Connection) -> None:
    """Register the functions that check rows; `as_checked` marks text in their arguments."""
    # Damaged rows may hold text that is not UTF-8, and are shown nevertheless.
    connection.text_factory = lambda text: text.decode(errors="backslashreplace")

    def fits(stored: Any, values: tuple[Any, ...]) -> bool:
        return stored == b"t" + checksum(*values).encode()

    def sound_setting(number: int, stored: Any, *values: Any) -> bool:
        if fits(stored, values):
            return True
        connection.suspects.add(("settings", number))
        return False

    def sound_trial(number: int, stored: Any, setting: Any, *values: Any) -> bool:
        if fits(stored, values) and values[0] == setting:
            return True
        connection.suspects.add(("trials", number, *values[1:3]))
        return False

    connection.create_function("row_checksum", -1, checksum)
    connection.create_function("sound_setting", -1, sound_setting)
    connection.create_function("sound_trial", -1, sound_trial)


@contextmanager
def asking(connection: Connection, path: Path) -> Iterator[None]:
    """Around queries: turn errors into one line, and report the damaged rows that were left out.

    SQLite may pass the constant that a column is compared with to the view's checks in place of the column's value.
    Rows that the query does not want then look damaged, too, so each suspect is checked on its own.
    """
    with sqlite_errors(path):
        yield
        for key in sorted(connection.suspects - connection.named, key=repr):
            name = _damaged_name(connection, key)
            if name is not None:
                connection.named.add(key)
                report_damage(f"{name} is damaged and not used; `mnemoscope store repair` moves it aside")
        connection.suspects.clear()


def _damaged_name(connection: Connection, key: Key) -> str | None:
    """A description of the row with this key, if it is damaged."""
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


def report_damage(text: str) -> None:
    """Log one line about something that is damaged and not used."""
    if not _quiet.get():
        log.warning("%s", text)


@contextmanager
def unreported() -> Iterator[None]:
    """Within it, damage is not logged: the caller reports it in its own way, or later."""
    token = _quiet.set(True)
    try:
        yield
    finally:
        _quiet.reset(token)
