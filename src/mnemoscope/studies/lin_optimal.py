r"""Papers C and D: the best matrix stores p pairs up to p ln p / d^2 = 1/2.

Paper D computes the constant for a model in which every input has wrong answers of its own; paper C conjectures the
same for the matrix memory. Limits here are certified by Newton's method (`experiments/exact_storage.py`), which is
possible up to some tens of dimensions. There p ln p / d^2 is about 1, and so the constant is judged through our law
for finite sizes, d^2 = N delta(N, d) (T3), where half of the draws are stored (T4). It is computed from single cones,
fits nothing, and delta is 2 ln N at leading order. At these sizes its own growth is close to d^1.5, which limits alone
do not exclude.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from mnemoscope.experiments.best_limits import draw_items, largest_held
from mnemoscope.experiments.exact_storage import store
from mnemoscope.spec import Memory
from mnemoscope.studies.base import Bench, Judgement, Numbers, Power, Size, Study
from mnemoscope.studies.one_constant import fit_levels, is_ahead, lead_of
from mnemoscope.studies.panels import draw_estimates, draw_law, draw_limits, finish, finish_limits, log_axes
from mnemoscope.studies.power import Draw, rehearse
from mnemoscope.studies.seed_limits import limit_point, pool_limits, simulate_limits
from mnemoscope.theory.trained.capacity import half_point
from mnemoscope.ui.figures.canvas import ticks_at

DIMS: dict[Size, tuple[int, ...]] = {"quick": (6, 8, 11, 15, 20, 28), "full": (6, 8, 11, 16, 22, 32, 45)}
SEEDS: dict[Size, int] = {"quick": 8, "full": 8}
RESOLUTION = 0.02
# The limit of p ln p / d^2, and how far off a measured constant may be.
CONSTANT = 0.5
LEAST, MOST = 0.9, 1.1
# Items beyond the law's half point that are drawn.
BEYOND = 2.0
# Standard deviation over seeds in ln p: 7 % at d = 8, 3 % from d = 16 on.
SCATTER = 0.06
CLAIM = "the law"


@lru_cache(maxsize=256)
def items_at(dim: int) -> float:
    """The items that half of the draws can store, by our law for finite sizes."""
    return half_point(dim, dim, "sphere")


LAWS: dict[str, Callable[[Mapping[str, Any]], float]] = {
    CLAIM: lambda place: items_at(place["dim"]),
    "p as d², no logarithm": lambda place: float(place["dim"]) ** 2,
}


def measure(size: Size, bench: Bench) -> Numbers:
    """Every seed's largest number of pairs for which there is a matrix that names them all."""
    points = []
    for dim in DIMS[size]:
        each = [best_limit(dim, seed) for seed in range(bench.seed, bench.seed + SEEDS[size])]
        points.append(limit_point(each, RESOLUTION, dim=dim, size=dim**2))
    return {"points": points}


def best_limit(dim: int, seed: int) -> float | None:
    """One draw's limit."""
    guess = items_at(dim)
    most = round(BEYOND * guess)
    items, labels = draw_items(Memory(items=most, dim=dim), seed)

    def holds(count: int) -> bool | None:
        return store(labels[:count], items[:count], np.arange(count)).separable

    return largest_held(holds, guess, most, RESOLUTION)


def judge_all(all_numbers: Sequence[Numbers]) -> Judgement:
    """By the constant that the limits leave to the law for finite sizes, and by its rivals."""
    points = pool_limits([numbers["points"] for numbers in all_numbers], ("dim",))
    text = "p ln p / d² " + ", ".join(
        f"{p['stored'] * math.log(p['stored']) / p['size']:.3f} at d = {p['dim']}" for p in points if p["stored"]
    )
    fits = fit_levels(points, LAWS)
    if fits is None:
        return Judgement(f"{text}; too few sizes", "inconclusive")
    level, (lead, rival) = fits[CLAIM], lead_of(fits, CLAIM)
    text += (
        f"; p over the law for finite sizes {level['level']:.3f} [{level['low']:.3f}, {level['high']:.3f}], so its "
        f"limit of 1/2 becomes {CONSTANT * level['level']:.3f}; it is {lead:+.1f} ahead of {rival}"
    )
    ahead = is_ahead(lead)
    outside = level["high"] < LEAST or level["low"] > MOST
    inside = level["low"] >= LEAST and level["high"] <= MOST
    return Judgement.by(text, supported=inside and ahead is True, refuted=outside or ahead is False)


