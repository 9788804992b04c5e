"""SQLite helpers: transactions, the write-ahead log, and one-line errors."""

import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mnemoscope.spec import SpecError

# How long to wait for another process that is writing.
PATIENCE_SECONDS = 30.0
# How SQLite reports damaged pages.
DAMAGE = ("malformed", "not a database", "Could not decode", "file is encrypted", "corrupt")


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """A transaction that takes the write lock at once, so that what it reads stays true.

    Inside another transaction, it becomes part of it.
    """
    if connection.in_transaction:
        yield
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        if connection.in_transaction:  # a full disk has undone it already
            connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def write_ahead(connection: sqlite3.Connection) -> None:
    """Turn on write-ahead logging, which needs a short exclusive lock that SQLite does not wait for.

    A commit survives the death of the process; the last ones may not survive a power cut.
    """
    until = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            break
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > until:
                raise
            time.sleep(0.01)
    connection.execute("PRAGMA synchronous = NORMAL")


def is_damage(error: sqlite3.Error) -> bool:
    """Whether an error means that the file is damaged."""
    return any(word in str(error) for word in DAMAGE)


@contextmanager
def sqlite_errors(path: Path, option: str = "store") -> Iterator[None]:
    """Turn SQLite's errors into one line that names the file."""
    try:
        yield
    except sqlite3.Error as error:
        text = str(error)
        sound = f"expected a sound {option}"
        if is_damage(error):
            why = f"{sound} (`mnemoscope store repair` keeps what is sound)" if option == "store" else sound
        elif "disk is full" in text or "disk I/O error" in text:
            why = "expected room on the disk"
        elif "readonly" in text or "unable to open" in text:
            why = "expected a file that can be written" + (" (`none` keeps nothing)" if option == "store" else "")
        elif "locked" in text:
            why = f"expected to get a turn within {PATIENCE_SECONDS:g} s"
        else:
            why = sound
        raise SpecError(option, f"{why}, got {str(path)!r} ({text})") from None
