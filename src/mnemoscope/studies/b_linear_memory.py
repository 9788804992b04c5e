"""Paper B, Fig. 1 left: a trained linear memory stores as many items as it has weights."""

from typing import Any

import numpy as np

from mnemoscope.experiments.capacity import Capacities, capacity_many
from mnemoscope.spec import Memory
from mnemoscope.studies.base import Bench, Judgement, Numbers, Size, Study, within
from mnemoscope.studies.scaling_fit import draw_points, fit_growth, say_growth, scale_axes
from mnemoscope.theory.associative import (
    BEST_LINEAR,
    GUIDE_LINEAR,
    HEBBIAN_ALL,
    items_by_law,
)

DIMS: dict[Size, tuple[int, ...]] = {
    "quick": (8, 11, 16, 22),
    "full": (8, 11, 16, 22, 32, 45, 64, 90, 128, 181),
}
SEEDS: dict[Size, int] = {"quick": 4, "full": 5}


def measure(size: Size, bench: Bench) -> Numbers:
    """Capacities at every d: trained to 0.99, and outer products with all items right."""
    more = {"seeds": SEEDS[size], "most_seeds": SEEDS[size], "first_seed": bench.seed}
    dims = DIMS[size]
    trained = capacity_many(
        [Memory(items=2, dim=d, method="trained") for d in dims], 0.99,
        resolution=0.03, **more, **bench.tools,
    )  # fmt: skip
    written = capacity_many([Memory(items=2, dim=d) for d in dims], 1.0, **more, **bench.tools)
    return {
        "trained": points_of(trained),
        "hebbian": points_of(written),
        "fit": fit_growth(points_of(trained), log=True),
    }


def points_of(made: Capacities) -> list[dict[str, Any]]:
    """Weights of a layer against items, as plain data."""
    return [
        {
            "dim": one.spec.dim, "width": one.spec.width, "outputs": one.spec.outputs,
            "size": one.spec.dim * (one.spec.width or one.spec.dim),
            "stored": one.limits.estimate, "low": one.limits.low, "high": one.limits.high,
            "status": one.status,
        }
        for one in made.points
    ]  # fmt: skip


def judge(numbers: Numbers) -> Judgement:
    """By the power of d^2 in N ln N."""
    fit = numbers["fit"]
    said = say_growth(fit, "N ln N")
    verdict = "inconclusive" if fit is None else within(fit["low"], fit["high"], 0.9, 1.1)
    return Judgement(said, verdict)


def draw(numbers: Numbers, figure: Any) -> None:
    """Items against weights, with the laws."""
    axes = figure.add_subplot()
    draw_points(axes, numbers["trained"], "trained, 0.99 right", "C0")
    draw_points(axes, numbers["hebbian"], "outer products, all right", "C1")
    x = np.geomspace(min(one["size"] for one in numbers["trained"]),
                     max(one["size"] for one in numbers["trained"]), 60)  # fmt: skip
    laws = [(GUIDE_LINEAR, "authors' guide", "--"), (HEBBIAN_ALL, "outer products, all right", "-"),
            (BEST_LINEAR, "best, all right (conjectured)", ":")]  # fmt: skip
    if numbers["fit"]:
        laws.append((numbers["fit"]["constant"], "ours", "-."))
    for constant, name, style in laws:
        axes.plot(
            x, [items_by_law(float(one), constant) for one in x], style, color="black",
            linewidth=0.9, label=f"{name}: d² = {constant:.3g} N ln N",
        )  # fmt: skip
    scale_axes(axes, numbers["trained"] + numbers["hebbian"], "d², weights", "items stored, N")
    axes.legend(fontsize=7)


STUDY = Study(
    id="b-fig1-left",
    source="paper B",
    place="Fig. 1 left",
    statement="A trained linear memory stores a number of items proportional to its weights, up "
    "to a logarithm.",
    expected="d² = 1.3 N ln N (the authors' guide line)",
    rule="Power of d² in N ln N, N being the items at which 99 % can be trained: supported if "
    "its 95 % interval lies within 0.9 to 1.1, refuted if it lies outside.",
    measure=measure,
    judge=judge,
    draw=draw,
)
