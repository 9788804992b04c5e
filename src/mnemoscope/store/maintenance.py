"""Maintenance of a store: export, verify, repair and prune."""

import hashlib
import os
import shutil
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

from mnemoscope.engine.extras import need
from mnemoscope.engine.files import check_place, check_target, whole_file
from mnemoscope.engine.record import NUMERICS_VERSION
from mnemoscope.spec import SpecError
from mnemoscope.store.query import condition, open_frame
from mnemoscope.store.rows import RECORD, UNREADABLE, read_setting, read_trial
from mnemoscope.store.salvage import aside_path, move_log, recover, salvage, write_salvaged
from mnemoscope.store.schema import DamagedFileError, asking, connect, unreported
from mnemoscope.store.sqlite import sqlite_errors, transaction
from mnemoscope.store.tables import SETTING_VALUES, TRIAL_VALUES
from mnemoscope.store.trials import Store

FORMS = (".parquet", ".csv")


def export(store: Store, path: Path, words: Sequence[str] = ()) -> int:
    """Write one row per trial to a Parquet or CSV file, and return how many."""
    if path.suffix not in FORMS:
        raise SpecError("", f"expected a file ending in {', '.join(FORMS)}, got {str(path)!r}")
    need("tables", "pandas", *(["pyarrow"] if path.suffix == ".parquet" else []))
    check_target(path, "")
    frame = open_frame(store, words)
    with whole_file(path, "") as part:
        if path.suffix == ".csv":
            frame.to_csv(part, index=False)
        else:
            # A step size is a number or the word `limit`, and a Parquet column has one type: text.
            for name in ("eta", "gamma"):
                frame[name] = frame[name].map(str, na_action="ignore")
            frame.to_parquet(part, index=False)
    return len(frame)


def verify(store: Store) -> tuple[int, list[str]]:
    """The number of sound trials, and the faults of all other rows and of the file."""
    faults = [] if store.damage is None else [f"file: {store.damage}"]
    with sqlite_errors(store.path):
        for (line,) in store.connection.execute("PRAGMA integrity_check"):
            if line != "ok":
                faults.append(f"file: {line}")
        faults += [fault for _, _, fault in damaged_rows(store)]
        with unreported():  # they are among the faults
            count = store.count()
    return count, faults


def damaged_rows(store: Store) -> Iterator[tuple[str, tuple[Any, ...], str]]:
    """Table, key and fault of every row that is damaged or inconsistent."""
    connection = store.connection
    unreadable: set[int] = set()
    for number, name, canonical, fits in connection.execute(
        f"SELECT number, id, canonical, setting_checksum IS row_checksum({SETTING_VALUES}) FROM settings"
    ):
        if canonical == "":
            fault = "its row was lost; its trials are found again when it is asked for"
        else:
            fault = "damaged" if not fits else _setting_fault(name, canonical)
        if fault is None or fault:
            unreadable.add(number)
        if fault:
            yield "settings", (number,), f"the setting {name}: {fault}"
    for setting, numerics, seed, name, own, fits, *row in connection.execute(
        f"SELECT setting, numerics, trials.seed, trials.spec, id, "
        f"trial_checksum IS row_checksum({TRIAL_VALUES}), accuracy, {RECORD} "
        "FROM trials LEFT JOIN settings ON setting = number"
    ):
        if not fits:
            fault = "damaged"
        elif own is None:
            fault = "its setting is not there"
        elif own != name:
            fault = f"kept under the setting {own}"
        elif setting in unreadable:  # a fault of the setting, not of the trial
            fault = ""
        else:
            fault = _trial_fault(row[0], tuple(row[1:]))
        if fault:
            yield "trials", (setting, numerics, seed), f"{name} seed {seed}: {fault}"


def _setting_fault(name: str, canonical: str) -> str | None:
    """What is wrong with a setting whose checksum fits; None if it cannot be read but its id fits.

    Its kind, law or activation may be registered by a package that is not imported here.
    """
    try:
        own = read_setting(canonical).id
    except UNREADABLE as error:
        id_fits = hashlib.sha256(canonical.encode()).hexdigest()[:16] == name
        return None if id_fits else f"cannot be read ({error})"
    return "" if own == name else f"its id should be {own}"