def power(size: Size) -> Power:
    """The power if the law for finite sizes is right, and if the constant or the form is another."""
    dims = DIMS[size]
    places = [{"dim": d, "size": d * d} for d in dims]
    middle = dims[len(dims) // 2]

    def drawn(law: Callable[[int], float]) -> Draw:
        return simulate_limits(size, places, {"points": [law(d) for d in dims]}, SEEDS[size], SCATTER)

    return rehearse(
        judge_all,
        drawn(items_at),
        {
            "a constant of 1": drawn(lambda d: 2 * items_at(d)),
            "a constant of 1/4": drawn(lambda d: items_at(d) / 2),
            "a constant of 0.6": drawn(lambda d: 1.2 * items_at(d)),
            "p as d², no logarithm": drawn(lambda d: items_at(middle) * (d / middle) ** 2),
            "p as d^1.5": drawn(lambda d: items_at(middle) * (d / middle) ** 1.5),
        },
        note=f"seeds scatter by {SCATTER:.0%} about our law for finite sizes; at these sizes it cannot tell that law "
        "from one that goes as d^1.5",
    )


def draw(numbers: Numbers, figure: Any) -> None:
    """Limits against d^2, and p ln p / d^2 beside the law's way to 1/2."""
    left, right = figure.subplots(1, 2)
    known = [point for point in numbers["points"] if point["stored"]]
    draw_limits(left, known, "the best matrix", "C0")
    draw_law(left, [p["size"] for p in known], [items_at(p["dim"]) for p in known], "law for finite sizes")
    finish_limits(left, known, "d², weights", "pairs stored, p")
    shown = [
        {key: point[key] * math.log(point[key]) / point["size"] for key in ("stored", "low", "high")} for point in known
    ]
    draw_estimates(right, [p["dim"] for p in known], shown, "stored", "the best matrix")
    dims = [point["dim"] for point in known]
    wide = [*dims, *(round(2**k * max(dims)) for k in range(1, 8))]
    ways = [items_at(d) * math.log(items_at(d)) / d**2 for d in wide]
    draw_law(right, wide, ways, "law for finite sizes")
    right.axhline(CONSTANT, color="black", linewidth=0.6, linestyle=":")
    log_axes(right, wide, [CONSTANT, *ways])
    ticks_at(right, "x", [dims[0], 32, 128, 512, 2048])
    right.set_title("dotted: the limit, 1/2", fontsize=8)
    finish(right, "d", "p ln p / d²")


STUDY = Study(
    id="lin-optimal",
    revision=1,
    source="paper D (abstract)",
    place="version 1: p_c log p_c / d² = 1/2, for a decoupled model that is found equivalent to the original; paper C, "
    "version 1, conjectures d² ~ 2 n log n. The law for finite sizes, by which it is judged, is ours",
    statement="The best matrix stores p pairs up to p ln p / d² = 1/2.",
    expected="limits at our law for finite sizes, whose limit is 1/2",
    rule="Limits of all base seeds' seeds in one, p being the most pairs for which a matrix names all, each with a "
    "certificate. One constant times our law for finite sizes, d² = p δ(p, d), against one times d², by Akaike's "
    "criterion, decisive at 4. Supported if the law is decisively ahead and its constant's 95 % interval lies "
    "within 0.9 to 1.1 (a limit of 0.45 to 0.55). Refuted if a rival is decisively ahead, or if the interval lies "
    "outside.",
    measure=measure,
    judge_all=judge_all,
    draw=draw,
    power=power,
)
