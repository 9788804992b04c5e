"""A linear memory of rank m: does it store in proportion to m d?"""

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from mnemoscope.experiments.estimate.power_law import Points, fit_power_law
from mnemoscope.spec import Memory
from mnemoscope.studies.base import Bench, Judgement, Numbers, Power, Size, Study, all_agree, within
from mnemoscope.studies.panels import draw_estimates, draw_law
from mnemoscope.studies.power import Draw, rehearse
from mnemoscope.studies.rival_laws import say_powers
from mnemoscope.studies.seed_limits import pool_limits, search_limits, simulate_limits
from mnemoscope.theory.associative import items_by_law
from mnemoscope.ui.figures.canvas import plain_log_ticks, ticks_at

# (d, m): several ranks at one d, and several d at one rank. Below m = 64 an item's own signal, |F e|^2, varies by more
# than 1/6, and that decides; near m = d the matrix is as good as a full one.
PLACES: dict[Size, tuple[tuple[int, int], ...]] = {
    "quick": ((512, 64), (512, 128), (512, 256), (256, 64), (1024, 64)),
    "full": ((2048, 64), (2048, 128), (2048, 256), (2048, 512), (512, 128), (1024, 128), (4096, 128)),
}
SEEDS: dict[Size, int] = {"quick": 3, "full": 4}
RESOLUTION = 0.08
AXES = ("rank", "dim")
# Rival powers of m and d in N ln N.
RIVALS = {"as d²": (0, 2), "as m²": (2, 0), "as m": (1, 0), "as d": (0, 1), "as (m d)^0.5": (0.5, 0.5)}
REACH = 0.25
# Standard deviations in ln N: over seeds, and of a place about one law for all places.
SCATTER, PLACE_SCATTER = 0.1, 0.05


def measure(size: Size, bench: Bench) -> Numbers:
    """The number of items up to which 99 % are right, where W is F^T F with outer products written through F."""
    specs = [Memory(items=2, dim=d, rank=m) for d, m in PLACES[size]]
    points = search_limits(bench, specs, 0.99, RESOLUTION, SEEDS[size], lambda m: {"dim": m.dim, "rank": m.rank})
    return {"points": points}


def fit_powers(points: Sequence[dict[str, Any]]) -> list[dict[str, Any]] | None:
    """The powers of m and d in N ln N."""
    kept = [point for point in points if point["stored"]]
    if len(kept) < 5 or any(len({point[axis] for point in kept}) < 3 for axis in AXES):
        return None
    stored = np.array([point["stored"] for point in kept])
    error = np.log([point["high"] / point["low"] for point in kept]) / (2 * 1.96)
    x = np.array([[float(point[axis]) for axis in AXES] for point in kept])
    law = fit_power_law(Points(AXES, x, np.log(stored * np.log(stored)), error * (1 + 1 / np.log(stored))))
    return [asdict(power) for power in law.exponents]


def judge_all(all_numbers: Sequence[Numbers]) -> Judgement:
    """By both powers."""
    points = pool_limits([numbers["points"] for numbers in all_numbers], ("dim", "rank"))
    powers = fit_powers(points)
    if powers is None:
        return Judgement("too few limits were found", "inconclusive")
    grows = say_powers(powers, {"rank": "m", "dim": "d"})
    known = [(point["rank"] * point["dim"], point["stored"]) for point in points if point["stored"]]
    each = [weights / (items * math.log(items)) for weights, items in known]
    text = f"N ln N grows as {grows}; m d over it {min(each):.1f} to {max(each):.1f}"
    return Judgement(text, all_agree(within(row["low"], row["high"], 1 - REACH, 1 + REACH) for row in powers))


def power(size: Size) -> Power:
    """The power if m d = 8 N ln N, and if a law with other powers holds."""
    places = [{"dim": d, "rank": m} for d, m in PLACES[size]]

    def drawn(law: Callable[[int, int], float]) -> Draw:
        items = [law(d, m) for d, m in PLACES[size]]
        return simulate_limits(size, places, {"points": items}, SEEDS[size], SCATTER, PLACE_SCATTER)

    def other(of_rank: float, of_dim: float) -> Draw:
        return drawn(lambda d, m: items_by_law(1e5 * (m / 128) ** of_rank * (d / 1024) ** of_dim, 8.0))

    claim = drawn(lambda d, m: items_by_law(float(m * d), 8.0))
    note = f"seeds scatter by {SCATTER:.0%} and places by {PLACE_SCATTER:.0%} about m d = 8 N ln N"
    return rehearse(judge_all, claim, {name: other(*powers) for name, powers in RIVALS.items()}, note=note)


def draw(numbers: Numbers, figure: Any) -> None:
    """Items against the rank and against d, with lines of constant m d over N ln N."""
    for axes, along, name in zip(figure.subplots(1, 2, sharey=True), AXES, ("rank, m", "dimension, d"), strict=True):
        other = AXES[1 - AXES.index(along)]
        values = [point[other] for point in numbers["points"]]
        kept = max(values, key=values.count)  # the value that most places share
        points = [point for point in numbers["points"] if point[other] == kept and point["stored"]]
        points.sort(key=lambda point: point[along])
        x = [float(point[along]) for point in points]
        draw_estimates(axes, x, points, "stored", "0.99 right")
        if not points:
            continue
        middle = points[len(points) // 2]
        constant = kept * middle[along] / (middle["stored"] * math.log(middle["stored"]))
        draw_law(axes, x, [items_by_law(kept * value, constant) for value in x], f"m d = {constant:.3g} N ln N")
        ticks_at(axes, "x", x)
        axes.set_xlabel(name)
        axes.set_title(f"{'d' if other == 'dim' else 'm'} = {kept}", fontsize=9)
        axes.legend(fontsize=7)
    ends = [p[key] for p in numbers["points"] for key in ("low", "high") if p["stored"]]
    if ends:
        plain_log_ticks(figure.axes[0], "y", min(ends), max(ends))
    figure.axes[0].set_ylabel("items stored, N")


STUDY = Study(
    id="b-low-rank",
    revision=1,
    source="paper B",
    place="linear memory of low rank, W = W1^T W2",
    statement="A linear memory of rank m stores a number of items proportional to m d, up to logarithms.",
    expected="N ln N as m d",
    rule="Limits of all base seeds' seeds in one, N being the items up to which 99 % are right, outer products written "
    "through a random map to m dimensions. Powers of m and d in N ln N. Supported if both 95 % intervals lie within "
    "0.75 to 1.25, refuted if one lies outside.",
    measure=measure,
    judge_all=judge_all,
    draw=draw,
    power=power,
)
