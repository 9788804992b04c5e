"""Outer products with all items right: does d^2 / (N ln N) go to 8?"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.stats import t as student

from mnemoscope.spec import Memory
from mnemoscope.studies.base import Bench, Judgement, Numbers, Power, Size, Study, within
from mnemoscope.studies.panels import draw_law, draw_limits, finish, finish_limits, sizes_along
from mnemoscope.studies.power import Draw, rehearse
from mnemoscope.studies.seed_limits import pool_limits, search_limits, simulate_limits
from mnemoscope.theory.associative import HEBBIAN_ALL, hebbian_constant, items_by_law

DIMS: dict[Size, tuple[int, ...]] = {
    "quick": (64, 91, 128, 181, 256),
    "full": (64, 128, 256, 362, 512, 724, 1024, 2048),
}
SEEDS: dict[Size, int] = {"quick": 6, "full": 12}
# Fewer seeds at d = 2048, where each of some 50,000 items is told from all others.
LARGE, FEWER = 2048, 6
RESOLUTION = 0.04
REACH = 0.5
# Standard deviation over seeds in ln N: that of the first error, over the growth of ln(wrong pairs) with ln N.
SCATTER = 0.1


def measure(size: Size, bench: Bench) -> Numbers:
    """Every seed's largest number of items that are all right."""
    points = []
    for seeds in sorted({seeds_at(size, d) for d in DIMS[size]}):
        specs = [Memory(items=2, dim=d) for d in DIMS[size] if seeds_at(size, d) == seeds]
        points += search_limits(bench, specs, 1.0, RESOLUTION, seeds, lambda m: {"dim": m.dim, "size": m.dim**2})
    return {"points": sorted(points, key=lambda point: point["dim"])}


def seeds_at(size: Size, dim: int) -> int:
    """The number of seeds at this d."""
    return FEWER if dim >= LARGE else SEEDS[size]


def constants(points: Sequence[dict[str, Any]]) -> list[dict[str, float]]:
    """The constant of (H3) at every d, its standard error, and the order of its corrections, `x`."""
    rows = []
    for point in points:
        if not point["stored"]:
            continue
        dim, items = point["dim"], point["stored"]
        high, low = (hebbian_constant(point[end], dim) for end in ("low", "high"))
        row = {"dim": dim, "plain": dim**2 / (items * math.log(items)), "value": hebbian_constant(items, dim)}
        rows.append({**row, "error": (high - low) / (2 * 1.96), "x": math.log(items) / dim})
    return rows


def extrapolate(rows: Sequence[dict[str, float]]) -> dict[str, float] | None:
    """The value at 0 of a straight line in ln N / d: weighted least squares, Student's interval.

    The interval is widened if the points scatter by more than their errors.
    """
    if len(rows) < 4:
        return None
    X = np.array([[1.0, row["x"]] for row in rows])
    y = np.array([row["value"] for row in rows])
    weight = np.array([1 / row["error"] ** 2 for row in rows])
    covariance = np.linalg.inv(X.T @ (weight[:, None] * X))
    line = covariance @ X.T @ (weight * y)
    left = len(rows) - 2
    excess = max(1.0, float(weight @ (y - X @ line) ** 2) / left)
    half = float(student.ppf(0.975, left)) * math.sqrt(covariance[0, 0] * excess)
    return {"value": line[0], "low": line[0] - half, "high": line[0] + half, "slope": line[1]}


def judge_all(all_numbers: Sequence[Numbers]) -> Judgement:
    """By the constant, extrapolated to infinite d."""
    rows = constants(pool_limits([numbers["points"] for numbers in all_numbers], ("dim",)))
    end = extrapolate(rows)
    text = "d²/(N ln N) " + ", ".join(f"{row['plain']:.2f} at d = {row['dim']}" for row in rows)
    if end is None:
        return Judgement(f"{text}; too few sizes", "inconclusive")
    text += f"; extrapolated by (H3) {end['value']:.2f} [{end['low']:.2f}, {end['high']:.2f}]"
    return Judgement(text, within(end["low"], end["high"], HEBBIAN_ALL - REACH, HEBBIAN_ALL + REACH))


def items_at(dim: int, constant: float, slope: float = 0.0) -> float:
    """The N at which (H3) has this constant, with a correction of `slope` ln N / d."""

    def excess(log_items: float) -> float:
        return hebbian_constant(math.exp(log_items), dim) - constant - slope * log_items / dim

    return math.exp(float(brentq(excess, math.log(4.0), math.log(float(dim) ** 2))))  # pyright: ignore[reportArgumentType]


def power(size: Size) -> Power:
    """The power if (H3) is right, and if the constant is another."""
    places = [{"dim": d, "size": d * d} for d in DIMS[size]]
    seeds = [seeds_at(size, d) for d in DIMS[size]]

    def drawn(constant: float) -> Draw:
        return simulate_limits(size, places, {"points": [items_at(d, constant) for d in DIMS[size]]}, seeds, SCATTER)

    rivals = {f"d² = {c:g} N ln N": drawn(c) for c in (4.0, 6.5, 9.5)}
    return rehearse(judge_all, drawn(HEBBIAN_ALL), rivals, note=f"seeds scatter by {SCATTER:.0%} about (H3)")


def draw(numbers: Numbers, figure: Any) -> None:
    """Items against weights, and the constant against the order of its corrections."""
    left, right = figure.subplots(1, 2)
    points = numbers["points"]
    draw_limits(left, points, "outer products, all right", "C0")
    x = sizes_along(points)
    draw_law(left, x, [items_by_law(float(s), HEBBIAN_ALL) for s in x], f"d² = {HEBBIAN_ALL:g} N ln N")
    finish_limits(left, points, "d², weights", "items stored, N")
    rows = constants(points)
    at = [row["x"] for row in rows]
    values, bars = ([row["value"] for row in rows], [1.96 * row["error"] for row in rows])
    right.errorbar(at, values, yerr=bars, fmt="o", capsize=2, label="by (H3)")
    right.plot(at, [row["plain"] for row in rows], "x", color="C7", label="d² / (N ln N)")
    end = extrapolate(rows)
    if end is not None:
        right.plot([0, max(at)], [end["value"], end["value"] + end["slope"] * max(at)], "-", color="C0", linewidth=0.8)
        bars = [[end["value"] - end["low"]], [end["high"] - end["value"]]]
        right.errorbar([0], [end["value"]], yerr=bars, fmt="s", capsize=3, color="C1", label="extrapolated")
    right.axhline(HEBBIAN_ALL, color="black", linewidth=0.6, linestyle=":")
    finish(right, "ln N / d", "constant")


STUDY = Study(
    id="b-hebbian",
    revision=1,
    source="ours, after paper B",
    place="Theorem 1's construction; the constant is reported by later work, arXiv 2605.05189",
    statement="Outer products on the sphere name all of N items up to d² = 8 N ln N.",
    expected="8, for large d",
    rule="Limits of all base seeds' seeds in one, N being the items up to which all are right; the constant at every d "
    "by (H3), a straight line through it in ln N / d. Supported if the 95 % interval of its end at 0 lies within 7.5 "
    "to 8.5, refuted if it lies outside.",
    measure=measure,
    judge_all=judge_all,
    draw=draw,
    power=power,
)
