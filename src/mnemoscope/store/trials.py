"""Writing trials and finding them again."""

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

from mnemoscope.engine.record import NUMERICS_VERSION, Outcome, Record, Trial
from mnemoscope.spec import Retrieval, Spec
from mnemoscope.store.rows import RECORD, SETTING, TRIAL, UNREADABLE, read_setting, read_trial, setting_row, trial_row
from mnemoscope.store.salvage import open_salvaged
from mnemoscope.store.schema import (
    SETTING_VALUES,
    TRIAL_VALUES,
    DamagedFileError,
    asking,
    connect,
    default_path,
    sqlite_errors,
    transaction,
    warn_of_damage,
)

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

    def add(self, trials: Sequence[Record]) -> None:
        """Write trials, all or none; once this returns they are kept.

        A trial that is there already stays as it is, unless it crashed: a crash is no result, and
        gives way to one.
        """
        with sqlite_errors(self.path), transaction(self.connection):
            for trial in trials:
                self.write(trial)

    def write(self, trial: Record) -> None:
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
        names = [*(f'"{name}"' for name in SETTING), "setting_checksum"]
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
            told = ", ".join(f"{name} = ?" for name in names)
            self.connection.execute(f"UPDATE settings SET {told} WHERE number = ?", (*row, number))
        return int(number)

    def _keep_damaged(self, table: str, where: str, values: Sequence[Any]) -> None:
        """Copy what is damaged to where it can be looked at."""
        rows = self.connection.execute(f"SELECT * FROM {table} WHERE {where}", values)
        names = [column[0] for column in rows.description]
        for row in rows.fetchall():
            told = repr(dict(zip(names, row, strict=True)))
            self.connection.execute("INSERT INTO damaged VALUES (?, ?, ?)", (table, told, time.time()))

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
        found: set[Key] = set()
        with asking(self.connection, self.path):
            for name, spec in {spec.id: spec for spec in specs}.items():
                self._mend(spec)
                rows = self.connection.execute(
                    "SELECT seed FROM sound WHERE id = ? AND numerics = ? AND status <> 'crashed'",
                    (name, NUMERICS_VERSION),
                )
                found |= {(name, int(seed)) for (seed,) in rows}
        return found

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

    def get(self, spec: Retrieval, seed: int) -> Trial | None:
        """The trial of this spec and seed, or None."""
        return next(self.find("id = ? AND seed = ?", (spec.id, seed)), None)

    def outcomes(self, spec: Spec) -> dict[int, Outcome]:
        """What was kept of a setting of another kind, by seed."""
        found = self._find("id = ?", (spec.id,))
        return {one.seed: one for one in found if isinstance(one, Outcome)}

    def find(self, where: str = "1", values: Sequence[Any] = ()) -> Iterator[Trial]:
        """Retrieval's trials of today's numerics that meet a condition, in a fixed order."""
        for one in self._find(where, values):
            if isinstance(one, Trial):
                yield one

    def accuracies(self, where: str, values: Sequence[Any]) -> Iterator[tuple[str, int, int, float]]:
        """Retrieval's accuracies alone, with their setting's id, samples and test samples."""
        with asking(self.connection, self.path):
            yield from self.connection.execute(
                f"SELECT id, samples, test_samples, accuracy FROM sound WHERE ({where}) "
                "AND kind = 'retrieval' AND numerics = ? AND accuracy IS NOT NULL "
                "ORDER BY samples, seed",
                (*values, NUMERICS_VERSION),
            )

    def _find(self, where: str, values: Sequence[Any]) -> Iterator[Record]:
        with asking(self.connection, self.path):
            rows = self.connection.execute(
                f"SELECT {RECORD} FROM sound WHERE ({where}) AND numerics = ? ORDER BY canonical, seed",
                (*values, NUMERICS_VERSION),
            )
            for row in rows:
                yield read_trial(row)

    def rows(self) -> int:
        """How many trials there are, damaged ones among them: none is looked at."""
        with sqlite_errors(self.path):
            return int(self.connection.execute("SELECT count(*) FROM trials").fetchone()[0])

    def count(self, where: str = "1", values: Sequence[Any] = ()) -> int:
        """How many sound trials meet a condition."""
        with asking(self.connection, self.path):
            query = f"SELECT count(*) FROM sound WHERE ({where})"
            return int(self.connection.execute(query, values).fetchone()[0])
