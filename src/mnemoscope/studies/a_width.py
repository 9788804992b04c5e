"""Paper A: with an MLP, capacity is in the product m d."""

from typing import Any

from mnemoscope.experiments.critical import critical_many
from mnemoscope.spec import Retrieval
from mnemoscope.studies.base import Bench, Judgement, Numbers, Size, Study, within
from mnemoscope.studies.scaling_fit import draw_points, fit_growth, scale_axes

# Attention is given, so that what is measured is the store alone.
BASE: dict[Size, Retrieval] = {
    "quick": Retrieval(
        vocab=128, dim=16, length=4, samples=6000, width=16, activation="hermite3",
        attention="locked",
    ),
    "full": Retrieval(
        vocab=512, dim=32, length=8, samples=65536, width=64, activation="hermite3",
        attention="locked",
    ),
}  # fmt: skip
DIMS: dict[Size, tuple[int, ...]] = {"quick": (20, 26, 34, 44), "full": (48, 64, 96, 128)}
MOST: dict[Size, int] = {"quick": 1024, "full": 8192}


def measure(size: Size, bench: Bench) -> Numbers:
    """The width at which half of the labels are named, over d."""
    specs = [BASE[size].replace(dim=d) for d in DIMS[size]]
    found = critical_many(
        specs, "width", ranges=[(8, MOST[size])] * len(specs), use_theory=False, most_seeds=8,
        first_seed=bench.seed, **bench.tools,
    )  # fmt: skip
    points = [
        {"size": one.spec.dim, "stored": one.estimate, "low": one.low, "high": one.high,
         "status": one.status}
        for one in found
    ]  # fmt: skip
    return {"vocab": BASE[size].vocab, "points": points, "fit": fit_growth(points, log=False)}


def judge(numbers: Numbers) -> Judgement:
    """By the power of d in the critical m."""
    fit = numbers["fit"]
    if fit is None:
        return Judgement("too few critical widths were found", "inconclusive")
    known = [one for one in numbers["points"] if one["stored"]]
    V = numbers["vocab"]
    products = ", ".join(
        f"{one['size'] * one['stored'] / V:.1f} at d = {one['size']}" for one in known
    )
    power = f"{fit['power']:.2f} [{fit['low']:.2f}, {fit['high']:.2f}]"
    said = f"critical m goes as d^{power}; m d / V is {products}"
    return Judgement(said, within(fit["low"], fit["high"], -1.5, -0.5))


def draw(numbers: Numbers, figure: Any) -> None:
    """Critical width against d, with the line m d = constant."""
    axes = figure.add_subplot()
    points = [one for one in numbers["points"] if one["stored"]]
    draw_points(axes, points, "critical m", "C0")
    if points:
        middle = points[len(points) // 2]
        x = [one["size"] for one in points]
        y = [middle["size"] * middle["stored"] / one for one in x]
        axes.plot(x, y, "--", color="black", linewidth=0.9, label="m d = constant")
    scale_axes(axes, points, "dimension, d", "critical width, m")
    axes.legend(fontsize=7)


STUDY = Study(
    id="a-width",
    source="paper A (statement)",
    place="phase diagram of m d",
    statement="With an MLP, capacity is in the product m d: a narrower embedding is made up for "
    "by a wider MLP.",
    expected="critical m as d^-1",
    rule="Power of d in the width at which half of the labels are named, attention given, "
    "hermite3. Supported if its 95 % interval lies within -1.5 to -0.5, refuted if it lies "
    "outside.",
    measure=measure,
    judge=judge,
    draw=draw,
)
