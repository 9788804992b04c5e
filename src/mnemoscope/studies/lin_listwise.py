r"""Paper C: if the answer need only be among the strongest, the logarithm goes.

The criterion is the paper's tail-average margin: an item's own score has to exceed the average of the top share r of
its competitors'. Its abstract says that d^2 of order n is enough, and that the critical load n/d^2 has a closed form.
The form is not in the abstract; as notes on the paper report it, with a standard normal G of density phi and law Phi,

    1/alpha(r) = E (kappa - G)_+^2,   kappa = phi(Phi^-1(1 - r))/r.                          (P2)

Counting dimensions, as (T3) does for the top-1 criterion, gives it too, and gives it for finite sizes (ours). The
matrices that hold an item form, nearly, a circular cone: {w : u_x^T w >= kappa |w|/sqrt(d)}, which a direction g on
the sphere of radius sqrt(d) with G = u_x^T g misses by kappa sqrt(1 - G^2/d) - G sqrt(1 - kappa^2/d). The average of k
= r (n - 1) embeddings, which is what a margin is moved by, is longer than its part along w by 1/k on average, so that

    d^2 = n E (kappa sqrt(1 - G^2/d) - G sqrt(1 - kappa^2/d))_+^2 / (1 + (1 - 1/d)/k)        (P3)

with kappa the top average of a coordinate on that sphere.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import betaincinv, ndtr, ndtri

from mnemoscope.experiments.best_limits import draw_items, largest_held
from mnemoscope.experiments.listwise_storage import holds_listwise
from mnemoscope.spec import Memory
from mnemoscope.studies.base import Bench, Judgement, Numbers, Power, Size, Study
from mnemoscope.studies.one_constant import fit_levels, is_ahead
from mnemoscope.studies.panels import draw_estimates, draw_law, finish, log_axes
from mnemoscope.studies.power import Draw, rehearse
from mnemoscope.studies.seed_limits import limit_point, pool_limits, simulate_limits
from mnemoscope.theory.associative import items_by_law
from mnemoscope.ui.figures.canvas import ticks_at

SHARES = (0.5, 0.25, 0.1)
DIMS: dict[Size, tuple[int, ...]] = {"quick": (8, 10, 13, 16, 20), "full": (8, 11, 16, 22, 32, 40)}
SEEDS: dict[Size, int] = {"quick": 8, "full": 4}
RESOLUTION = 0.02
LEAST, MOST = 0.9, 1.1
# Items beyond (P3)'s that are drawn.
BEYOND = 2.0
NODES = 4001
# Standard deviation over seeds in ln n.
SCATTER = 0.07
CLAIM, LOGARITHM = "(P3)", "n ln n as d²"


def critical_load(share: float) -> float:
    """(P2): n over d^2 for large d."""
    at = float(ndtri(1 - share))
    kappa = _density(at) / share
    return 1 / float((1 + kappa**2) * ndtr(kappa) + kappa * _density(kappa))


def _density(x: float) -> float:
    return math.exp(-x * x / 2) / math.sqrt(2 * math.pi)


@lru_cache(maxsize=256)
def items_at(dim: int, share: float) -> float:
    """(P3): n at a finite d."""
    places = (np.arange(NODES) + 0.5) / NODES
    G = math.sqrt(dim) * (2 * betaincinv((dim - 1) / 2, (dim - 1) / 2, places) - 1)
    kappa = float(G[-max(1, round(share * NODES)) :].mean())
    missed = kappa * np.sqrt(1 - G**2 / dim) - G * math.sqrt(1 - kappa**2 / dim)
    each = float(np.mean(np.maximum(missed, 0.0) ** 2))

    def excess(log_items: float) -> float:
        count = max(1.0, share * (math.exp(log_items) - 1))
        return log_items + math.log(each / (1 + (1 - 1 / dim) / count) / dim**2)

    return math.exp(float(brentq(excess, 0.0, math.log(100.0 * dim**2))))  # pyright: ignore[reportArgumentType]


LAWS: dict[str, Callable[[Mapping[str, Any]], float]] = {
    CLAIM: lambda place: items_at(place["dim"], place["share"]),
    LOGARITHM: lambda place: items_by_law(place["dim"] ** 2, 1.0),
}


def measure(size: Size, bench: Bench) -> Numbers:
    """Every seed's largest number of pairs for which some matrix gives each a positive margin, at every share."""
    seeds = range(bench.seed, bench.seed + SEEDS[size])
    return {
        "points": [
            limit_point([best_limit(dim, share, seed) for seed in seeds], RESOLUTION, **place_of(dim, share))
            for share in SHARES
            for dim in DIMS[size]
        ]
    }


def place_of(dim: int, share: float) -> dict[str, Any]:
    """What a point says of its place."""
    return {"dim": dim, "share": share, "size": dim**2}


def best_limit(dim: int, share: float, seed: int) -> float | None:
    """One draw's limit."""
    guess = items_at(dim, share)
    most = round(BEYOND * guess)
    items, labels = draw_items(Memory(items=most, dim=dim), seed)
    return largest_held(lambda n: holds_listwise(labels[:n], items[:n], share), guess, most, RESOLUTION)


