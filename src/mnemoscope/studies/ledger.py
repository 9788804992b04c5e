"""What studies found: kept in a table, or in one JSON file, and judged again whenever it is read.

An entry is one study at one size from one base seed: its numbers, and how they were made. It is
found again as long as the study's revision and the numerics are what they were; within a study, the
store has what was finished. A study may judge the numbers of all its base seeds in one; otherwise
a verdict that another base seed does not give is `inconclusive`. How much power the rule has is
computed before the measurement and kept with it.
"""

import errno
import json
import os
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, Any, get_args

import jax

from mnemoscope.engine.files import check_place, whole_file
from mnemoscope.engine.record import NUMERICS_VERSION, versions
from mnemoscope.spec import SpecError
from mnemoscope.store.schema import default_path
from mnemoscope.store.sqlite import PATIENCE_SECONDS, sqlite_errors, transaction
from mnemoscope.studies.base import Bench, Earlier, Judgement, Numbers, Power, Size, Study, Verdict, agreed
from mnemoscope.studies.fingerprints import REVISIONS
from mnemoscope.studies.trials import Trials, trials_of

try:
    import fcntl
except ImportError:  # Windows: there, one command at a time
    fcntl = None

# Formats 1 and 2 had a fingerprint of the study's file in place of its revision.
FORMAT = 3
# Base seeds are this far apart: no study uses as many.
APART = 10_000


@dataclass(frozen=True)
class Entry:
    """One measurement of one study, and the trials it rests on."""

    study: str
    size: Size
    base: int
    revision: int
    numbers: Numbers = field(repr=False)
    numerics: int = NUMERICS_VERSION
    seconds: float = 0.0
    made: dict[str, str] = field(default_factory=dict)
    trials: Trials = field(default_factory=dict, repr=False)
    power: dict[str, Any] | None = None

    def as_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


@dataclass(frozen=True)
class Claim:
    """A study with all its entries at one size, and what they say together."""

    study: Study
    size: Size
    entries: tuple[Entry, ...]

    @property
    def judgements(self) -> list[Judgement]:
        """Of every base seed."""
        return [self.study.judge(entry.numbers) for entry in self.entries]

    @property
    def pooled(self) -> Judgement | None:
        """Of all base seeds in one, where the study has a rule for that."""
        if self.study.judge_all is None:
            return None
        return self.study.judge_all([entry.numbers for entry in self.entries])

    @property
    def verdict(self) -> Verdict:
        """The pooled verdict, or the one that all base seeds agree on."""
        pooled = self.pooled
        return agreed(judgement.verdict for judgement in self.judgements) if pooled is None else pooled.verdict

    @property
    def command(self) -> str:
        """What makes these entries again."""
        return f"mnemoscope reproduce {self.study.id} --{self.size} --bases {len(self.entries)}"

    @property
    def stale(self) -> bool:
        """Whether the study or the numerics have changed since an entry was made."""
        return not all(is_current(self.study, entry) for entry in self.entries)

    @property
    def earlier(self) -> Earlier | None:
        """The rule that these entries were run for, where another has replaced it since.

        What a replaced rule said is known at full size.
        """
        history = self.study.history
        return history[0] if history and self.size == "full" and self.stale else None

    def as_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        study, judgements, pooled = self.study, self.judgements, self.pooled
        return {
            **self._about(),
            "measured": (pooled or judgements[0]).measured,
            "verdict": self.verdict,
            "pooled": None if pooled is None else asdict(pooled),
            "rule": study.rule,
            "power": self.entries[0].power,
            "bases": [
                {**_made(entry), "verdict": own.verdict, "measured": own.measured}
                for entry, own in zip(self.entries, judgements, strict=True)
            ],
        }

    def as_earlier(self, earlier: Earlier) -> dict[str, Any]:
        """The same as the replaced rule had it; base seeds by themselves are not kept of that."""
        return {
            **self._about(),
            "statement": earlier.statement or self.study.statement,
            "measured": earlier.measured,
            "verdict": earlier.verdict,
            "pooled": None,
            "rule": earlier.rule,
            "power": None,
            "bases": [_made(entry) for entry in self.entries],
            "replaced": {"date": earlier.date, "rule": self.study.rule, "statement": self.study.statement},
        }

    def _about(self) -> dict[str, Any]:
        study = self.study
        return {
            "id": study.id,
            "source": study.source,
            "place": study.place,
            "statement": study.statement,
            "expected": study.expected,
            "history": [earlier.as_dict() for earlier in study.history],
            "size": self.size,
            "command": self.command,
        }


