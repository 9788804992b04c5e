"""Salvage: the sound rows of a damaged file.

    trials.db           the damaged file, which is no longer written
    trials.db.salvaged  its sound rows, and everything computed since

Every command uses the second file until `store repair` puts it in the place of the first.
"""

import itertools
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from mnemoscope.engine.files import whole_file
from mnemoscope.spec import SpecError
from mnemoscope.store.migrations import LAYOUT_2, setting_from_2, trial_from_2
from mnemoscope.store.pages import all_rows
from mnemoscope.store.rows import KEY, LAYOUT, SETTING, TRIAL, UNREADABLE, Layout, checksum, read_setting, setting_row
from mnemoscope.store.schema import NOWHERE, Connection, DamagedFileError, connect, report_damage
from mnemoscope.store.sqlite import sqlite_errors, transaction


def _stored_order(layout: Layout) -> tuple[str, ...]:
    """The order of columns in a stored row of `trials`: the key, then the rest as declared, the checksum last."""
    rest = (name for name in layout.trial if name not in ("numerics", "seed", "spec"))
    return ("setting", "numerics", "seed", *rest, "spec", "trial_checksum")


class Salvaged(NamedTuple):
    """The sound rows of a file: values of SETTING and of TRIAL, each with its checksum."""

    settings: list[tuple[Any, ...]]
    trials: list[tuple[Any, ...]]


def salvage(*paths: Path) -> Salvaged:
    """Every row of damaged files whose checksum fits, in today's format."""
    settings: dict[str, tuple[Any, ...]] = {}
    trials: dict[tuple[Any, ...], tuple[Any, ...]] = {}
    for number, values in itertools.chain.from_iterable(map(all_rows, paths)):
        for layout in (LAYOUT, LAYOUT_2):
            row = _sound_trial(values, layout) if number is None else _sound_setting(values, layout)
            if row is None:
                continue
            if number is not None:
                settings[row[0]] = row
            else:
                key = row[: len(KEY)]
                trials[key] = max(trials.get(key, row), row, key=_worth)
    return Salvaged(list(settings.values()), list(trials.values()))


def _worth(row: tuple[Any, ...]) -> tuple[bool, float]:
    """Which of two rows of one trial to prefer: a result over a crash, then the later one."""
    named = dict(zip(TRIAL, row, strict=False))
    return named["status"] != "crashed", named["written"]


def _sound_setting(values: list[Any], layout: Layout) -> tuple[Any, ...] | None:
    """The row of a setting, if its checksum fits or its canonical JSON is that of its id."""
    if len(values) != len(layout.setting) + 2:
        return None
    _, *row, stored_checksum = values
    if stored_checksum == _text(checksum(*row)):
        plain = tuple(_plain(value) for value in row)
        return (*plain, _plain(stored_checksum)) if layout is LAYOUT else setting_from_2(plain)
    with suppress(*UNREADABLE):
        spec = read_setting(_plain(row[2]))
        if spec.id == _plain(row[0]):
            return setting_row(spec)
    return None


def _sound_trial(values: list[Any], layout: Layout) -> tuple[Any, ...] | None:
    """The row of a trial in the order of its layout, if its checksum fits."""
    names = _stored_order(layout)
    if len(values) != len(names):
        return None
    named = dict(zip(names, values, strict=True))
    for name in layout.reals:  # SQLite stores a whole number in a REAL column as an integer
        if isinstance(named[name], int):
            named[name] = float(named[name])
    row = [named[name] for name in layout.trial]
    if named["trial_checksum"] != _text(checksum(*row)):
        return None
    plain = tuple(_plain(value) for value in row)
    return (*plain, _plain(named["trial_checksum"])) if layout is LAYOUT else trial_from_2(plain)


def _text(value: str) -> bytes:
    return b"t" + value.encode()


def _plain(value: Any) -> Any:
    return value[1:].decode() if isinstance(value, bytes) else value


