r"""After paper D: what a linear memory of two layers stores, by its rank.

W = V^T F with r hidden units is a matrix of rank r at most. Paper D's abstract says that its capacity is computed for
linear two-layer architectures, too, and not what comes out. The law here is ours. Counting dimensions (T3), a matrix
without such a limit holds N items where N delta(N, d) reaches d^2 = E |G|^2, the squared length of a Gaussian matrix G.
A matrix of rank r can go along with its r largest singular values only, and so

    N delta(N, d) = E sum_{i <= r} sigma_i^2(G).                                             (P4)

That is heuristic: matrices of rank r are no convex set. It is all of d^2 at r = d, and nearly all at r = d/2. For
small r it is more than the r (2 d - r) degrees of freedom of such a matrix.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.optimize import brentq

from mnemoscope.spec import Memory
from mnemoscope.studies.base import Bench, Judgement, Numbers, Power, Size, Study
from mnemoscope.studies.one_constant import fit_levels, is_ahead, lead_of
from mnemoscope.studies.panels import draw_estimates, draw_law, finish, log_axes
from mnemoscope.studies.power import Draw, rehearse
from mnemoscope.studies.seed_limits import limit_point, pool_steps, say_steps, search_limits, simulate_limits
from mnemoscope.theory.trained.capacity import load
from mnemoscope.ui.figures.canvas import ticks_at

# The ranks at each d.
RANKS: dict[Size, dict[int, tuple[int, ...]]] = {
    "quick": {16: (3, 5, 8, 16), 24: (4, 6, 9, 14, 24)},
    "full": {24: (4, 6, 9, 14, 24), 32: (4, 6, 10, 16, 32), 64: (6, 10, 16, 26, 40, 64)},
}
SEEDS: dict[Size, int] = {"quick": 3, "full": 4}
STEPS: dict[Size, int] = {"quick": 2**12, "full": 2**15}
RESOLUTION = 0.04
LEAST, MOST = 0.9, 1.1
DRAWS, DRAW_SEED = 64, 0
# Standard deviations in ln N: over seeds, and of a place about one law for all places.
SCATTER, PLACE_SCATTER = 0.04, 0.03
CLAIM = "(P4)"


@lru_cache(maxsize=64)
def squares_of(dim: int) -> np.ndarray:
    """The mean squared singular values of a Gaussian matrix, summed from the largest on."""
    random = np.random.default_rng((DRAW_SEED, dim))
    values = [np.linalg.svd(random.standard_normal((dim, dim)), compute_uv=False) for _ in range(DRAWS)]
    return np.cumsum(np.mean(np.square(values), axis=0))


def items_within(dim: int, room: float) -> float:
    """The N at which N delta(N, d) takes this room, on the sphere."""

    def excess(log_items: float) -> float:
        items = math.exp(log_items)
        return math.log(load(items, max(2.0, items), dim, 1, "sphere") * dim / room)

    return math.exp(float(brentq(excess, 0.0, math.log(100.0 * room))))  # pyright: ignore[reportArgumentType]


def items_at(place: Mapping[str, Any]) -> float:
    """The N of (P4)."""
    return items_within(place["dim"], float(squares_of(place["dim"])[place["width"] - 1]))


LAWS: dict[str, Callable[[Mapping[str, Any]], float]] = {
    CLAIM: items_at,
    "degrees of freedom": lambda p: items_within(p["dim"], p["width"] * (2 * p["dim"] - p["width"])),
    "parameters, up to d²": lambda p: items_within(p["dim"], min(2 * p["width"] * p["dim"], p["dim"] ** 2)),
    "r d": lambda p: items_within(p["dim"], p["width"] * p["dim"]),
    "d², whatever the rank": lambda p: items_within(p["dim"], p["dim"] ** 2),
}


def places_of(size: Size) -> list[dict[str, Any]]:
    """Every d with its ranks; `width` is the hidden layer's, that is r."""
    return [{"dim": dim, "width": rank, "size": 2 * rank * dim} for dim, ranks in RANKS[size].items() for rank in ranks]