def _made(entry: Entry) -> dict[str, Any]:
    return {"base": entry.base, "seconds": entry.seconds, "made": entry.made}


def read_entry(values: dict[str, Any]) -> Entry:
    """An entry from a file, which anybody may have written; ValueError if a value has the wrong type."""
    entry = Entry(**values)
    texts: list[Any] = [entry.study, *entry.made, *entry.made.values()]
    counts: list[Any] = [entry.base, entry.revision, entry.numerics]
    numbers: list[Any] = [entry.seconds]
    if entry.power is not None:
        power = Power(**entry.power)
        texts.append(power.note)
        counts.append(power.draws)
        numbers += [power.supported, *power.rivals.values()]
    typed = ((texts, str), (counts, int), (numbers, int | float), ((entry.numbers, entry.trials), dict))
    right = all(isinstance(value, kind) for group, kind in typed for value in group)
    if entry.size not in get_args(Size) or not right:
        raise ValueError
    return entry


def is_current(study: Study, entry: Entry) -> bool:
    """Whether an entry is of the study and the numerics as they are now."""
    return (entry.revision, entry.numerics) == (study.revision, NUMERICS_VERSION)


def _with_revision(entry: dict[str, Any]) -> dict[str, Any]:
    """An entry of format 1 or 2, whose revision is known by the fingerprint of the study's file."""
    revision = REVISIONS.get((entry["study"], entry["print"]), 0)
    rest = {name: value for name, value in entry.items() if name != "print"}
    return {**rest, "revision": revision, "numerics": int(entry["made"].get("numerics", 0))}


def _read_entries(path: Path) -> list[Entry] | None:
    """The entries of a table or of an export; None where there is no file. Trouble is one line."""
    shown = repr(str(path))
    try:
        if not path.exists():
            return None
        if not (path.is_file() or path.is_dir()):  # as a device without an end
            raise ValueError
        format_, values = _read_table(path) if path.suffix == ".db" else _read_export(path)
        entries = [read_entry(value if format_ > 2 else _with_revision(value)) for value in values]
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
    """Opened for writing where that is allowed: SQLite may have to undo what a killed process left."""
    mode = "rw" if os.access(path, os.W_OK) else "ro"
    address = f"{path.absolute().as_uri()}?mode={mode}"
    with closing(sqlite3.connect(address, uri=True, timeout=PATIENCE_SECONDS, isolation_level=None)) as connection:
        format_ = int(connection.execute("PRAGMA user_version").fetchone()[0])
        if format_ == 0 and not path.stat().st_size:  # about to be made by another process
            return FORMAT, []
        rows = connection.execute("SELECT entry FROM entries ORDER BY rowid") if format_ <= FORMAT else ()
        return format_, [json.loads(text) for (text,) in rows]


_TABLE = """
CREATE TABLE IF NOT EXISTS entries (
    study TEXT NOT NULL, size TEXT NOT NULL, base INTEGER NOT NULL, entry TEXT NOT NULL, UNIQUE (study, size, base)
)
"""


