r"""Paper C: outer products recall all pairs at a scale of d^2 = n ln n, through a sharp transition.

The abstract has Gaussian pairs, the scale and the transition. It does not state a constant; notes on the paper report
d^2 ~ 8 n ln n. On the sphere `b-hebbian` judges that constant. Here lengths vary, and at sizes that can be run they
cost more than the logarithm does. So limits are held against a form of ours for finite sizes. With a = |e_x|^2 and b =
|u_x|^2, both chi-squared with mean 1, and g ~ N(0, 1), an item's own logit and each of the n - 1 wrong ones are

    a b + g sqrt(a b n)/d   and   N(0, a n/d^2 + a/d + a^2 b/d),                             (C1)

and ln E, E the mean number of items that are wrong, is minus Euler's constant at the first error, on average over
seeds, with a standard deviation of pi/sqrt(6). The limit of (C1) is d^2 = 8 n ln n.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import log_ndtr

from mnemoscope.spec import Memory
from mnemoscope.studies.base import BASES, Bench, Judgement, Numbers, Power, Size, Study, Verdict, all_agree
from mnemoscope.studies.one_constant import fit_levels, is_ahead, lead_of
from mnemoscope.studies.panels import draw_law, draw_limits, finish, finish_limits, log_axes
from mnemoscope.studies.power import Draw, rehearse
from mnemoscope.studies.seed_limits import limit_point, pool_limits, search_limits
from mnemoscope.theory.associative import HEBBIAN_ALL
from mnemoscope.ui.figures.canvas import ticks_at

DIMS: dict[Size, tuple[int, ...]] = {"quick": (45, 64, 91, 128, 181, 256), "full": (64, 128, 256, 512, 1024, 2048)}
SEEDS: dict[Size, int] = {"quick": 12, "full": 16}
RESOLUTION = 0.04
LEAST, MOST = 0.85, 1.15
NODES, WIDEST = 61, 10.0
# The standard deviation and the kurtosis of ln E at the first error.
SCATTER_OF_LOG, KURTOSIS = math.pi / math.sqrt(6), 5.4
CLAIM = "(C1)"


@lru_cache(maxsize=4096)
def expected_wrong(items: float, dim: int) -> float:
    """E of (C1): the mean number of items that are wrong."""
    steps = np.linspace(-WIDEST, WIDEST, NODES)
    squares = np.exp(np.minimum(math.sqrt(2 / dim) * steps, 3.0))
    density = dim / 2 * (np.log(squares) - squares + 1)
    weight = np.exp(density)
    weight, normal = weight / weight.sum(), np.exp(-(steps**2) / 2) / np.exp(-(steps**2) / 2).sum()
    a, b, g = np.meshgrid(squares, squares, steps, indexing="ij", sparse=True)
    own = a * b + g * np.sqrt(a * b * items) / dim
    wrong = a * items / dim**2 + a / dim + a**2 * b / dim
    missed = -np.expm1((items - 1) * log_ndtr(own / np.sqrt(wrong)))
    return items * float(np.einsum("abg,a,b,g->", missed, weight, weight, normal))


@lru_cache(maxsize=256)
def items_at(dim: int) -> float:
    """The items up to which all are right, by (C1)."""

    def excess(log_items: float) -> float:
        return math.log(max(expected_wrong(math.exp(log_items), dim), 1e-300)) + float(np.euler_gamma)

    return math.exp(float(brentq(excess, math.log(2.0), 2 * math.log(dim))))  # pyright: ignore[reportArgumentType]


def width_at(dim: int) -> float:
    """The standard deviation over seeds of ln n at the first error, by (C1)."""
    items, step = items_at(dim), 1.05
    slope = math.log(expected_wrong(items * step, dim) / expected_wrong(items / step, dim)) / (2 * math.log(step))
    return SCATTER_OF_LOG / slope


LAWS: dict[str, Callable[[Mapping[str, Any]], float]] = {
    CLAIM: lambda place: items_at(place["dim"]),
    "n as d²": lambda place: float(place["dim"]) ** 2,
    "n as d^1.5": lambda place: float(place["dim"]) ** 1.5,
    "n as d": lambda place: float(place["dim"]),
}


def measure(size: Size, bench: Bench) -> Numbers:
    """Every seed's largest number of pairs that are all recalled, Gaussian embeddings."""
    specs = [Memory(items=2, dim=d, embedding="gaussian") for d in DIMS[size]]
    points = search_limits(
        bench, specs, 1.0, RESOLUTION, SEEDS[size], lambda spec: {"dim": spec.dim, "size": spec.dim**2}
    )
    return {"points": points}


