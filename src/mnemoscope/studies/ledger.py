"""The ledger: the entries of all studies, in an SQLite table or in one JSON file."""

import errno
import json
import os
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from mnemoscope.engine.files import check_place, whole_file
from mnemoscope.spec import SpecError
from mnemoscope.store.schema import default_path
from mnemoscope.store.sqlite import PATIENCE_SECONDS, sqlite_errors, transaction
from mnemoscope.studies.base import SEED_STRIDE, Bench, Size, Study
from mnemoscope.studies.claims import Claim
from mnemoscope.studies.entries import Entry, is_current, measure_entry, read_entry
from mnemoscope.studies.fingerprints import with_revision

try:
    import fcntl
except ImportError:  # Windows: one command at a time there
    fcntl = None

# Formats 1 and 2 had a fingerprint of the study's file in place of its revision.
FORMAT = 3

_TABLE = """
CREATE TABLE IF NOT EXISTS entries (
    study TEXT NOT NULL, size TEXT NOT NULL, base INTEGER NOT NULL, entry TEXT NOT NULL, UNIQUE (study, size, base)
)
"""


def _read_entries(path: Path) -> list[Entry] | None:
    """The entries of a table or of an export; None if there is no file. Errors are one line."""
    shown = repr(str(path))
    try:
        if not path.exists():
            return None
        if not (path.is_file() or path.is_dir()):  # such as a device that never ends
            raise ValueError
        format_, values = _read_table(path) if path.suffix == ".db" else _read_export(path)
        entries = [read_entry(value if format_ > 2 else with_revision(value)) for value in values]
    except OSError as error:
        raise SpecError("ledger", f"expected a readable file, got {shown} ({error.strerror})") from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, sqlite3.DatabaseError):
        raise SpecError("ledger", f"expected a ledger that `reproduce` wrote, got {shown}") from None
    if format_ > FORMAT:
        raise SpecError(
            "ledger", f"expected format {FORMAT} or older, got {format_} in {shown}: a newer mnemoscope wrote it"
        )
    return entries


def _read_export(path: Path) -> tuple[int, list[Any]]:
    content = json.loads(path.read_text(encoding="utf-8"))
    format_ = int(content["format"])
    return format_, content["entries"] if format_ <= FORMAT else []


def _read_table(path: Path) -> tuple[int, list[Any]]:
    """Opens the file for writing if it may: SQLite may have to roll back what a killed process left."""
    mode = "rw" if os.access(path, os.W_OK) else "ro"
    address = f"{path.absolute().as_uri()}?mode={mode}"
    with closing(sqlite3.connect(address, uri=True, timeout=PATIENCE_SECONDS, isolation_level=None)) as connection:
        format_ = int(connection.execute("PRAGMA user_version").fetchone()[0])
        if format_ == 0 and not path.stat().st_size:  # another process is about to create the table
            return FORMAT, []
        rows = connection.execute("SELECT entry FROM entries ORDER BY rowid") if format_ <= FORMAT else ()
        return format_, [json.loads(text) for (text,) in rows]


