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
        """Close the file."""
        self.connection.close()

    def add(self, trials: Sequence[Trial]) -> None:
        """Write all of these trials or none of them.

        A stored trial is never overwritten, except that a result replaces a crash.
        """
        with sqlite_errors(self.path), transaction(self.connection):
            for trial in trials:
                self.write(trial)

    def write(self, trial: Trial) -> None:
        """Write one trial inside the caller's transaction."""
        number, row = self._setting(trial.spec), trial_row(trial)
        here, key = "setting = ? AND seed = ? AND numerics = ?", (number, *row[1:3])
        # The row with this key may be damaged, or belong to another setting.
        damaged = f"{here} AND (spec IS NOT ? OR trial_checksum IS NOT row_checksum({TRIAL_VALUES}))"
        self._move_damaged("trials", damaged, (*key, trial.spec.id))
        self.connection.execute(f"DELETE FROM trials WHERE {here} AND status = 'crashed'", key)
        self.connection.execute(
            f"INSERT INTO trials ({', '.join(TRIAL)}, trial_checksum, setting) VALUES ({'?, ' * len(row)}?) "
            "ON CONFLICT (setting, numerics, seed) DO NOTHING",
            (*row, number),
        )

    def _setting(self, spec: Spec) -> int:
        """The number of a setting's row. A missing or damaged row is written from the spec."""
        known: tuple[int, bool] | None = self.connection.execute(
            f"SELECT number, setting_checksum IS row_checksum({SETTING_VALUES}) FROM settings WHERE id = ?", (spec.id,)
        ).fetchone()
        number, sound = known or (None, False)
        if number is not None and sound:
            return number
        if number is not None:
            self._keep_damaged("settings", "number = ?", (number,))
        # The number stays, so that a damaged setting keeps its trials.
        row, names = setting_row(spec), (*SETTING, "setting_checksum")
        written = self.connection.execute(
            f"INSERT INTO settings (number, {', '.join(names)}) VALUES (?{', ?' * len(row)}) "
            f"ON CONFLICT (number) DO UPDATE SET {', '.join(f'{name} = excluded.{name}' for name in names)}",
            (number, *row),
        )
        return written.lastrowid or 0 if number is None else number

    def _keep_damaged(self, table: str, where: str, values: Sequence[Any]) -> None:
        """Copy damaged rows to the table `damaged`."""
        rows = self.connection.execute(f"SELECT * FROM {table} WHERE {where}", values)
        names = [column[0] for column in rows.description]
        for row in rows.fetchall():
            text = repr(dict(zip(names, row, strict=True)))
            self.connection.execute("INSERT INTO damaged VALUES (?, ?, ?)", (table, text, time.time()))

    def set_aside(self, table: str, key: tuple[Any, ...]) -> None:
        """Move a damaged row to the table `damaged`, inside the caller's transaction.

        A setting is rewritten from its canonical JSON if that is sound. Otherwise, while it has
        trials, its row keeps the id alone: the next query for the setting finds them again.
        """
        if table == "trials":
            self._move_damaged(table, "setting = ? AND numerics = ? AND seed = ?", key)
            return
        name, canonical = self.connection.execute("SELECT id, canonical FROM settings WHERE number = ?", key).fetchone()
        with suppress(*UNREADABLE):
            spec = read_setting(canonical)
            if spec.id == name:
                self._setting(spec)
                return
        if canonical == "":  # set aside earlier
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
        """The (spec id, seed) of these specs that have a result; a crash is not a result."""
        keys: set[Key] = set()
        with asking(self.connection, self.path):
            for name, spec in {spec.id: spec for spec in specs}.items():
                self._mend(spec)
                keys |= {(name, int(seed)) for (seed,) in self._results("seed", name)}
        return keys

    def is_finished(self, spec: Spec, seed: int) -> bool:
        """Whether a trial has a result, asked inside the caller's transaction."""
        return self._results("1", spec.id, "AND seed = ?", (seed,)).fetchone() is not None

    def _results(self, columns: str, name: str, more: str = "", values: Sequence[Any] = ()) -> sqlite3.Cursor:
        """Columns of a setting's results: sound trials of the current numerics that did not crash."""
        query = f"SELECT {columns} FROM sound WHERE id = ? AND numerics = ? AND status <> 'crashed' {more}"
        return self.connection.execute(query, (name, NUMERICS_VERSION, *values))

    def _mend(self, spec: Spec) -> None:
        """Rewrite a setting's damaged row; its trials may be sound."""
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
        """The trials of a setting, by seed."""
        return {trial.seed: trial for trial in self.find("id = ?", (spec.id,))}

    def find(self, where: str = "1", values: Sequence[Any] = ()) -> Iterator[Trial]:
        """Trials of the current numerics that meet a condition on the columns of `sound`, in a fixed order."""
        for row in self.select(RECORD, f"({where}) AND numerics = ?", (*values, NUMERICS_VERSION), "canonical, seed"):
            yield read_trial(row)

    def select(
        self, columns: str, where: str, values: Sequence[Any] = (), order: str = "1"
    ) -> Iterator[tuple[Any, ...]]:
        """Columns of the sound trials that meet a condition, without reading whole trials."""
        with asking(self.connection, self.path):
            yield from self.connection.execute(f"SELECT {columns} FROM sound WHERE {where} ORDER BY {order}", values)

    def count(self, where: str = "1", values: Sequence[Any] = ()) -> int:
        """How many sound trials meet a condition."""
        with asking(self.connection, self.path):
            query = f"SELECT count(*) FROM sound WHERE ({where})"
            return int(self.connection.execute(query, values).fetchone()[0])

    def rows(self) -> int:
        """How many trials the file holds, damaged ones included, without checking any."""
        with sqlite_errors(self.path):
            return int(self.connection.execute("SELECT count(*) FROM trials").fetchone()[0])
