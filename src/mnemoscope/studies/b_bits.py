"""Paper B: a memory of B bits stores at most B bits, tested where bits are few."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mnemoscope.experiments.quantised import bits_of_map, most_items, recall_by_bits
from mnemoscope.spec import Memory
from mnemoscope.studies.base import Bench, Earlier, Judgement, Numbers, Power, Size, Study, within
from mnemoscope.studies.panels import draw_estimates, draw_law, finish
from mnemoscope.studies.power import Draw, rehearse
from mnemoscope.studies.scaling_fit import fit_growth
from mnemoscope.studies.seed_limits import limit_point, pool_limits, simulate_limits

DIMS: dict[Size, tuple[int, ...]] = {"quick": (8, 11, 16, 22), "full": (16, 27, 45, 76, 128)}
SEEDS: dict[Size, int] = {"quick": 4, "full": 4}
BITS = (1, 2, 3, 4, 6, 8)
WHOLE = 32  # bits of an unrounded weight
METHODS = ("trained", "hebbian")
NAMES = {"trained": "trained", "hebbian": "outer products"}
# The numbers of items to try, as bits per weight.
SHARES = np.geomspace(0.03, 1.6, 16)
LEAST, MOST = 0.85, 1.15
# Standard deviation over seeds in ln N.
SCATTER = 0.15


def measure(size: Size, bench: Bench) -> Numbers:
    """The largest number of items that are all right, by bits per weight, trained and written down."""
    seeds = range(bench.seed, bench.seed + SEEDS[size])
    points = []
    for dim in DIMS[size]:
        tried = sorted({max(2, round(most_items(dim**2, share))) for share in SHARES})
        for method in METHODS:
            right = np.stack(
                [recall_by_bits(Memory(items=items, dim=dim, method=method), seeds, BITS) >= 1 for items in tried]
            )
            for column, bits in enumerate((*BITS, WHOLE)):
                each = [mean_limit(tried, right[:, row, column]) for row in range(len(seeds))]
                points.append(limit_point(each, 0.0, method=method, dim=dim, bits=bits, size=dim**2))
    return {"points": points}


def mean_limit(tried: Sequence[int], right: np.ndarray) -> float | None:
    """The N at which a seed goes from right to wrong: the area under its answers over ln N.

    One item is always right. None if the largest number still is: the limit lies beyond.
    """
    if right[-1]:
        return None
    logs, answers = np.log([1, *tried]), np.array([1.0, *right.astype(float)])
    return math.exp(float(np.sum(np.diff(logs) * (answers[1:] + answers[:-1]) / 2)))


def judge_all(all_numbers: Sequence[Numbers]) -> Judgement:
    """Is no limit beyond the bits, and are stored bits proportional to d^2 at one bit per weight?"""
    pooled = pool_limits([numbers["points"] for numbers in all_numbers], ("method", "dim", "bits"))
    points = [point for point in pooled if point["stored"]]
    beyond = [p for p in points if bits_of_map(p["low"]) > p["bits"] * p["size"]]
    signs = [p for p in points if p["bits"] == 1 and p["method"] == "trained"]
    fit = fit_growth([_in_bits(point) for point in signs])
    if fit is None:
        return Judgement("too few limits were found", "inconclusive")
    used = [bits_of_map(point["stored"]) / point["size"] for point in signs]
    text = (
        f"trained, one bit a weight: log2 N! grows as (d²)^{fit['power']:.3f} [{fit['low']:.3f}, "
        f"{fit['high']:.3f}] and uses {min(used):.1%} to {max(used):.1%} of the bits; "
        + "; ".join(_enough_bits(points, method) for method in METHODS)
    )
    if beyond:
        return Judgement(f"{text}; {len(beyond)} limits beyond the bits", "refuted")
    return Judgement(text, within(fit["low"], fit["high"], LEAST, MOST))


def _in_bits(point: dict[str, Any]) -> dict[str, Any]:
    return {**point, **{key: bits_of_map(point[key]) for key in ("stored", "low", "high")}}


def _enough_bits(points: Sequence[dict[str, Any]], method: str) -> str:
    """The bits beyond which more precision adds less than 10 %, at the largest d."""
    own = [point for point in points if point["method"] == method]
    if not own:
        return f"{NAMES[method]}: no limits"
    dim = max(point["dim"] for point in own)
    by_bits = {point["bits"]: point["stored"] for point in own if point["dim"] == dim}
    most = max(by_bits.values())
    enough = min(bits for bits, stored in by_bits.items() if stored >= most / 1.1)
    row = ", ".join(f"{stored:.0f} at {bits}" for bits, stored in sorted(by_bits.items()))
    return f"{NAMES[method]}, d = {dim}, N by bits {row}: {enough} are enough"


def power(size: Size) -> Power:
    """The power if a tenth of the bits is used at every d, and if items grow in another way."""
    middle = float(np.sqrt(DIMS[size][0] * DIMS[size][-1]))
    places = [{"method": "trained", "dim": d, "bits": 1, "size": d * d} for d in DIMS[size]]

    def drawn(law: Callable[[int], float]) -> Draw:
        return simulate_limits(size, places, {"points": [law(d) for d in DIMS[size]]}, SEEDS[size], SCATTER)

    at_middle = most_items(round(middle**2), 0.1)
    rivals = {
        "N as d": drawn(lambda d: at_middle * d / middle),
        "N as d^3": drawn(lambda d: at_middle * (d / middle) ** 3),
        "more than the bits": drawn(lambda d: most_items(d * d, 1.5)),
    }
    note = f"seeds scatter by {SCATTER:.0%} about a tenth of the bits at one bit a weight"
    return rehearse(judge_all, drawn(lambda d: most_items(d * d, 0.1)), rivals, note=note)


def draw(numbers: Numbers, figure: Any) -> None:
    """Items against bits at the largest d, with the bound, and the share of the bits used."""
    left, right = figure.subplots(1, 2)
    known = [point for point in numbers["points"] if point["stored"]]
    dims = sorted({point["dim"] for point in known})
    for method, color in zip(METHODS, ("C0", "C1"), strict=True):
        points = [p for p in known if p["method"] == method and p["dim"] == dims[-1]]
        draw_estimates(left, _places(points), points, "stored", NAMES[method], color, "o-")
    bound = [most_items(dims[-1] ** 2, bits) for bits in BITS]
    draw_law(left, range(len(BITS)), bound, "log2 N! = b d²", "--")
    rounded = [p for p in known if p["method"] == "trained" and p["bits"] != WHOLE]
    for at, dim in enumerate(dims):
        points = [point for point in rounded if point["dim"] == dim]
        shares = [bits_of_map(p["stored"]) / (p["bits"] * p["size"]) for p in points]
        right.plot(_places(points), shares, "o-", color=f"C{at + 2}", label=f"d = {dim}")
    left.set_yscale("log")
    left.set_title(f"d = {dims[-1]}, all right", fontsize=9)
    right.set_title("trained, rounded", fontsize=9)
    right.set_ylim(0, None)
    for axes, name in ((left, "items stored, N"), (right, "share of the bits used, log2 N! / (b d²)")):
        axes.set_xticks(range(len(BITS) + 1), [*map(str, BITS), "all"])
        finish(axes, "bits a weight, b", name)


def _places(points: Sequence[dict[str, Any]]) -> list[int]:
    return [(*BITS, WHOLE).index(point["bits"]) for point in points]


STUDY = Study(
    id="b-bits",
    revision=2,
    source="paper B",
    place="information-theoretic bound, B >= N log M, and storage that is near it up to logarithms",
    statement="A memory stores no more than its bits, whatever it is; and a linear memory stores in proportion to "
    "them, up to logarithms, at any fixed number of bits a weight.",
    expected="log2 N! below b d², and in proportion to d² at one bit a weight",
    rule="Matrices rounded to b = 1 to 8 bits a weight after they were trained, or written down as outer products; N "
    "is the items up to which all are right, limits of all base seeds' seeds in one. Refuted if the 95 % interval of a "
    "limit lies beyond log2 N! = b d². Otherwise by the power of d² in log2 N! of trained matrices at one bit a "
    "weight: supported if its 95 % interval lies within 0.85 to 1.15, refuted if it lies outside.",
    measure=measure,
    judge_all=judge_all,
    draw=draw,
    power=power,
    history=(
        Earlier(
            date="2026-11-18",
            statement="N facts with M answers take N log2 M bits, whatever the model: parameters times their bits "
            "bound what is stored.",
            rule="N log2 M over the parameters, N being the items that are all right. Supported if all 95 % intervals "
            "lie below 32, refuted if one lies above.",
            measured="bits a parameter, all right: outer products 0.15 at d = 16, trained matrix 1.46 at d = 16, "
            "trained MLP 1.95 at d = 16, outer products 0.13 at d = 32, trained matrix 1.26 at d = 32, trained MLP "
            "2.14 at d = 32, outer products 0.14 at d = 64, trained matrix 0.89 at d = 64, trained MLP 2.13 at d = 64",
            verdict="supported",
            reason="It could not fail: with 32 bits a weight nothing comes near the bound. With few bits the bound is "
            "where full precision gets to, and there is something to lose.",
        ),
    ),
)