def _trial_fault(accuracy: float | None, row: tuple[Any, ...]) -> str:
    """What is wrong with a record whose checksum fits: unreadable, or an accuracy that is not that of its history."""
    try:
        trial = read_trial(row)
    except UNREADABLE as error:
        return f"cannot be read ({error})"
    reached = trial.accuracy
    if reached != accuracy and not (accuracy is None and reached != reached):  # NaN is kept as None
        return f"accuracy {accuracy} in a record of {reached}"
    if accuracy is not None and not 0 <= accuracy <= 1:
        return f"accuracy {accuracy}"
    return ""


class Repair(NamedTuple):
    """The result of a repair: the number of sound trials, the faults, and where a damaged file went."""

    trials: int
    faults: list[str]
    moved: Path | None


def repair(path: Path) -> Repair:
    """Move damaged rows or a damaged file aside, and keep everything sound in place."""
    check_place(path, "store")
    if not path.exists():
        raise SpecError("store", f"expected a store that is there, got {str(path)!r}")
    moved, lost = _replace_file(path)
    with unreported(), Store(path) as store, sqlite_errors(path), transaction(store.connection):
        rows = list(damaged_rows(store))
        # Trials before their settings.
        for table, key, _ in sorted(rows, key=lambda row: row[0], reverse=True):
            store.set_aside(table, key)
        return Repair(store.count(), lost + [fault for _, _, fault in rows], moved)


def _replace_file(path: Path) -> tuple[Path | None, list[str]]:
    """Replace a damaged file by a store of its sound rows. Returns the damaged file's new path, and the faults.

    At every moment there is a store at the path: the damaged one or the sound one.
    """
    try:
        with closing(connect(path, writing=False)) as connection, sqlite_errors(path):
            # Opening a large file does not check all of it.
            fault = connection.execute("PRAGMA integrity_check(1)").fetchone()[0]
        if fault != "ok":
            raise DamagedFileError(path, fault)
    except DamagedFileError as damage:
        sound = recover(path, damage)
        with closing(connect(sound, writing=True)) as connection:
            write_salvaged(connection, salvage(path))  # add sound rows that it does not have yet
            _lock(connection, sound)
            aside = aside_path(path)
            move_log(path, aside)
            try:
                os.link(path, aside)
            except OSError:  # a file system without links
                shutil.copy2(path, aside)
            sound.replace(path)
        return aside, [f"file: {damage.fault}"]
    return None, []


def _lock(connection: sqlite3.Connection, path: Path) -> None:
    """Empty the log and lock the file until the connection closes.

    A process with the old file open would write results that nobody reads.
    """
    try:
        connection.execute("PRAGMA busy_timeout = 2000")
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        connection.execute("PRAGMA journal_mode = DELETE")
        connection.execute("BEGIN EXCLUSIVE")
        connection.execute("COMMIT")
    except sqlite3.OperationalError:
        raise SpecError(
            "store", f"expected that nobody works with {str(path)!r}, got another command: try again when it is done"
        ) from None


def prune(store: Store, words: Sequence[str], *, old: bool, really: bool) -> int:
    """Remove the trials that meet all conditions and return how many; without `really`, only count."""
    if not words and not old:
        raise SpecError("where", "expected a condition, or --old, got none")
    where, values = condition(words, store)
    if old:
        where += f" AND numerics <> {NUMERICS_VERSION}"
    chosen = f"FROM sound WHERE {where}"
    with asking(store.connection, store.path), transaction(store.connection):
        count = int(store.connection.execute(f"SELECT count(*) {chosen}", values).fetchone()[0])
        if really:
            store.connection.execute(
                f"DELETE FROM trials WHERE (setting, numerics, seed) IN (SELECT setting, numerics, seed {chosen})",
                values,
            )
            store.connection.execute("DELETE FROM settings WHERE number NOT IN (SELECT setting FROM trials)")
    return count