class Ledger:
    """The entries of one file, to which several processes may add at once.

    A `.db` file is a table with a row for each entry. Any other file is a JSON export, like `data/*.json`: read whole,
    and written whole after each change. The user's own ledger is `ledger.db` beside the store; when it is created, it
    takes in a `ledger.json` that an earlier version left there.
    """

    def __init__(self, path: Path | None = None) -> None:
        self.path = path or default_path().with_name("ledger.db")
        self._older = None if path else self.path.with_suffix(".json")
        check_place(self.path, "ledger")
        self.entries: dict[tuple[str, str, int], Entry] = {}
        self.read()

    def read(self) -> None:
        """Read the file again."""
        path = self.path
        if self._older is not None and not path.exists():
            path = self._older
        entries = _read_entries(path)
        if entries is not None:
            self.entries = {entry.key: entry for entry in entries}

    def add(self, entry: Entry) -> None:
        """Keep an entry, in place of an older one with the same key."""
        if self.path.suffix == ".db":
            self._add_row(entry)
        else:
            with self._lock_file():
                self.read()
                self.entries[entry.key] = entry
                self.export(self.path)

    def export(self, path: Path) -> None:
        """Write all entries to a JSON file, whole or not at all."""
        content = {"format": FORMAT, "entries": [entry.as_dict() for entry in self.entries.values()]}
        with whole_file(path, "ledger") as part:
            Path(part).write_text(json.dumps(content, allow_nan=False), encoding="utf-8")

    def _add_row(self, entry: Entry) -> None:
        """Add a row in one transaction; the first one takes in what an earlier version kept."""
        with self._clear_errors():
            self.path.parent.mkdir(parents=True, exist_ok=True)
        with (
            sqlite_errors(self.path, "ledger"),
            closing(sqlite3.connect(self.path, timeout=PATIENCE_SECONDS, isolation_level=None)) as connection,
            transaction(connection),
        ):
            entries = [entry]
            if connection.execute("PRAGMA user_version").fetchone()[0] == 0:
                connection.execute(_TABLE)
                connection.execute(f"PRAGMA user_version = {FORMAT}")
                entries = [*((_read_entries(self._older) if self._older else None) or ()), entry]
            connection.executemany(
                "INSERT INTO entries VALUES (?, ?, ?, ?) "
                "ON CONFLICT (study, size, base) DO UPDATE SET entry = excluded.entry",
                [(*row.key, json.dumps(row.as_dict(), allow_nan=False)) for row in entries],
            )
        self.read()

    @contextmanager
    def _lock_file(self) -> Iterator[None]:
        """Keep other processes from writing; the lock ends with its process."""
        if fcntl is None:
            yield
            return
        with self._clear_errors():
            self.path.parent.mkdir(parents=True, exist_ok=True)
            lock = self._lock.open("w")
        with lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    @property
    def _lock(self) -> Path:
        return self.path.with_name(f".{self.path.name}.lock")

    @contextmanager
    def _clear_errors(self) -> Iterator[None]:
        """Turn errors of the file system into one clear line."""
        try:
            yield
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            raise SpecError("ledger", f"expected a place to write to, got {str(self.path)!r} ({reason})") from None

    def check_place(self) -> None:
        """Refuse a place that cannot be written to, before any work is done.

        This creates nothing: a later check may still refuse the command.
        """
        with self._clear_errors(), suppress(FileNotFoundError):
            self._lock.lstat()
        folder = next(folder for folder in self.path.absolute().parents if folder.exists())
        with self._clear_errors():
            if not os.access(folder, os.W_OK):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    def find(self, study: Study, size: Size, base: int) -> Entry | None:
        """The entry, unless the study has changed since."""
        entry = self.entries.get((study.id, size, base))
        return entry if entry is not None and is_current(study, entry) else None

    def claims_for(self, studies: Sequence[Study], size: Size, bases: int) -> list[Claim]:
        """The claims at this size, each with the current entries of its first base seeds."""
        kept = [(study, [self.find(study, size, base) for base in range(bases)]) for study in studies]
        return [Claim(study, size, tuple(filter(None, entries))) for study, entries in kept if any(entries)]

    def claims(self, studies: Sequence[Study]) -> list[Claim]:
        """The claims of these studies, each at its largest size with entries."""
        claims = []
        for study in studies:
            kept = sorted((entry for entry in self.entries.values() if entry.study == study.id), key=lambda e: e.base)
            for size in ("full", "quick"):
                entries = tuple(entry for entry in kept if entry.size == size)
                if entries:
                    claims.append(Claim(study, size, entries))
                    break
        return claims


def run_studies(
    studies: Sequence[Study], size: Size, bases: int, ledger: Ledger, bench: Callable[[Study, int], Bench]
) -> list[Claim]:
    """Measure what the ledger lacks, study by study, and return all claims."""
    for study in studies:
        for base in range(bases):
            if ledger.find(study, size, base) is None:
                ledger.add(measure_entry(study, size, base, bench(study, base * SEED_STRIDE)))
    return ledger.claims_for(studies, size, bases)
