"""Tables from the store: settings with their means, and trials as data frames and labelled arrays."""

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from mnemoscope.engine.extras import need
from mnemoscope.spec import Retrieval, SpecError
from mnemoscope.store.schema import asking
from mnemoscope.store.tables import METRICS, field_columns, json_value
from mnemoscope.store.trials import Store

if TYPE_CHECKING:
    import pandas
    import xarray


# Metrics that a table always has.
ALWAYS = ("accuracy", "attention_accuracy", "recall", "map_accuracy", "signal", "std", "loss")
# Columns of conditions besides the fields of specs and the metrics of trials.
_COLUMNS = ("kind", "status", "seed", "id", "numerics", "device", "precision", "accuracy")


def condition(words: Sequence[str], store: Store | None = None) -> tuple[str, list[Any]]:
    """`vocab=512`, `kind=facts`, `status=ok` and the like as an SQL condition and its values.

    With a store, metrics that only some kind of trial has are known, too. Names are checked against the columns, and
    values are bound, so that no text from the user becomes part of a statement.
    """
    known = {name: f'"{name}"' for name in (*_COLUMNS, *field_columns(), *METRICS)}
    parts, values = ["1"], []
    for word in words:
        name, sign, value = _split(word)
        if name not in known and store is not None and name.isidentifier():
            metric = json_value("metrics", name)
            if store.count(f"number IN (SELECT number FROM kept WHERE {metric} IS NOT NULL LIMIT 1)"):
                known[name] = metric
        if name not in known:
            raise SpecError("where", f"expected one of {', '.join(known)}, got {name!r}")
        # SQLite would substitute a plain value for the column everywhere, in the checks too.
        parts.append(f"{known[name]} {sign} (SELECT ?)")
        values.append(_value(value.strip()))
    return " AND ".join(parts), values


def _split(word: str) -> tuple[str, str, str]:
    """A condition's name, sign and value."""
    for sign in (">=", "<=", "!=", "=", ">", "<"):
        name, present, value = word.partition(sign)
        if present:
            return name.strip().replace("-", "_"), sign, value
    raise SpecError("where", f"expected a condition such as vocab=512, got {word!r}")


def _value(text: str) -> Any:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def list_settings(store: Store, words: Sequence[str] = (), most: int = 100) -> list[dict[str, Any]]:
    """One row per setting: its sizes, the number of trials of each status, and the mean accuracy."""
    where, values = condition(words, store)
    # Checking rows takes a while: check only those of the settings that are shown.
    query = f"""
        SELECT id, canonical, numerics, count(*), sum(status = 'ok'), sum(status = 'crashed'),
               avg(accuracy), min(accuracy), max(accuracy), sum(seconds)
        FROM sound WHERE number IN (
            SELECT number FROM kept WHERE {where}
            GROUP BY number ORDER BY vocab, dim, length, samples LIMIT ?
        ) AND {where} GROUP BY number, numerics
        ORDER BY vocab, dim, length, samples LIMIT ?
    """
    names = ("id", "canonical", "numerics", "trials", "ok", "crashed", "accuracy", "least", "largest", "seconds")
    with asking(store.connection, store.path):
        rows = store.connection.execute(query, (*values, most, *values, most)).fetchall()
    return [dict(zip(names, row, strict=True)) for row in rows]


def count_settings(store: Store, words: Sequence[str] = ()) -> int:
    """How many settings have trials that meet the conditions."""
    where, values = condition(words, store)
    with asking(store.connection, store.path):
        query = f"SELECT count(DISTINCT number) FROM kept WHERE {where}"
        return int(store.connection.execute(query, values).fetchone()[0])


def open_frame(store: Store, words: Sequence[str] = ()) -> "pandas.DataFrame":
    """One row per trial: the whole spec, seed, status, every metric, and how it was computed.

    Fields and metrics of kinds other than retrieval have columns only if there are such trials.
    """
    need("tables", "pandas")
    import pandas

    where, values = condition(words, store)
    fields = [*field_columns()]
    columns = ["id", "kind", *fields, "seed", "numerics", "status", "metrics", "seconds", "message", "precision"]
    columns += ["device", "versions", "code", "written"]
    quoted = ", ".join(f'"{name}"' for name in columns)
    frame = pandas.DataFrame(store.select(quoted, where, values, "id, numerics, seed"), columns=columns)
    metrics = pandas.DataFrame([json.loads(text) for text in frame["metrics"]], index=frame.index)
    metrics = metrics.rename(columns={metric: name for name, metric in METRICS.items()})
    metrics = metrics.reindex(columns=[*dict.fromkeys((*ALWAYS, *metrics.columns))])
    at = columns.index("metrics")
    frame = pandas.concat([frame.iloc[:, :at], metrics, frame.iloc[:, at + 1 :]], axis=1)
    always = {*Retrieval.model_fields, *ALWAYS}
    empty = frame.columns[frame.isna().all()]
    return frame.drop(columns=[name for name in (*fields, *metrics) if name in empty and name not in always])


def open_array(
    store: Store, axes: Sequence[str], words: Sequence[str] = (), metric: str = "accuracy"
) -> "xarray.DataArray":
    """A metric over the named axes and seeds; NaN where there is no trial."""
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