def widths(points: Sequence[Mapping[str, Any]]) -> list[dict[str, float]]:
    """The spread of ln n over seeds at every d, and its standard error as a share of it."""
    rows = []
    for point in points:
        logs = [math.log(limit) for limit in point["each"] if limit]
        if len(logs) >= 3 and np.std(logs) > 0:
            error = math.sqrt((KURTOSIS - 1) / 4 / (len(logs) - 1))
            rows.append({"dim": point["dim"], "width": float(np.std(logs, ddof=1)), "error": error})
    return rows


def width_power(rows: Sequence[Mapping[str, float]]) -> dict[str, float] | None:
    """The power of d in the transition's width, its 95 % interval, and (C1)'s power on the same sizes."""
    if len(rows) < 4:
        return None
    x = np.log([row["dim"] for row in rows])
    error = np.array([row["error"] for row in rows])
    weight = 1 / error**2
    x = x - weight @ x / weight.sum()

    def slope(values: list[float]) -> float:
        return float(weight * x @ np.log(values) / (weight @ x**2))

    found, half = slope([row["width"] for row in rows]), 1.96 / math.sqrt(weight @ x**2)
    return {
        "power": found,
        "low": found - half,
        "high": found + half,
        "theory": slope([width_at(int(row["dim"])) for row in rows]),
    }


def judge_all(all_numbers: Sequence[Numbers]) -> Judgement:
    """By the form that fits the limits best, its level, and whether the transition narrows."""
    points = pool_limits([numbers["points"] for numbers in all_numbers], ("dim",))
    fits, narrowing = fit_levels(points, LAWS), width_power(widths(points))
    known = [point for point in points if point["stored"]]
    text = "d²/(n ln n) " + ", ".join(
        f"{p['size'] / (p['stored'] * math.log(p['stored'])):.2f} at d = {p['dim']}" for p in known
    )
    if fits is None or narrowing is None:
        return Judgement(f"{text}; too few sizes", "inconclusive")
    level, (lead, rival) = fits[CLAIM], lead_of(fits, CLAIM)
    text += (
        f"; n over (C1) {level['level']:.3f} [{level['low']:.3f}, {level['high']:.3f}], so {HEBBIAN_ALL:g} becomes "
        f"{HEBBIAN_ALL / level['level']:.2f}; (C1) is {lead:+.1f} ahead of {rival}; the transition's width in ln n "
        f"goes as d^{narrowing['power']:.2f} [{narrowing['low']:.2f}, {narrowing['high']:.2f}, "
        f"(C1) {narrowing['theory']:.2f}]"
    )
    return Judgement(text, all_agree([_judge_scale(level, is_ahead(lead)), _judge_width(narrowing)]))


def _judge_scale(level: Mapping[str, float], ahead: bool | None) -> Verdict:
    if ahead is False or level["high"] < LEAST or level["low"] > MOST:
        return "refuted"
    return "supported" if ahead and level["low"] >= LEAST and level["high"] <= MOST else "inconclusive"


def _judge_width(narrowing: Mapping[str, float]) -> Verdict:
    if narrowing["high"] < 0:
        return "supported"
    return "refuted" if narrowing["low"] > narrowing["theory"] / 2 else "inconclusive"


