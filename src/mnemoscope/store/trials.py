"""Writing trials and finding them again."""

import sqlite3
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

from mnemoscope.engine.record import NUMERICS_VERSION, Trial
from mnemoscope.spec import Spec
from mnemoscope.store.rows import RECORD, SETTING, TRIAL, UNREADABLE, read_setting, read_trial, setting_row, trial_row
from mnemoscope.store.salvage import open_salvaged
from mnemoscope.store.schema import DamagedFileError, asking, connect, default_path, warn_of_damage
from mnemoscope.store.sqlite import sqlite_errors, transaction
from mnemoscope.store.tables import SETTING_VALUES, TRIAL_VALUES

Key = tuple[str, int]


class Store:
    """An open store.

    >>> store = Store(Path("none"))  # in memory
    >>> store.count()
    0
    """

    def __init__(self, path: Path | str | None = None, *, writing: bool = True) -> None:
        self.path = default_path() if path is None else Path(path)
        self.writing = writing
        self.damage: str | None = None  # what is wrong with the file itself
        try:
            self.connection = connect(self.path, writing=writing)
        except DamagedFileError as damage:
            self.damage = damage.fault
            self.path, self.connection = open_salvaged(self.path, damage, writing=writing)

    def __enter__(self) -> "Store":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the file."""
        self.connection.close()

    def add(self, trials: Sequence[Trial]) -> None:
        """Write trials, all or none; once this returns they are kept.

        A trial that is there already stays as it is, unless it crashed: a crash is no result, and
        gives way to one.
        """
        with sqlite_errors(self.path), transaction(self.connection):
            for trial in trials:
                self.write(trial)

    def write(self, trial: Trial) -> None:
        """Write one trial as part of a transaction that the caller holds."""
        number, row = self._setting(trial.spec), trial_row(trial)
        key = (number, trial.seed, row[TRIAL.index("numerics")])
        # The place of this trial may hold a damaged row, or that of another setting.
        self._move_damaged(
            "trials",
            "setting = ? AND seed = ? AND numerics = ? AND (spec IS NOT ? OR "
            f"trial_checksum IS NOT row_checksum({TRIAL_VALUES}))",
            (*key, trial.spec.id),
        )
        self.connection.execute(
            "DELETE FROM trials WHERE setting = ? AND seed = ? AND numerics = ? AND status = 'crashed'", key
        )
        names = ", ".join((*TRIAL, "trial_checksum", "setting"))
        marks = ", ".join("?" * (len(row) + 1))
        self.connection.execute(
            f"INSERT INTO trials ({names}) VALUES ({marks}) ON CONFLICT (setting, numerics, seed) DO NOTHING",
            (*row, number),
        )

    def _setting(self, spec: Spec) -> int:
        """The number of a setting's row, which is written if it is not there, or damaged."""
        row = setting_row(spec)
        names = [*SETTING, "setting_checksum"]
        found = self.connection.execute(
            f"SELECT number, setting_checksum IS row_checksum({SETTING_VALUES}) FROM settings WHERE id = ?", (spec.id,)
        ).fetchone()
        if found is None:
            made = self.connection.execute(
                f"INSERT INTO settings ({', '.join(names)}) VALUES ({', '.join('?' * len(row))})", row
            )
            return int(made.lastrowid or 0)
        number, sound = found
        if not sound:
            # The spec itself says what the row said, so that its trials are found again.
            self._keep_damaged("settings", "number = ?", (number,))
            assignments = ", ".join(f"{name} = ?" for name in names)
            self.connection.execute(f"UPDATE settings SET {assignments} WHERE number = ?", (*row, number))
        return int(number)

    def _keep_damaged(self, table: str, where: str, values: Sequence[Any]) -> None:
        """Copy what is damaged to where it can be looked at."""
        rows = self.connection.execute(f"SELECT * FROM {table} WHERE {where}", values)
        names = [column[0] for column in rows.description]
        for row in rows.fetchall():
            text = repr(dict(zip(names, row, strict=True)))
            self.connection.execute("INSERT INTO damaged VALUES (?, ?, ?)", (table, text, time.time()))

    def set_aside(self, table: str, key: tuple[Any, ...]) -> None:
        """Move a damaged row out of the way, within a transaction that the caller holds.

        A setting whose canonical JSON is sound is written anew from it. Of another one that still
        has trials only the id stays, so that they are found again when the setting is asked for.
        """
        if table == "settings":
            self._set_setting_aside(key)
            return
        self._move_damaged(table, "setting = ? AND numerics = ? AND seed = ?", key)

    def _set_setting_aside(self, key: tuple[Any, ...]) -> None:
        name, canonical = self.connection.execute("SELECT id, canonical FROM settings WHERE number = ?", key).fetchone()
        with suppress(*UNREADABLE):
            spec = read_setting(canonical)
            if spec.id == name:
                self._setting(spec)
                return
        if canonical == "":  # set aside before, and not asked for since
            return
        self._keep_damaged("settings", "number = ?", key)
        if self.connection.execute("SELECT 1 FROM trials WHERE setting = ?", key).fetchone():
            self.connection.execute("UPDATE settings SET kind = '', canonical = '' WHERE number = ?", key)
        else:
            self.connection.execute("DELETE FROM settings WHERE number = ?", key)

    def _move_damaged(self, table: str, where: str, values: Sequence[Any]) -> None:
        self._keep_damaged(table, where, values)
        self.connection.execute(f"DELETE FROM {table} WHERE {where}", values)

    def finished(self, specs: Iterable[Spec]) -> set[Key]:
        """The (spec id, seed) of these specs that have a result. A crash is none."""
        keys: set[Key] = set()
        with asking(self.connection, self.path):
            for name, spec in {spec.id: spec for spec in specs}.items():
                self._mend(spec)
                keys |= {(name, int(seed)) for (seed,) in self._results("seed", name)}
        return keys

    def is_finished(self, spec: Spec, seed: int) -> bool:
        """Whether a trial has a result, as part of a transaction that the caller holds."""
        return self._results("1", spec.id, "AND seed = ?", (seed,)).fetchone() is not None

    def _results(self, columns: str, name: str, more: str = "", values: Sequence[Any] = ()) -> sqlite3.Cursor:
        """What counts as a result, wherever that is asked: sound, of today's numerics, and no crash."""
        query = f"SELECT {columns} FROM sound WHERE id = ? AND numerics = ? AND status <> 'crashed' {more}"
        return self.connection.execute(query, (name, NUMERICS_VERSION, *values))

    def _mend(self, spec: Spec) -> None:
        """Where a setting's row is damaged, write it anew: its trials need not be."""
        if not self.writing:
            return
        damaged = self.connection.execute(
            f"SELECT 1 FROM settings WHERE id = ? AND setting_checksum IS NOT row_checksum({SETTING_VALUES})",
            (spec.id,),
        ).fetchone()
        if damaged:
            warn_of_damage(f"the row of the setting {spec.id}")
            with transaction(self.connection):
                self._setting(spec)

    def get(self, spec: Spec, seed: int) -> Trial | None:
        """The trial of this spec and seed, or None."""
        return next(self.find("id = ? AND seed = ?", (spec.id, seed)), None)

    def outcomes(self, spec: Spec) -> dict[int, Trial]:
        """What is kept of a setting, by seed."""
        return {trial.seed: trial for trial in self.find("id = ?", (spec.id,))}

    def find(self, where: str = "1", values: Sequence[Any] = ()) -> Iterator[Trial]:
        """Trials of today's numerics that meet a condition on the columns of `sound`, in a fixed order."""
        for row in self.select(RECORD, f"({where}) AND numerics = ?", (*values, NUMERICS_VERSION), "canonical, seed"):
            yield read_trial(row)

    def select(
        self, columns: str, where: str, values: Sequence[Any] = (), order: str = "1"
    ) -> Iterator[tuple[Any, ...]]:
        """Columns of the sound trials that meet a condition, where a whole record is not needed."""
        with asking(self.connection, self.path):
            yield from self.connection.execute(f"SELECT {columns} FROM sound WHERE {where} ORDER BY {order}", values)

    def count(self, where: str = "1", values: Sequence[Any] = ()) -> int:
        """How many sound trials meet a condition."""
        with asking(self.connection, self.path):
            query = f"SELECT count(*) FROM sound WHERE ({where})"
            return int(self.connection.execute(query, values).fetchone()[0])

    def rows(self) -> int:
        """How many trials there are, damaged ones among them: none is looked at."""
        with sqlite_errors(self.path):
            return int(self.connection.execute("SELECT count(*) FROM trials").fetchone()[0])