class Ledger:
    """The entries of one file, to which several processes may add at once.

    A `.db` file is a table, where an entry is a row. Any other is a JSON export, as `data/*.json`
    are: read whole, and written whole after each change. The user's own ledger is `ledger.db`
    beside the store; a `ledger.json` that an earlier version kept there is taken in when it is made.
    """

    def __init__(self, path: Path | None = None) -> None:
        self.path = path or default_path().with_name("ledger.db")
        self._older = None if path else self.path.with_suffix(".json")
        check_place(self.path, "ledger")
        self.entries: dict[tuple[str, str, int], Entry] = {}
        self.read()

    @property
    def _is_table(self) -> bool:
        return self.path.suffix == ".db"

    def read(self) -> None:
        """Take in what the file says now."""
        path = self.path
        if self._older is not None and not path.exists():
            path = self._older
        entries = _read_entries(path)
        if entries is not None:
            self.entries = {(entry.study, entry.size, entry.base): entry for entry in entries}

    def add(self, entry: Entry) -> None:
        """Keep one entry, in place of an older one."""
        if self._is_table:
            self._add_row(entry)
        else:
            with self._alone():
                self.read()
                self.entries[entry.study, entry.size, entry.base] = entry
                self.export(self.path)

    def export(self, path: Path) -> None:
        """Write all entries into a JSON file, whole or not at all."""
        content = {"format": FORMAT, "entries": [entry.as_dict() for entry in self.entries.values()]}
        with whole_file(path, "ledger") as part:
            Path(part).write_text(json.dumps(content, allow_nan=False), encoding="utf-8")

    def _add_row(self, entry: Entry) -> None:
        """One row, in one transaction; the first one brings along what an earlier version kept."""
        with self._clearly():
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
                [(row.study, row.size, row.base, json.dumps(row.as_dict(), allow_nan=False)) for row in entries],
            )
        self.read()

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Keep other processes from writing meanwhile; the lock ends with its process."""
        if fcntl is None:
            yield
            return
        with self._open_lock() as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _open_lock(self) -> IO[str]:
        """The file that stands for the right to write."""
        with self._clearly():
            self.path.parent.mkdir(parents=True, exist_ok=True)
            return self._lock.open("w")

    @property
    def _lock(self) -> Path:
        return self.path.with_name(f".{self.path.name}.lock")

    @contextmanager
    def _clearly(self) -> Iterator[None]:
        """Trouble with the place becomes one clear line."""
        try:
            yield
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            raise SpecError("ledger", f"expected a place to write to, got {str(self.path)!r} ({reason})") from None

    def check_place(self) -> None:
        """Refuse a place that cannot be written to, before any work goes into it.

        Nothing is made there yet: what comes after may be refused as well.
        """
        with self._clearly(), suppress(FileNotFoundError):
            self._lock.lstat()
        there = next(folder for folder in self.path.absolute().parents if folder.exists())
        with self._clearly():
            if not os.access(there, os.W_OK):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    def find(self, study: Study, size: Size, base: int) -> Entry | None:
        """The entry, if the study has not changed since."""
        entry = self.entries.get((study.id, size, base))
        return entry if entry is not None and is_current(study, entry) else None

    def claims_for(self, studies: Sequence[Study], size: Size, bases: int) -> list[Claim]:
        """The claims at this size, each by as many of its first base seeds as there are."""
        claims = []
        for study in studies:
            entries = tuple(entry for base in range(bases) if (entry := self.find(study, size, base)))
            if entries:
                claims.append(Claim(study, size, entries))
        return claims

    def claims(self, studies: Sequence[Study]) -> list[Claim]:
        """What is kept of these studies, each at the largest size there is."""
        claims = []
        for study in studies:
            kept = sorted((entry for entry in self.entries.values() if entry.study == study.id), key=lambda e: e.base)
            for size in ("full", "quick"):
                entries = tuple(entry for entry in kept if entry.size == size)
                if entries:
                    claims.append(Claim(study, size, entries))
                    break
        return claims


def measure_one(study: Study, size: Size, base: int, bench: Bench) -> Entry:
    """Run a study from one base seed."""
    began = time.perf_counter()
    power = None if study.power is None else study.power(size).as_dict()
    numbers = study.measure(size, bench)
    made = {**versions(), "device": jax.devices()[0].device_kind, "date": time.strftime("%Y-%m-%d", time.gmtime())}
    seconds = round(time.perf_counter() - began, 1)
    trials = trials_of(bench.store, bench.asked)
    return Entry(study.id, size, base, study.revision, numbers, seconds=seconds, made=made, trials=trials, power=power)


def run_studies(
    studies: Sequence[Study], size: Size, bases: int, ledger: Ledger, bench: Callable[[Study, int], Bench]
) -> list[Claim]:
    """Measure what the ledger does not have yet, study by study, and return all claims."""
    for study in studies:
        for base in range(bases):
            if ledger.find(study, size, base) is None:
                ledger.add(measure_one(study, size, base, bench(study, base * APART)))
    return ledger.claims_for(studies, size, bases)
