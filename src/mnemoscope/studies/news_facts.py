"""A news summary of paper A, read the other way: the facts stored scale as d times L."""

import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from mnemoscope.experiments.estimate.power_law import fit_power_law
from mnemoscope.spec import Retrieval
from mnemoscope.studies.base import Bench, Judgement, Numbers, Power, Size, Study
from mnemoscope.studies.expected_scatter import scatter_within
from mnemoscope.studies.exponents import points_in, pool_points, search_criticals
from mnemoscope.studies.panels import finish, log_axes
from mnemoscope.studies.power import Place, draw_grid, rehearse, say_draw
from mnemoscope.studies.rival_laws import half_width, judge_powers, nearest, say_powers
from mnemoscope.theory.laws import LAWS

# For every V, the range of d in which half of the labels come to be named.
VOCABS: dict[Size, dict[int, tuple[int, int]]] = {
    "quick": {64: (17, 32), 128: (33, 64), 256: (33, 64)},
    "full": {256: (33, 128), 512: (50, 128), 1024: (65, 256), 2048: (96, 256)},
}
LENGTHS: dict[Size, tuple[int, ...]] = {"quick": (8, 64), "full": (16, 64, 128)}
# Enough to learn every length.
SAMPLES_A_FACT = 64
TOLERANCE: dict[Size, float] = {"quick": 0.05, "full": 0.03}
AXES = ("vocab", "length")
# V as d L means that V facts need d as V / L.
CLAIMED = {"vocab": 1.0, "length": -1.0}
# Our laws: interference has d^2 as V, and attention's noises raise d with L. The samples for each fact are fixed, so N
# grows with V.
RIVALS = {
    law.name: {"vocab": powers.get("vocab", 0.0) + powers.get("samples", 0.0), "length": powers.get("length", 0.0)}
    for law in LAWS
    if (powers := law.critical("dim")) is not None
}
HALF = half_width(CLAIMED, RIVALS, AXES)
RIVAL, AWAY = nearest(CLAIMED, RIVALS, AXES)


def measure(size: Size, bench: Bench) -> Numbers:
    """The d at which half of V facts are named, over V and L."""
    cells = [(V, L) for V in VOCABS[size] for L in LENGTHS[size]]
    specs = [Retrieval(vocab=V, dim=VOCABS[size][V][0], length=L, samples=SAMPLES_A_FACT * V) for V, L in cells]
    ranges = [VOCABS[size][V] for V, _ in cells]
    fields = ("vocab", "length", "samples")
    return {"points": search_criticals(bench, specs, "dim", ranges, fields, TOLERANCE[size])}


def fit_powers(bases: Sequence[Numbers]) -> tuple[list[Numbers], list[Numbers]]:
    """The pooled points, and the powers of V and L in the critical d."""
    points = pool_points([numbers["points"] for numbers in bases], AXES, "dim")
    if len(points) < len(AXES) + 2 or any(len({p[axis] for p in points}) < 2 for axis in AXES):
        return points, []
    return points, [asdict(power) for power in fit_power_law(points_in(AXES, points, "dim")).exponents]


def judge_all(bases: Sequence[Numbers]) -> Judgement:
    """Are the powers near those of V = d L?"""
    points, powers = fit_powers(bases)
    if not powers:
        return Judgement(f"{len(points)} critical d are too few", "inconclusive")
    text = f"the d that V facts need goes as {say_powers(powers)} over {len(points)} points; the "
    return Judgement(text + "claim is V^1.00 L^-1.00", judge_powers(powers, CLAIMED, HALF))


def power(size: Size) -> Power:
    """The power if the summary is right, and if each rival law is, at the places of the grid."""
    sizes = [{"vocab": V, "length": L} for V in VOCABS[size] for L in LENGTHS[size]]
    draws, places = {}, []
    for name, powers in {"news": CLAIMED, **RIVALS}.items():
        law = [math.prod(place[axis] ** powers[axis] for axis in AXES) for place in sizes]
        places = [Place(place, dim, scatter_within(TOLERANCE[size])) for place, dim in zip(sizes, law, strict=True)]
        draws[name] = draw_grid(places, law, size, "dim")
    return rehearse(judge_all, draws.pop("news"), draws, note=say_draw(places, size, "each law's critical d"))


def draw(numbers: Numbers, figure: Any) -> None:
    """Facts against the d that they need, one line for each length."""
    axes = figure.add_subplot()
    points = [point for point in numbers["points"] if point["dim"] and point["low"]]
    lengths = sorted({point["length"] for point in points})
    first = min(points, key=lambda point: (point["length"], point["vocab"]))
    for at, length in enumerate(lengths):
        line = [point for point in points if point["length"] == length]
        x = [point["dim"] for point in line]
        bars = [[point["dim"] - point["low"] for point in line], [point["high"] - point["dim"] for point in line]]
        axes.errorbar(
            x, [point["vocab"] for point in line], xerr=bars, fmt="o-", capsize=2, color=f"C{at}", label=f"L = {length}"
        )
        claimed = [first["vocab"] * d / first["dim"] * length / first["length"] for d in x]
        axes.plot(x, claimed, ":", color=f"C{at}", linewidth=0.9, label="claimed: V as d L" if at == 0 else None)
    vocabs = [point["vocab"] for point in points]
    log_axes(axes, [point["dim"] for point in points], [min(vocabs), max(vocabs) * lengths[-1] / lengths[0]])
    finish(axes, "dimension d at which half of them are named", "facts, V")


STUDY = Study(
    id="news-facts",
    revision=1,
    source="news",
    place="summary of paper A, N read as the number of facts",
    statement="The number of facts that a model can reliably learn grows like d times L.",
    expected="V as d^1 L^1, that is d as V^1 L^-1",
    rule="Powers of V and L in the d at which half of V labels are named (64 samples a label), one "
    f"fit to all base seeds. Supported if both 95 % intervals lie within {HALF:g} of V^1 L^-1, "
    f"refuted if one lies outside that box altogether. The nearest rival law, "
    f"{RIVAL.replace('_', ' ')}, is {AWAY:g} away.",
    measure=measure,
    draw=draw,
    judge_all=judge_all,
    power=power,
)