def judge_all(all_numbers: Sequence[Numbers]) -> Judgement:
    """By the constant of (P3) at each share, and by the form with a logarithm."""
    points = pool_limits([numbers["points"] for numbers in all_numbers], ("dim", "share"))
    levels, texts, lead = [], [], 0.0
    for share in sorted({point["share"] for point in points}, reverse=True):
        own = [point for point in points if point["share"] == share]
        fits = fit_levels(own, LAWS)
        if fits is None:
            return Judgement(f"too few limits were found at a share of {share:g}", "inconclusive")
        level = fits[CLAIM]
        levels.append(level)
        lead += fits[LOGARITHM]["squares"] - level["squares"]
        ends = [point for point in own if point["stored"]]
        texts.append(
            f"top {share:g}: n/d² {ends[0]['stored'] / ends[0]['size']:.3f} at d = {ends[0]['dim']}, "
            f"{ends[-1]['stored'] / ends[-1]['size']:.3f} at d = {ends[-1]['dim']}; over (P3) {level['level']:.3f} "
            f"[{level['low']:.3f}, {level['high']:.3f}], so {critical_load(share):.3f} becomes "
            f"{critical_load(share) * level['level']:.3f}"
        )
    text = "; ".join(texts) + f"; (P3) is {lead:+.1f} ahead of n ln n as d²"
    ahead = is_ahead(lead)
    outside = any(level["high"] < LEAST or level["low"] > MOST for level in levels)
    inside = all(level["low"] >= LEAST and level["high"] <= MOST for level in levels)
    return Judgement.by(text, supported=inside and ahead is True, refuted=outside or ahead is False)


def power(size: Size) -> Power:
    """The power if (P3) is right, and if the load or the form is another."""
    places = [place_of(dim, share) for share in SHARES for dim in DIMS[size]]
    middle = DIMS[size][len(DIMS[size]) // 2]

    def drawn(law: Callable[[int, float], float]) -> Draw:
        items = [law(place["dim"], place["share"]) for place in places]
        return simulate_limits(size, places, {"points": items}, SEEDS[size], SCATTER)

    def with_logarithm(dim: int, share: float) -> float:
        at = items_at(middle, share)
        return items_by_law(at * math.log(at) * (dim / middle) ** 2, 1.0)

    return rehearse(
        judge_all,
        drawn(items_at),
        {
            LOGARITHM: drawn(with_logarithm),
            "n as d^1.5": drawn(lambda dim, share: items_at(middle, share) * (dim / middle) ** 1.5),
            "1.25 times the load": drawn(lambda dim, share: 1.25 * items_at(dim, share)),
            "0.8 times the load": drawn(lambda dim, share: 0.8 * items_at(dim, share)),
            "one load for all shares": drawn(lambda dim, share: items_at(dim, 0.25)),
        },
        note=f"seeds scatter by {SCATTER:.0%} about (P3)",
    )


def draw(numbers: Numbers, figure: Any) -> None:
    """The load n/d^2 over d at each share, with (P3) and where it ends."""
    axes = figure.add_subplot()
    known = [point for point in numbers["points"] if point["stored"]]
    dims = sorted({point["dim"] for point in known})
    wide = [*dims, *(round(max(dims) * 2 ** (step / 2)) for step in range(1, 9))]
    values = []
    for at, share in enumerate(SHARES):
        own = [point for point in known if point["share"] == share]
        loads = [{key: point[key] / point["size"] for key in ("stored", "low", "high")} for point in own]
        draw_estimates(axes, [point["dim"] for point in own], loads, "stored", f"among the top {share:g}", f"C{at}")
        way = [items_at(dim, share) / dim**2 for dim in wide]
        draw_law(axes, wide, way, "(P3), not fitted" if not at else None)
        axes.axhline(critical_load(share), color=f"C{at}", linewidth=0.8, linestyle=":")
        values += [*way, critical_load(share), *(load[end] for load in loads for end in ("low", "high"))]
    log_axes(axes, wide, values)
    ticks_at(axes, "x", [*dims, 64, 128, 256])
    axes.set_title("dotted: the load for large d, (P2)", fontsize=8)
    finish(axes, "d", "pairs over weights, n/d²")


STUDY = Study(
    id="lin-listwise",
    revision=1,
    source="paper C (abstract)",
    place="version 1: d² of order n under the tail-average margin, with a critical load in closed form. The abstract "
    "does not give that form: (P2) is reported by notes on the paper, and (P3), for finite sizes, is ours",
    statement="If the answer need only be among the strongest of its competitors, a matrix holds n in proportion to "
    "d², without a logarithm.",
    expected="limits at (P3), whose n/d² goes to 0.658, 0.388 and 0.246 for the top 0.5, 0.25 and 0.1",
    rule="Limits of all base seeds' seeds in one, n being the most pairs for which some matrix lifts every own score "
    "above the average of the top share of its competitors', each with a certificate. One constant times (P3) for each "
    "share; and the same with n ln n as d², by Akaike's criterion over all shares, decisive at 4. Supported if (P3) is "
    "decisively ahead and each constant's 95 % interval lies within 0.9 to 1.1. Refuted if n ln n is decisively ahead, "
    "or if an interval lies outside.",
    measure=measure,
    judge_all=judge_all,
    draw=draw,
    power=power,
)
