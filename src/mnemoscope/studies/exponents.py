"""Critical values over a grid of settings, pooled over base seeds, and their exponents beside theory's."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from mnemoscope.experiments.critical import Along, SearchOptions, critical_many
from mnemoscope.experiments.estimate.estimate import Estimate
from mnemoscope.experiments.estimate.power_law import Points, condition_number, fit_power_law, points_of, prefer_product
from mnemoscope.experiments.fit import fit
from mnemoscope.spec import LETTERS, Retrieval
from mnemoscope.spec.validators import Measure
from mnemoscope.studies.base import Bench, Numbers
from mnemoscope.studies.panels import draw_estimates
from mnemoscope.studies.rival_laws import VALUES, say_powers
from mnemoscope.ui.figures.canvas import plain_log_ticks

Axes = Sequence[tuple[str, Sequence[int]]]
Point = dict[str, Any]


@dataclass(frozen=True)
class Grid:
    """The settings that a study measures at one size, and how precise its searches are."""

    axes: Axes
    base: Mapping[str, Any] = field(default_factory=dict)
    tolerance: float = 0.1
    most_seeds: int = 32


def search_on(bench: Bench, tolerance: float = 0.1, most_seeds: int = 32) -> SearchOptions:
    """How a study searches for crossings: from its first seed, with its tools."""
    return {"tolerance": tolerance, "most_seeds": most_seeds, "first_seed": bench.seed, "tools": bench.tools}


def measure_exponents(bench: Bench, grid: Grid, measure: Measure = "accuracy", log_of: str | None = None) -> Numbers:
    """The critical N at every point of the grid, and the powers of the axes in it."""
    search = search_on(bench, grid.tolerance, grid.most_seeds)
    scaling = fit(dict(grid.base), grid.axes, "samples", measure=measure, log_of=log_of, **search).as_dict()
    theory = {row["axis"]: row["value"] for row in scaling["predicted"] or ()}
    forms = scaling["forms"]
    return {
        "exponents": [{**row, "predicted": theory.get(row["axis"])} for row in scaling["exponents"]],
        "forms": None if forms is None else forms["verdict"],
        "criterion": None if forms is None else forms["criterion"],
        "log_of": log_of,
        "points": scaling["points"],
        "left_out": len(scaling["left_out"]),
    }


def pool_points(bases: Sequence[Sequence[Point]], by: Sequence[str], value: str) -> list[Point]:
    """One point for each place, from the points of all base seeds there.

    `by` names the keys that identify a place. The logarithms of `value` are averaged with the weights that their 95 %
    intervals, `low` to `high`, give; other keys are those of the first point. Points without an estimate are left out.
    A law is then fitted to places and not to single estimates, since its misfit at a place is the same for every base
    seed.
    """
    places: dict[tuple[Any, ...], list[Point]] = {}
    for point in (point for points in bases for point in points):
        if point[value] and point["low"] and point["high"]:
            places.setdefault(tuple(point[name] for name in by), []).append(point)
    return [_pool(points, value) for points in places.values()]


def _pool(points: Sequence[Point], value: str) -> Point:
    errors = [max(math.log(point["high"] / point["low"]) / (2 * 1.96), 1e-4) for point in points]
    weights = [1 / error**2 for error in errors]
    total = math.fsum(weights)
    logs = [math.log(point[value]) for point in points]
    mean = math.fsum(w * log for w, log in zip(weights, logs, strict=True)) / total
    reach = 1.96 / math.sqrt(total)
    return {**points[0], value: math.exp(mean), "low": math.exp(mean - reach), "high": math.exp(mean + reach)}


def fit_pooled(bases: Sequence[Numbers], value: str = "samples") -> Numbers:
    """The powers in a measured value, from one fit to the pooled points of all base seeds.

    The result is like the numbers of one base seed, without the comparison of forms. Theory's powers come from its own
    values at the same places, with the same weights.
    """
    axes, log_of = [row["axis"] for row in bases[0]["exponents"]], bases[0].get("log_of")
    pooled = pool_points([numbers["points"] for numbers in bases], axes, value)
    unknown = dict.fromkeys(("value", "low", "high", "error", "predicted"))
    rows = [{"axis": axis, **unknown} for axis in axes]
    points = points_in(axes, pooled, value, log_of)
    if len(pooled) >= len(axes) + 2 and math.isfinite(condition_number(points.x)):
        rows = [{**asdict(power), "predicted": None} for power in fit_power_law(points).exponents]
        if all(point["predicted"] for point in pooled):
            theory = points_in(axes, pooled, "predicted", log_of)._replace(error=points.error)
            for row, power in zip(rows, fit_power_law(theory).exponents, strict=True):
                row["predicted"] = power.value
    return {"log_of": log_of, "points": pooled, "exponents": rows}


def points_in(axes: Sequence[str], points: Sequence[Point], value: str, log_of: str | None = None) -> Points:
    """The points as the fits take them, divided by the logarithm of `log_of` if there is one."""
    logs = [1.0 if log_of is None else math.log(point[log_of]) for point in points]
    rows = [[float(point[axis]) for axis in axes] for point in points]
    estimates = [
        Estimate.read(point, value).map(lambda end, log=log: end / log) for point, log in zip(points, logs, strict=True)
    ]
    return points_of(axes, rows, estimates)


def product_over_sum(numbers: Numbers) -> float | None:
    """Akaike's criterion for a product of powers over a sum, on pooled points."""
    axes = [row["axis"] for row in numbers["exponents"]]
    return prefer_product(points_in(axes, numbers["points"], "samples", numbers["log_of"]))