def write_salvaged(connection: Connection, salvaged: Salvaged) -> None:
    """Add rows to a store; existing rows stay as they are."""
    settings, trials = (*SETTING, "setting_checksum"), (*TRIAL, "trial_checksum")
    with transaction(connection):
        connection.executemany(
            f"INSERT OR IGNORE INTO settings ({', '.join(settings)}) VALUES ({', '.join('?' * len(settings))})",
            salvaged.settings,
        )
        # A setting whose row is lost is rewritten when it is next queried.
        connection.executemany(
            "INSERT OR IGNORE INTO settings (id, kind, canonical) VALUES (?, '', '')",
            [(spec,) for spec in {row[0] for row in salvaged.trials}],
        )
        connection.executemany(
            f"INSERT OR IGNORE INTO trials (setting, {', '.join(trials)}) "
            f"VALUES ((SELECT number FROM settings WHERE id = ?), {', '.join('?' * len(trials))})",
            [(row[0], *row) for row in salvaged.trials],
        )


def salvaged_path(path: Path) -> Path:
    """Where the sound rows of a damaged file go."""
    return path.with_name(path.name + ".salvaged")


def open_salvaged(path: Path, damage: DamagedFileError, *, writing: bool) -> tuple[Path, Connection]:
    """Open the sound rows of a damaged store; refuse a file that has none."""
    try:
        place = recover(path, damage)
    except SpecError:
        if writing:
            raise
        connection = connect(NOWHERE, writing=True)  # a folder that we may not write to
        write_salvaged(connection, _salvage_or(damage, path))
        connection.execute("PRAGMA query_only = ON")
        _report(path, damage, NOWHERE)
        return NOWHERE, connection
    connection = connect(place, writing=writing)
    if not place.exists():  # `store repair` was faster
        connection.close()
        return path, connect(path, writing=writing)
    _report(path, damage, place)
    return place, connection


def recover(path: Path, damage: DamagedFileError) -> Path:
    """A store of the sound rows of a damaged file, and of everything computed since."""
    place = salvaged_path(path)
    sources = [path]
    if place.exists():
        try:
            connect(place, writing=False).close()
            return place
        except DamagedFileError:  # it is damaged, too
            sources.append(move_aside(place))
    salvaged = _salvage_or(damage, *sources)
    # Another command may do the same at this moment: both use the file that is complete first.
    with whole_file(place, "store", new=True) as part, sqlite_errors(path):
        connection = connect(part, writing=True)
        write_salvaged(connection, salvaged)
        connection.execute("PRAGMA journal_mode = DELETE")  # a single file, which can be renamed
        connection.close()
    return place


def aside_path(path: Path) -> Path:
    """An unused name beside a damaged file."""
    places = (path.with_name(f"{path.name}.damaged-{k}") for k in itertools.count(1))
    return next(place for place in places if not place.exists())


def move_aside(path: Path) -> Path:
    """Rename a damaged file and its log."""
    aside = aside_path(path)
    move_log(path, aside)
    path.rename(aside)
    return aside


def move_log(path: Path, aside: Path) -> None:
    """Move the log along with a file: SQLite must not apply it to the file's replacement."""
    for ending in ("-wal", "-shm"):
        with suppress(FileNotFoundError):
            path.with_name(path.name + ending).rename(aside.with_name(aside.name + ending))


def _salvage_or(damage: DamagedFileError, *paths: Path) -> Salvaged:
    try:
        salvaged = salvage(*paths)
    except OSError:
        raise damage from None
    if not salvaged.settings and not salvaged.trials:
        raise damage
    return salvaged


def _report(path: Path, damage: DamagedFileError, place: Path) -> None:
    source = "read from memory" if place == NOWHERE else f"used from {place.name!r}"
    report_damage(
        f"{str(path)!r} is damaged ({damage.fault}); what is sound in it is {source}, until "
        "`mnemoscope store repair` puts it in order"
    )
