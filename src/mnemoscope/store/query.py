"""The store as tables: settings with their means, and frames of trials with labelled axes."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from mnemoscope.engine.extras import need
from mnemoscope.spec import KINDS, SpecError
from mnemoscope.store.rows import FIELDS, METRICS
from mnemoscope.store.schema import COLUMNS, asking
from mnemoscope.store.trials import Store

if TYPE_CHECKING:
    import pandas
    import xarray


# What the trainings of other kinds tell besides METRICS, and where it stands in a record's history.
OTHER_METRICS = {
    metric: f"CASE WHEN json_valid(history) THEN json_extract(history, '$.metrics.{name}') END"
    for metric, name in (("steps_taken", "steps"), ("relation_accuracy", "relation_accuracy"))
}


def other_fields() -> dict[str, str]:
    """Fields that only other kinds than retrieval have, each as an expression of SQL.

    They stand in the canonical JSON, which leaves out what is at its default.
    """
    made: dict[str, str] = {}
    for kind, spec in KINDS.items():
        for name, field in spec.model_fields.items():
            if name not in FIELDS:
                # A damaged row may be looked at before its checksum is.
                text = "CASE WHEN json_valid(canonical) THEN canonical ELSE '{}' END"
                value = f"json_extract({text}, '$.{name}')"
                if not field.is_required():
                    value = f"coalesce({value}, {field.default!r})"
                made[name] = made.get(name, "CASE kind") + f" WHEN '{kind}' THEN {value}"
    return {name: f"{value} END" for name, value in made.items()}


def condition(words: Sequence[str]) -> tuple[str, list[Any]]:
    """`vocab=512`, `kind=facts`, `status=ok` and the like as a condition on columns.

    Names are checked against the columns and values are handed to SQLite as values, so that no
    text of the user's becomes part of a statement.
    """
    own = ("kind", *FIELDS, *METRICS, "status", "seed", "id", "numerics", "device", "precision")
    known = {name: f'"{name}"' for name in own} | other_fields() | OTHER_METRICS
    parts, values = ["1"], []
    for word in words:
        for sign in (">=", "<=", "!=", "=", ">", "<"):
            name, found, value = word.partition(sign)
            if found:
                break
        else:
            raise SpecError("where", f"expected a condition such as vocab=512, got {word!r}")
        name = name.strip().replace("-", "_")
        if name not in known:
            raise SpecError("where", f"expected one of {', '.join(known)}, got {name!r}")
        # SQLite puts a plain value in place of the column everywhere, in what is checked too.
        parts.append(f"{known[name]} {sign} (SELECT ?)")
        values.append(_value(value.strip()))
    return " AND ".join(parts), values


def _value(text: str) -> Any:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def list_settings(store: Store, words: Sequence[str] = (), most: int = 100) -> list[dict[str, Any]]:
    """One row a setting: its sizes, how many trials of each status, and the mean accuracy."""
    where, values = condition(words)
    # Checking rows takes a while: only those of settings that are shown are looked at.
    query = f"""
        SELECT id, canonical, numerics, count(*), sum(status = 'ok'), sum(status = 'crashed'),
               avg(accuracy), min(accuracy), max(accuracy), sum(seconds)
        FROM sound WHERE number IN (
            SELECT number FROM settings JOIN trials ON setting = number WHERE {where}
            GROUP BY number ORDER BY vocab, dim, length, samples LIMIT ?
        ) AND {where} GROUP BY number, numerics
        ORDER BY vocab, dim, length, samples LIMIT ?
    """
    names = ("id", "canonical", "numerics", "trials", "ok", "crashed", "accuracy", "least", "largest", "seconds")
    with asking(store.connection, store.path):
        rows = store.connection.execute(query, (*values, most, *values, most)).fetchall()
    return [dict(zip(names, row, strict=True)) for row in rows]


def open_frame(store: Store, words: Sequence[str] = ()) -> "pandas.DataFrame":
    """One row a trial: the whole spec, seed, status, every metric, and how it was computed.

    What only other kinds have makes columns where there are such trials.
    """
    need("tables", "pandas")
    import pandas

    where, values = condition(words)
    others = other_fields() | OTHER_METRICS
    also = ", ".join(f'{value} AS "{name}"' for name, value in others.items())
    query = (
        f"SELECT id, kind, {COLUMNS}, {also}, seed, numerics, status, {', '.join(METRICS)}, "
        "seconds, message, precision, device, versions, written "
        f"FROM sound WHERE {where} ORDER BY id, numerics, seed"
    )
    with asking(store.connection, store.path):
        rows = store.connection.execute(query, values)
        names = [column[0] for column in rows.description]
        frame = pandas.DataFrame(rows.fetchall(), columns=names)
    return frame.drop(columns=[*others.keys() & set(frame.columns[frame.isna().all()])])


def open_array(
    store: Store, axes: Sequence[str], words: Sequence[str] = (), metric: str = "accuracy"
) -> "xarray.DataArray":
    """A metric over the named axes and seeds, NaN where there is no trial."""
    need("tables")
    frame = open_frame(store, words)
    index = [*axes, "seed"]
    unknown = [name for name in index if name not in frame.columns]
    if unknown:
        raise SpecError("axes", f"expected fields of a spec, got {unknown[0]!r}")
    twice = frame[frame.duplicated(index)]
    if len(twice):
        raise SpecError("axes", f"expected axes that tell trials apart, got {len(twice)} that share a place")
    return frame.set_index(index)[metric].to_xarray()
