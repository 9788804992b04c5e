"""Paper B, Fig. 4 left: the facts a transformer learns are proportional to its parameters."""

from typing import Any

import numpy as np

from mnemoscope.experiments.facts import RATES, facts_capacity_many
from mnemoscope.spec import Facts
from mnemoscope.studies.base import Bench, Judgement, Numbers, Size, Study, within
from mnemoscope.studies.scaling_fit import draw_points, fit_growth, say_growth, scale_axes
from mnemoscope.theory.associative import GUIDE_FACTS

# (d, alpha, beta): H d_h = alpha d, m = beta d. H = 4 is our choice.
SIZES: dict[Size, tuple[tuple[int, float, float], ...]] = {
    "quick": ((8, 1, 1), (8, 2, 2), (12, 1, 1), (12, 2, 2)),
    "full": ((8, 1, 1), (16, 1, 1), (32, 1, 1), (32, 2, 2), (64, 2, 2)),
}
HEADS = 4
SEEDS: dict[Size, int] = {"quick": 3, "full": 3}
RESOLUTION: dict[Size, float] = {"quick": 0.1, "full": 0.08}
# The quick size has short sequences in small batches, and gives up earlier.
TASK: dict[Size, dict[str, int]] = {
    "quick": {"length": 8, "batch": 128, "max_steps": 2**10},
    "full": {"max_steps": 2**14},
}
LEARNING: dict[Size, tuple[float, ...]] = {"quick": (1e-2,), "full": RATES}


def measure(size: Size, bench: Bench) -> Numbers:
    """How many facts each size learns to 0.99, S = R and eight answers a relation."""
    specs = [
        Facts.read({
            "subjects": 2, "relations": 2, "answers": 2, "dim": d, "heads": HEADS,
            "head_dim": max(1, int(alpha * d / HEADS)), "width": int(beta * d), **TASK[size],
        })
        for d, alpha, beta in SIZES[size]
    ]  # fmt: skip
    made = facts_capacity_many(
        specs, "equal", rates=LEARNING[size], seeds=SEEDS[size], most_seeds=SEEDS[size],
        first_seed=bench.seed, resolution=RESOLUTION[size], **bench.tools,
    )  # fmt: skip
    points = [
        {
            "dim": one.spec.dim, "width": one.spec.width, "heads": one.spec.heads,
            "head_dim": one.spec.head_dim, "size": one.spec.parameters,
            "stored": one.facts(one.limits.estimate), "low": one.facts(one.limits.low),
            "high": one.facts(one.limits.high), "status": one.limits.status,
        }
        for one in made
    ]  # fmt: skip
    return {"points": points, "fit": fit_growth(points, log=False)}


def judge(numbers: Numbers) -> Judgement:
    """By the power of the parameters."""
    fit = numbers["fit"]
    said = say_growth(fit, "facts")
    if fit is not None:
        each = [1 / fit[name] for name in ("constant", "constant_high", "constant_low")]
        said += f", that is {each[0]:.3f} facts a parameter, {each[1]:.3f} to {each[2]:.3f}"
    verdict = "inconclusive" if fit is None else within(fit["low"], fit["high"], 0.85, 1.15)
    return Judgement(said, verdict)


def draw(numbers: Numbers, figure: Any) -> None:
    """Facts against parameters."""
    axes = figure.add_subplot()
    points, fit = numbers["points"], numbers["fit"]
    for at, ratio in enumerate(sorted({one["width"] // one["dim"] for one in points})):
        some = [one for one in points if one["width"] // one["dim"] == ratio]
        draw_points(axes, some, f"α = β = {ratio}", f"C{at}")
    x = np.geomspace(min(one["size"] for one in points), max(one["size"] for one in points), 60)
    axes.plot(x, GUIDE_FACTS * x, "--", color="black", linewidth=0.9,
              label=f"authors' guide: {GUIDE_FACTS:g} facts a parameter")  # fmt: skip
    if fit:
        axes.plot(x, x / fit["constant"], "-.", color="black", linewidth=0.9,
                  label=f"ours: {1 / fit['constant']:.3g} facts a parameter")  # fmt: skip
    scale_axes(axes, points, "parameters, 4 H d_h d + 2 m d", "facts learned, S R")
    axes.legend(fontsize=7)


STUDY = Study(
    id="b-fig4-left",
    source="paper B, Fig. 4 left",
    statement="The number of facts that a one-layer transformer learns is proportional to its "
    "parameters.",
    expected="0.15 facts a parameter (the authors' guide line)",
    rule="Power of the parameters in the facts learned to 99 %: supported if its 95 % interval "
    "lies within 0.85 to 1.15, refuted if it lies outside.",
    measure=measure,
    judge=judge,
    draw=draw,
)
