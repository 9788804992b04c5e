"""Taking care of a store: out to other formats, checked, cleared."""

import json
from collections.abc import Sequence
from pathlib import Path

from mnemoscope.files import whole_file
from mnemoscope.record import NUMERICS_VERSION
from mnemoscope.spec import KINDS, SpecError
from mnemoscope.store.schema import COLUMNS, FIELDS, told, transaction
from mnemoscope.store.table import condition, open_frame
from mnemoscope.store.trials import RECORD, Store, read_trial

FORMS = (".parquet", ".csv")


def export(store: Store, path: Path, words: Sequence[str] = ()) -> int:
    """One row a trial into a Parquet or CSV file; how many."""
    if path.suffix not in FORMS:
        raise SpecError("out", f"expected a file ending in {', '.join(FORMS)}, got {str(path)!r}")
    try:
        frame = open_frame(store, words)
        with whole_file(path) as part:
            if path.suffix == ".csv":
                frame.to_csv(part, index=False)
            else:
                # A step size is a number or the word `limit`: text, in a column of one kind.
                for name in ("eta", "gamma"):
                    frame[name] = frame[name].map(str, na_action="ignore")
                frame.to_parquet(part, index=False)
    except ImportError:
        raise SpecError(
            "out", "expected pandas and pyarrow, which are not installed: uv run --extra tables ..."
        ) from None
    return len(frame)


def verify(store: Store) -> tuple[int, list[str]]:
    """How many trials there are, and what is wrong with any of them or with the file."""
    faults = []
    with told(store.path):
        for (line,) in store.connection.execute("PRAGMA integrity_check"):
            if line != "ok":
                faults.append(f"file: {line}")
        for (setting,) in store.connection.execute(
            "SELECT DISTINCT setting FROM trials WHERE setting NOT IN (SELECT number FROM settings)"
        ):
            faults.append(f"trials of a setting that is not there: {setting}")
        for row in store.connection.execute(f"SELECT id, canonical, {COLUMNS} FROM settings"):
            faults += _check_setting(row[0], row[1], dict(zip(FIELDS, row[2:], strict=True)))
        for spec, seed, accuracy, status in store.connection.execute(
            "SELECT id, seed, accuracy, status FROM trials JOIN settings ON setting = number "
            "WHERE (accuracy < 0 OR accuracy > 1) "
            "OR (accuracy IS NULL AND status = 'ok') OR (accuracy NOT NULL AND status = 'crashed')"
        ):
            faults.append(f"{spec} seed {seed}: accuracy {accuracy} with status {status}")
        faults += _check_records(store)
        count = int(store.connection.execute("SELECT count(*) FROM trials").fetchone()[0])
    return count, faults


def _check_records(store: Store) -> list[str]:
    """Records that cannot be read, or whose accuracy is not that of their history."""
    faults = []
    rows = store.connection.execute(
        f"SELECT id, accuracy, {RECORD} FROM trials JOIN settings ON setting = number"
    )
    for name, accuracy, *row in rows:
        try:
            told = read_trial(tuple(row)).accuracy
        except (ValueError, KeyError, TypeError) as error:
            faults.append(f"{name} seed {row[1]}: a record that cannot be read ({error})")
            continue
        if told != accuracy and not (accuracy is None and told != told):  # kept as nothing: NaN
            faults.append(f"{name} seed {row[1]}: accuracy {accuracy} in a record of {told}")
    return faults


def _check_setting(name: str, canonical: str, columns: dict[str, object]) -> list[str]:
    try:
        values = json.loads(canonical)
        spec = KINDS[values.pop("kind")].read(values)
    except (ValueError, KeyError) as error:
        return [f"{name}: a setting that cannot be read ({error})"]
    if spec.id != name:
        return [f"{name}: a setting whose id is {spec.id}"]
    told = {key: value for key, value in spec.model_dump().items() if key in columns}
    # Without an MLP an id leaves out the activation, so the column may hold any.
    if columns.get("width") == 0:
        told["activation"] = columns.get("activation")
    if {key: value for key, value in columns.items() if value is not None} != {
        key: value for key, value in told.items() if value is not None
    }:
        return [f"{name}: columns that differ from the setting"]
    return []


def prune(store: Store, words: Sequence[str], *, old: bool, really: bool) -> int:
    """Remove trials that meet all conditions; how many. Without `really`, only count them."""
    if not words and not old:
        raise SpecError("where", "expected a condition, or --old, got none")
    where, values = condition(words)
    if old:
        where += f" AND numerics <> {NUMERICS_VERSION}"
    chosen = f"FROM trials JOIN settings ON setting = number WHERE {where}"
    with told(store.path), transaction(store.connection):
        count = int(store.connection.execute(f"SELECT count(*) {chosen}", values).fetchone()[0])
        if really:
            store.connection.execute(
                "DELETE FROM trials WHERE (setting, numerics, seed) IN "
                f"(SELECT setting, numerics, seed {chosen})",
                values,
            )
            store.connection.execute(
                "DELETE FROM settings WHERE number NOT IN (SELECT setting FROM trials)"
            )
    return count
