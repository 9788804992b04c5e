"""Paper B, Fig. 4 left: the facts a transformer learns are proportional to its parameters."""

from typing import Any

import numpy as np

from mnemoscope.experiments.facts import RATES, FactsCapacity, facts_capacity_many
from mnemoscope.spec import Facts
from mnemoscope.studies.base import Bench, Judgement, Numbers, Size, Study, within
from mnemoscope.studies.scaling_fit import draw_points, fit_growth, say_growth, scale_axes
from mnemoscope.theory.associative import GUIDE_FACTS

# (d, alpha): H d_h = m = alpha d.
SIZES: dict[Size, tuple[tuple[int, float], ...]] = {
    "quick": ((8, 1), (8, 2), (12, 1), (12, 2)),
    "full": ((8, 0.5), (8, 1), (16, 1), (32, 1), (64, 1)),
}
# How many heads the authors took is not known to us. Only the end token asks, so Q and K act
# through one vector of d numbers for each head, K^T Q e_EOS, whatever d_h is: with H fixed, ever
# more of the parameters add nothing to what can be computed as d grows. So heads are small here,
# and their number grows. This series decides: it was chosen at d = 32, where 16 heads of 2 learned
# 900 facts and 4 heads of 8 did not learn 441 (docs/facts.md), before it was run at any other size
# but d = 8, where both series are one.
HEAD_DIM = 2
# Beside it, and without a say: as many heads at every d. At d = 8 that is the same model.
FEW_HEADS = 4
FEW: dict[Size, tuple[tuple[int, float], ...]] = {
    "quick": (),
    "full": ((8, 1), (16, 1), (32, 1), (64, 1)),
}
SEEDS: dict[Size, int] = {"quick": 3, "full": 3}
# In subjects. What is asked last fails as often as not, and costs most: it was 0.08 at first.
RESOLUTION: dict[Size, float] = {"quick": 0.1, "full": 0.12}
# The quick size has short sequences in small batches. Both give up before the authors' 2^14 steps:
# a training that fails takes all of them. `steps` is what the slowest took that succeeded.
TASK: dict[Size, dict[str, int]] = {
    "quick": {"length": 8, "batch": 128, "max_steps": 2**10},
    "full": {"max_steps": 2**13},
}
LEARNING: dict[Size, tuple[float, ...]] = {"quick": (1e-2,), "full": RATES}


def _model(size: Size, d: int, span: int, heads: int | None) -> Facts:
    heads = heads or span // HEAD_DIM
    return Facts.read({
        "subjects": 2, "relations": 2, "answers": 2, "dim": d, "heads": heads,
        "head_dim": span // heads, "width": span, **TASK[size],
    })  # fmt: skip


def _point(one: FactsCapacity) -> dict[str, Any]:
    reached = [two.metrics["steps"] or 0 for two in one.trials if two.status == "ok"]
    return {
        "dim": one.spec.dim, "width": one.spec.width, "heads": one.spec.heads,
        "head_dim": one.spec.head_dim, "size": one.spec.parameters,
        "stored": one.facts(one.limits.estimate), "low": one.facts(one.limits.low),
        "high": one.facts(one.limits.high), "status": one.limits.status,
        "steps": max(reached, default=None),
    }  # fmt: skip


def measure(size: Size, bench: Bench) -> Numbers:
    """How many facts each size learns to 0.99, S = R and eight answers a relation."""
    many = [_model(size, d, int(alpha * d), None) for d, alpha in SIZES[size]]
    few = [_model(size, d, int(alpha * d), FEW_HEADS) for d, alpha in FEW[size]]
    made = facts_capacity_many(
        [*many, *few], "equal", rates=LEARNING[size], seeds=SEEDS[size], most_seeds=SEEDS[size],
        first_seed=bench.seed, resolution=RESOLUTION[size], **bench.tools,
    )  # fmt: skip
    points = [_point(one) for one in made]
    numbers: Numbers = {"points": points[: len(many)], "few": points[len(many) :]}
    return numbers | {
        "fit": fit_growth(numbers["points"], log=False),
        "few_fit": fit_growth(numbers["few"], log=False),
    }


def judge(numbers: Numbers) -> Judgement:
    """By the power of the parameters."""
    fit = numbers["fit"]
    said = say_growth(fit, "facts")
    if fit is not None:
        each = [1 / fit[name] for name in ("constant", "constant_high", "constant_low")]
        said += f", that is {each[0]:.3f} facts a parameter, {each[1]:.3f} to {each[2]:.3f}"
    slowest = max((one["steps"] or 0 for one in numbers["points"]), default=0)
    said += f"; the slowest success took {slowest:,} steps"
    if numbers["few"]:
        said += f". With {FEW_HEADS} heads at every d: {say_growth(numbers['few_fit'], 'facts')}"
    verdict = "inconclusive" if fit is None else within(fit["low"], fit["high"], 0.85, 1.15)
    return Judgement(said, verdict)


def draw(numbers: Numbers, figure: Any) -> None:
    """Facts against parameters."""
    axes = figure.add_subplot()
    points, fit = numbers["points"], numbers["fit"]
    draw_points(axes, points, f"heads of {HEAD_DIM}", "C0")
    draw_points(axes, numbers["few"], f"{FEW_HEADS} heads", "C1")
    x = np.geomspace(min(one["size"] for one in points), max(one["size"] for one in points), 60)
    axes.plot(x, GUIDE_FACTS * x, "--", color="black", linewidth=0.9,
              label=f"authors' guide: {GUIDE_FACTS:g} facts a parameter")  # fmt: skip
    if fit:
        axes.plot(x, x / fit["constant"], "-.", color="black", linewidth=0.9,
                  label=f"ours: {1 / fit['constant']:.3g} facts a parameter")  # fmt: skip
    scale_axes(
        axes, [*points, *numbers["few"]], "parameters, 4 H d_h d + 2 m d", "facts learned, S R"
    )
    axes.legend(fontsize=7)


STUDY = Study(
    id="b-fig4-left",
    source="paper B",
    place="Fig. 4 left",
    statement="The number of facts that a one-layer transformer learns is proportional to its "
    "parameters.",
    expected="0.15 facts a parameter (the authors' guide line)",
    rule="Power of the parameters in the facts learned to 99 % within 2^13 steps (quick: 2^10), "
    "with heads of two dimensions: supported if its 95 % interval lies within 0.85 to 1.15, "
    "refuted if it lies outside.",
    measure=measure,
    judge=judge,
    draw=draw,
)