def search_criticals(
    bench: Bench,
    specs: Sequence[Retrieval],
    axis: Along,
    ranges: Sequence[tuple[int, int | None]],
    fields: Sequence[str],
    tolerance: float = 0.1,
    most_seeds: int = 32,
) -> list[Numbers]:
    """The critical value of each setting, searched without theory; `fields` are kept to identify the setting."""
    search: SearchOptions = {**search_on(bench, tolerance, most_seeds), "use_theory": False}
    criticals = critical_many(specs, axis, ranges=ranges, **search)
    return [
        {
            **{name: getattr(critical.spec, name) for name in fields},
            **critical.answer.as_dict(axis),
            "predicted": critical.predicted,
        }
        for critical in criticals
    ]


def critical_points(bench: Bench, specs: Sequence[Retrieval]) -> list[Numbers]:
    """The critical N of each setting, searched from far below."""
    ranges = [(max(1, spec.vocab // 16), None) for spec in specs]
    points = search_criticals(bench, specs, "samples", ranges, ("embedding", "dim", "length"))
    kept = ("dim", "length", "samples", "low", "high", "status")
    return [{"law": point["embedding"], **{name: point[name] for name in kept}} for point in points]


def draw_critical(
    axes: Any, along: str, points: Sequence[Numbers], label: str, color: str = "C0", fmt: str = "o-"
) -> None:
    """Critical N with its interval along one size."""
    draw_estimates(axes, [point[along] for point in points], points, "samples", label, color, fmt)


def _known(numbers: Numbers) -> bool:
    """Whether there were enough points for exponents."""
    return all(row["value"] is not None for row in numbers["exponents"])


def say_exponents(numbers: Numbers, what: str = "critical N") -> str:
    """The exponents in one line."""
    if not _known(numbers):
        return f"no exponents: {len(numbers['points'])} points with a crossing are too few"
    powers = say_powers(numbers["exponents"])
    return f"{what} goes as {powers} over {len(numbers['points'])} points"


def draw_exponents(
    numbers: Numbers, figure: Any, leading: Mapping[str, float] | None = None, value: str = "samples"
) -> None:
    """A measured value against theory's, and the powers with their intervals."""
    what = VALUES[value]
    left, right = figure.subplots(1, 2)
    known = [point for point in numbers["points"] if point[value] and point["predicted"]]
    x, y = ([point[key] for point in known] for key in ("predicted", value))
    draw_estimates(left, x, known, value, size=3.5)
    if known:
        lows, highs = ([point[key] or point[value] for point in known] for key in ("low", "high"))
        ends = [min(x + y), max(x + y)]
        left.plot(ends, ends, color="black", linewidth=0.8)
        plain_log_ticks(left, "x", *ends)
        plain_log_ticks(left, "y", min(lows + x), max(highs + x))
    left.set_xlabel(f"predicted {what}")
    left.set_ylabel(f"measured {what}")
    rows = numbers["exponents"] if _known(numbers) else []
    for index, row in enumerate(rows):
        low, high = (row[k] if math.isfinite(row[k]) else row["value"] for k in ("low", "high"))
        right.plot([low, high], [index, index], color="C0", linewidth=2)
        right.plot([row["value"]], [index], "o", color="C0", label=None if index else "measured")
        if row["predicted"] is not None:
            name = None if index else "theory, same points"
            right.plot([row["predicted"]], [index], "x", color="C1", markersize=7, label=name)
        if leading is not None:
            name = None if index else "claimed"
            right.plot([leading[row["axis"]]], [index], "|", color="black", markersize=16, label=name)
    right.set_yticks(range(len(rows)), [LETTERS.get(row["axis"], row["axis"]) for row in rows])
    right.set_ylim(-0.7, len(rows) + 0.2)
    right.set_xlabel(f"power in the {what}")
    right.grid(axis="x", linewidth=0.4)
    if rows:
        right.legend(fontsize=7)
