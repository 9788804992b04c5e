"""Taking what is sound out of a damaged file.

    trials.db           damaged: left where it is, and not written to any more
    trials.db.salvaged  what was sound in it, and everything that is computed from now on

Every command goes on with the second file, until `store repair` puts it in the place of the first.
"""

import itertools
import warnings
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from mnemoscope.engine.files import whole_file
from mnemoscope.spec import SpecError
from mnemoscope.store.pages import all_rows
from mnemoscope.store.rows import KEY, METRICS, SETTING, TRIAL, UNREADABLE, checksum, read_setting, setting_row
from mnemoscope.store.schema import (
    NOWHERE,
    Connection,
    DamagedFileError,
    DamagedStore,
    connect,
    sqlite_errors,
    transaction,
)

# How SQLite keeps a row of `trials`: its key first, then the rest as declared, the checksum last.
_KEPT = (
    "setting",
    "numerics",
    "seed",
    *(name for name in TRIAL if name not in ("numerics", "seed", "spec")),
    "spec",
    "trial_checksum",
)
_REALS = (*METRICS, "seconds", "written")


class Salvaged(NamedTuple):
    """The sound rows of a file: values of SETTING and of TRIAL, each with its checksum."""

    settings: list[tuple[Any, ...]]
    trials: list[tuple[Any, ...]]


def salvage(*paths: Path) -> Salvaged:
    """Every row of damaged files whose checksum fits."""
    settings: dict[str, tuple[Any, ...]] = {}
    trials: dict[tuple[Any, ...], tuple[Any, ...]] = {}
    for number, values in itertools.chain.from_iterable(map(all_rows, paths)):
        if number is not None and len(values) == len(SETTING) + 2:
            for row in _sound_setting(values[1:]):
                settings[row[0]] = row
        elif number is None and len(values) == len(_KEPT):
            row = _ordered(values)
            if row is not None:
                key = row[: len(KEY)]
                trials[key] = max(trials.get(key, row), row, key=_worth)
    return Salvaged(list(settings.values()), list(trials.values()))


def _worth(row: tuple[Any, ...]) -> tuple[bool, float]:
    """Of two rows of one trial, a result counts more than a crash, and the later one more."""
    kept = dict(zip(TRIAL, row, strict=False))
    return kept["status"] != "crashed", kept["written"]


def _sound_setting(values: list[Any]) -> Iterator[tuple[Any, ...]]:
    """The row of a setting, if its checksum fits or its canonical JSON is that of its id."""
    if values[-1] == _text(checksum(*values[:-1])):
        yield tuple(_plain(value) for value in values)
        return
    try:
        spec = read_setting(_plain(values[2]))
        if spec.id == _plain(values[0]):
            yield setting_row(spec)
    except UNREADABLE:
        return


def _ordered(values: list[Any]) -> tuple[Any, ...] | None:
    """The row of a trial in TRIAL's order, if its checksum fits."""
    kept = dict(zip(_KEPT, values, strict=True))
    for name in _REALS:  # SQLite keeps a whole number as an integer, and reads it as a real one
        if isinstance(kept[name], int):
            kept[name] = float(kept[name])
    row = [kept[name] for name in TRIAL]
    if kept["trial_checksum"] != _text(checksum(*row)):
        return None
    return (*(_plain(value) for value in row), _plain(kept["trial_checksum"]))


def _text(value: str) -> bytes:
    return b"t" + value.encode()


def _plain(value: Any) -> Any:
    return value[1:].decode() if isinstance(value, bytes) else value


def write_salvaged(connection: Connection, found: Salvaged) -> None:
    """Add rows to a store; those that it has already stay as they are."""
    names = {
        name: [f'"{one}"' for one in (*columns, f"{name}_checksum")]
        for name, columns in (("setting", SETTING), ("trial", TRIAL))
    }
    marks = {name: ", ".join("?" * len(columns)) for name, columns in names.items()}
    with transaction(connection):
        connection.executemany(
            f"INSERT OR IGNORE INTO settings ({', '.join(names['setting'])}) VALUES ({marks['setting']})",
            found.settings,
        )
        # A setting whose own row is lost is written anew when it is asked for again.
        connection.executemany(
            "INSERT OR IGNORE INTO settings (id, kind, canonical) VALUES (?, '', '')",
            [(spec,) for spec in {row[0] for row in found.trials}],
        )
        connection.executemany(
            f"INSERT OR IGNORE INTO trials (setting, {', '.join(names['trial'])}) "
            f"VALUES ((SELECT number FROM settings WHERE id = ?), {marks['trial']})",
            [(row[0], *row) for row in found.trials],
        )


def salvaged_path(path: Path) -> Path:
    """Where the sound part of a damaged file is kept."""
    return path.with_name(path.name + ".salvaged")


def open_salvaged(path: Path, damage: DamagedFileError, *, writing: bool) -> tuple[Path, Connection]:
    """The sound part of a damaged store, to go on with; a file without any is refused."""
    try:
        place = recover(path, damage)
    except SpecError:
        if writing:
            raise
        connection = connect(NOWHERE, writing=True)  # a folder that is closed to us
        write_salvaged(connection, _salvage_or(damage, path))
        connection.execute("PRAGMA query_only = ON")
        _warn(path, damage, NOWHERE)
        return NOWHERE, connection
    connection = connect(place, writing=writing)
    if not place.exists():  # `store repair` was faster
        connection.close()
        return path, connect(path, writing=writing)
    _warn(path, damage, place)
    return place, connection


def recover(path: Path, damage: DamagedFileError) -> Path:
    """A sound store of what is sound in a damaged file, and of what was computed since."""
    place = salvaged_path(path)
    sources = [path]
    if place.exists():
        try:
            connect(place, writing=False).close()
            return place
        except DamagedFileError:  # that one, too
            sources.append(move_aside(place))
    found = _salvage_or(damage, *sources)
    # Another command may be at the same: the first one's file is that of both.
    with whole_file(place, "store", new=True) as part, sqlite_errors(path):
        connection = connect(part, writing=True)
        write_salvaged(connection, found)
        connection.execute("PRAGMA journal_mode = DELETE")  # one file, to be put in place
        connection.close()
    return place


def aside_path(path: Path) -> Path:
    """A name beside a file under which nothing is kept yet."""
    places = (path.with_name(f"{path.name}.damaged-{k}") for k in itertools.count(1))
    return next(place for place in places if not place.exists())


def move_aside(path: Path) -> Path:
    """Give a damaged file another name, with its log."""
    aside = aside_path(path)
    move_log(path, aside)
    path.rename(aside)
    return aside


def move_log(path: Path, aside: Path) -> None:
    """Take the log away from a file, which must not be applied to what comes in its place."""
    for ending in ("-wal", "-shm"):
        with suppress(FileNotFoundError):
            path.with_name(path.name + ending).rename(aside.with_name(aside.name + ending))


def _salvage_or(damage: DamagedFileError, *paths: Path) -> Salvaged:
    try:
        found = salvage(*paths)
    except OSError:
        raise damage from None
    if not found.settings and not found.trials:
        raise damage
    return found


def _warn(path: Path, damage: DamagedFileError, place: Path) -> None:
    kept = "read from memory" if place == NOWHERE else f"used from {place.name!r}"
    warnings.warn(
        f"{str(path)!r} is damaged ({damage.fault}); what is sound in it is {kept}, until "
        "`mnemoscope store repair` puts it in order",
        DamagedStore,
        stacklevel=4,
    )