def power(size: Size) -> Power:
    """The power if (C1) is right, and if limits grow otherwise or their spread stays as it is."""
    dims = DIMS[size]
    middle = dims[len(dims) // 2]

    def drawn(law: Callable[[int], float], width: Callable[[int], float] = width_at) -> Draw:
        places = [(d, law(d), width(d)) for d in dims]

        def draw(rng: np.random.Generator) -> list[Numbers]:
            return [{"points": [_simulate(rng, *place, SEEDS[size]) for place in places]} for _ in range(BASES[size])]

        return draw

    return rehearse(
        judge_all,
        drawn(items_at),
        {
            "n as d²": drawn(lambda d: items_at(middle) * (d / middle) ** 2),
            "n as d^1.5": drawn(lambda d: items_at(middle) * (d / middle) ** 1.5),
            "half of (C1)": drawn(lambda d: items_at(d) / 2),
            "a width that stays": drawn(items_at, lambda d: width_at(middle)),
        },
        note="seeds scatter about (C1) as first errors do, by "
        f"{width_at(dims[0]):.2f} in ln n at d = {dims[0]} and {width_at(dims[-1]):.2f} at d = {dims[-1]}",
    )


def _simulate(rng: np.random.Generator, dim: int, items: float, width: float, seeds: int) -> dict[str, Any]:
    """Limits whose ln E has the law of a first error (Gumbel's, of minima)."""
    logs = np.log(rng.exponential(size=seeds)) + float(np.euler_gamma)
    each = [items * math.exp(width * log / SCATTER_OF_LOG) for log in logs]
    return limit_point(each, RESOLUTION, dim=dim, size=dim**2)


def draw(numbers: Numbers, figure: Any) -> None:
    """Limits against d^2 with the forms, and the width of the transition."""
    left, right = figure.subplots(1, 2)
    points = numbers["points"]
    draw_limits(left, points, "outer products, all right", "C0")
    fits = fit_levels(points, LAWS)
    x = [point["size"] for point in points]
    for name, style in ((CLAIM, "-"), ("n as d²", "--")):
        level = fits[name]["level"] if fits else 1.0
        shown = f"{name}, times {level:.2f}" if name == CLAIM else name
        draw_law(left, x, [level * LAWS[name](point) for point in points], shown, style)
    finish_limits(left, points, "d², weights", "pairs recalled, n")
    rows = widths(points)
    dims, values = [row["dim"] for row in rows], [row["width"] for row in rows]
    bars = [1.96 * row["width"] * row["error"] for row in rows]
    right.errorbar(dims, values, yerr=bars, fmt="o", capsize=2, color="C0", label="over seeds")
    expected = [width_at(int(dim)) for dim in dims]
    draw_law(right, dims, expected, "by (C1)")
    log_axes(right, dims, [*values, *expected])
    ticks_at(right, "x", dims)
    finish(right, "d", "standard deviation of ln n")


STUDY = Study(
    id="lin-hebbian",
    revision=1,
    source="paper C (abstract)",
    place="version 1: d² of order n log n, reached by outer products through a sharp phase transition; the abstract "
    "gives no constant (8 is reported by notes on the paper), and the form for finite sizes is ours",
    statement="Outer products of Gaussian pairs recall all n, top-1, at a scale of d² = n ln n, through a sharp "
    "transition.",
    expected="(C1), whose limit is d² = 8 n ln n, and a transition that narrows as d grows",
    rule="Limits of all base seeds' seeds in one, n being the pairs up to which all are right. One constant times (C1) "
    "against one times d², d^1.5 and d, by Akaike's criterion, decisive at 4; and the power of d in the standard "
    "deviation over seeds of ln n. Supported if (C1) is decisively ahead with a constant whose 95 % interval lies "
    "within 0.85 to 1.15, and the power's interval lies below 0. Refuted if a rival is decisively ahead, if the "
    "constant's interval lies outside, or if the power's contains 0 or more and nothing below half of (C1)'s.",
    measure=measure,
    judge_all=judge_all,
    draw=draw,
    power=power,
)
