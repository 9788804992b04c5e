"""Write trials and query them."""

import json
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

from mnemoscope.engine.record import NUMERICS_VERSION, AnyJob, Trial
from mnemoscope.spec import Spec
from mnemoscope.store.rows import RECORD, SETTING, TRIAL, UNREADABLE, read_setting, read_trial, setting_row, trial_row
from mnemoscope.store.salvage import open_salvaged
from mnemoscope.store.schema import DamagedFileError, asking, connect, default_path, report_damage
from mnemoscope.store.sqlite import sqlite_errors, transaction
from mnemoscope.store.tables import SETTING_VALUES, TRIAL_VALUES


class Store:
    """An open store.

    Ask it for jobs (`get`, `finished`), or for whatever meets a condition (`find`, `select`, `count`).

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

    def __repr__(self) -> str:
        return f"Store({str(self.path)!r}: {self.count(checked=False):,} trials)"

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
        """The number of a setting's row; a missing or damaged row is written from the spec."""
        row: tuple[int, bool] | None = self.connection.execute(
            f"SELECT number, setting_checksum IS row_checksum({SETTING_VALUES}) FROM settings WHERE id = ?", (spec.id,)
        ).fetchone()
        number, sound = row or (None, False)
        if number is not None and sound:
            return number
        if number is not None:
            self._keep_damaged("settings", "number = ?", (number,))
        # The number stays, so that a damaged setting keeps its trials.
        values, names = setting_row(spec), (*SETTING, "setting_checksum")
        written = self.connection.execute(
            f"INSERT INTO settings (number, {', '.join(names)}) VALUES (?{', ?' * len(values)}) "
            f"ON CONFLICT (number) DO UPDATE SET {', '.join(f'{name} = excluded.{name}' for name in names)}",
            (number, *values),
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

    def get(self, jobs: Sequence[AnyJob]) -> dict[AnyJob, Trial]:
        """The trials of these jobs, crashes included; a job without a trial is left out."""
        rows = dict(self._rows_of(jobs, RECORD))
        return {job: read_trial(rows[job]) for job in jobs if job in rows}

    def finished(self, jobs: Sequence[AnyJob]) -> set[AnyJob]:
        """Those of these jobs that have a result; a crash is not a result."""
        return {job for job, _ in self._rows_of(jobs, "1", "status <> 'crashed'")}

    def find(self, where: str = "1", values: Sequence[Any] = ()) -> Iterator[Trial]:
        """Trials of the current numerics that meet a condition on the columns of `sound`, in a fixed order."""
        for row in self.select(RECORD, f"({where}) AND numerics = ?", (*values, NUMERICS_VERSION), "canonical, seed"):
            yield read_trial(row)

    def select(
        self, columns: str, where: str = "1", values: Sequence[Any] = (), order: str = "1"
    ) -> Iterator[tuple[Any, ...]]:
        """Columns of the sound trials that meet a condition, without reading whole trials."""
        with asking(self.connection, self.path):
            yield from self.connection.execute(f"SELECT {columns} FROM sound WHERE {where} ORDER BY {order}", values)

    def count(self, where: str = "1", values: Sequence[Any] = (), *, checked: bool = True) -> int:
        """How many trials meet a condition; unchecked, it includes damaged ones and is much faster."""
        with asking(self.connection, self.path):
            query = f"SELECT count(*) FROM {'sound' if checked else 'kept'} WHERE {where}"
            return int(self.connection.execute(query, values).fetchone()[0])

    def _rows_of(
        self, jobs: Sequence[AnyJob], columns: str, where: str = "1"
    ) -> Iterator[tuple[AnyJob, tuple[Any, ...]]]:
        """The jobs that have a trial, each with columns of it, in one query."""
        wanted = {(spec.id, seed): (spec, seed) for spec, seed in jobs}
        specs = {spec.id: spec for spec, _ in jobs}
        ids, seeds = json.dumps([*specs]), json.dumps([*{seed for _, seed in jobs}])
        self._mend(specs, ids)
        # The query finds every pair of these settings and seeds, of which the jobs may be a part.
        listed = "IN (SELECT value FROM json_each(?))"
        where = f"id {listed} AND numerics = ? AND seed {listed} AND {where}"
        for name, seed, *row in self.select(f"id, seed, {columns}", where, (ids, NUMERICS_VERSION, seeds)):
            if (name, seed) in wanted:
                yield wanted[name, seed], tuple(row)

    def _mend(self, specs: dict[str, Spec], ids: str) -> None:
        """Rewrite the damaged rows of these settings; their trials may be sound."""
        if not self.writing:
            return
        with sqlite_errors(self.path):
            damaged = self.connection.execute(
                "SELECT id FROM settings WHERE id IN (SELECT value FROM json_each(?)) "
                f"AND setting_checksum IS NOT row_checksum({SETTING_VALUES})",
                (ids,),
            ).fetchall()
            for (name,) in damaged:
                report_damage(f"the row of the setting {name} is damaged, and written again")
                with transaction(self.connection):
                    self._setting(specs[name])