def measure(size: Size, bench: Bench) -> Numbers:
    """Every seed's number of items that can be trained to be all right, with all steps and with half of them."""
    places = places_of(size)
    specs = [
        Memory(items=2, dim=place["dim"], rank=place["width"], method="trained", max_steps=steps)
        for steps in (STEPS[size], STEPS[size] // 2)
        for place in places
    ]
    points = search_limits(bench, specs, 1.0, RESOLUTION, SEEDS[size], lambda spec: {"rank": spec.rank})
    each = [point["each"] for point in points]
    return {
        "points": [
            limit_point(full, RESOLUTION, half=half, **place)
            for place, full, half in zip(places, each, each[len(places) :], strict=False)
        ]
    }


def judge_all(all_numbers: Sequence[Numbers]) -> Judgement:
    """By the law that fits best, and its constant."""
    points, cut_short = pool_steps(all_numbers, "points")
    fits = fit_levels(points, LAWS)
    if fits is None:
        return Judgement(f"too few limits; {say_steps(points, cut_short)}", "inconclusive")
    level, (lead, rival) = fits[CLAIM], lead_of(fits, CLAIM)
    dim = max(point["dim"] for point in points)
    row = ", ".join(f"{p['stored']:.0f} at r = {p['width']}" for p in points if p["dim"] == dim and p["stored"])
    text = (
        f"d = {dim}: N {row}; over (P4) {level['level']:.3f} [{level['low']:.3f}, {level['high']:.3f}] at "
        f"{len(points)} places, {lead:+.1f} ahead of {rival}; {say_steps(points, cut_short)}"
    )
    ahead = is_ahead(lead)
    outside = level["high"] < LEAST or level["low"] > MOST
    inside = level["low"] >= LEAST and level["high"] <= MOST
    return Judgement.by(text, supported=inside and ahead is True, refuted=outside or ahead is False)


def power(size: Size) -> Power:
    """The power if (P4) is right, and if each of the other laws is."""
    places = places_of(size)

    def drawn(law: Callable[[Mapping[str, Any]], float]) -> Draw:
        return simulate_limits(size, places, {"points": [law(p) for p in places]}, SEEDS[size], SCATTER, PLACE_SCATTER)

    rivals = {name: drawn(law) for name, law in LAWS.items() if name != CLAIM}
    rivals["0.8 times (P4)"] = drawn(lambda place: 0.8 * items_at(place))
    return rehearse(
        judge_all,
        drawn(items_at),
        rivals,
        note=f"seeds scatter by {SCATTER:.0%} and places by {PLACE_SCATTER:.0%} about (P4)",
    )


def draw(numbers: Numbers, figure: Any) -> None:
    """Items against the rank, with (P4) and the degrees of freedom."""
    axes = figure.add_subplot()
    known = [point for point in numbers["points"] if point["stored"]]
    values = []
    for at, dim in enumerate(sorted({point["dim"] for point in known})):
        own = [point for point in known if point["dim"] == dim]
        draw_estimates(axes, [p["width"] for p in own], own, "stored", f"trained, d = {dim}", f"C{at}")
        x = sorted({round(r) for r in np.geomspace(min(p["width"] for p in own), dim, 16)})
        ways = [[LAWS[name]({"dim": dim, "width": r}) for r in x] for name in (CLAIM, "degrees of freedom")]
        for way, style, label in zip(ways, ("-", ":"), ("(P4), not fitted", "r (2 d - r) for N δ(N, d)"), strict=True):
            draw_law(axes, x, way, None if at else label, style)
        values += [*ways[0], *ways[1], *(p[end] for p in own for end in ("low", "high"))]
    log_axes(axes, [point["width"] for point in known], values)
    ticks_at(axes, "x", [point["width"] for point in known])
    finish(axes, "hidden units, r", "items stored, N")


STUDY = Study(
    id="lin-two-layer",
    revision=1,
    source="ours, after paper D",
    place="version 1, whose abstract generalises the capacity to linear two-layer architectures and does not state the "
    "result; (P4) is ours",
    statement="A linear memory of two layers with r hidden units has the room of the r largest singular values of a "
    "Gaussian matrix: at r = d/2 nearly that of full rank.",
    expected="N δ(N, d) = E Σ σ² over the r largest singular values, not r (2 d - r)",
    rule="Limits of all base seeds' seeds in one, N being the items that AdamW trains to be all right; a place where a "
    "doubling of the steps raises N by more than 5 %, with its 95 % interval, is left out. One constant times (P4), "
    "against one times what N δ(N, d) would give if it were r (2 d - r), 2 r d up to d², r d or d², by Akaike's "
    "criterion, decisive at 4. Supported if (P4) is decisively ahead and its constant's 95 % interval lies within 0.9 "
    "to 1.1. Refuted if another is decisively ahead, or if the interval lies outside.",
    measure=measure,
    judge_all=judge_all,
    draw=draw,
    power=power,
)
