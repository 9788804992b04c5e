"""Paper B, Fig. 4 left: the facts a transformer learns are proportional to its parameters."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from mnemoscope.experiments.capacity import LimitOptions
from mnemoscope.experiments.facts import FactsCapacity, facts_capacity_many
from mnemoscope.spec import Facts
from mnemoscope.studies.base import Bench, Earlier, Judgement, Numbers, Power, Size, Study, within
from mnemoscope.studies.panels import draw_law, draw_limits, finish_limits, sizes_along
from mnemoscope.studies.power import Draw, rehearse
from mnemoscope.studies.scaling_fit import fit_growth, say_growth
from mnemoscope.studies.seed_limits import limit_point, pool_limits, simulate_limits
from mnemoscope.theory.associative import GUIDE_FACTS

# (d, alpha): H d_h = m = alpha d.
SIZES: dict[Size, tuple[tuple[int, int], ...]] = {
    "quick": ((8, 1), (8, 2), (12, 1), (12, 2)),
    "full": ((16, 1), (32, 1), (64, 1), (90, 1), (128, 1)),
}
# We do not know how many heads the authors used. Only the end token asks, so Q and K act through one d-vector per head,
# K^T Q e_EOS, whatever d_h is: with H fixed, a growing share of the parameters adds nothing as d grows. So heads are
# small here, and their number grows. With 4 heads at every d, the power was 0.85 or less (docs/facts.md).
HEAD_DIM = 2
SEEDS: dict[Size, int] = {"quick": 3, "full": 2}
# Of the number of subjects; facts go as its square.
RESOLUTION: dict[Size, float] = {"quick": 0.1, "full": 0.03}
# The quick size has short sequences in small batches. Both sizes give up before the authors' 2^14 steps, since a
# training that fails takes all of them. `steps` in a point is that of the slowest success.
TASK: dict[Size, dict[str, int]] = {
    "quick": {"length": 8, "batch": 128, "max_steps": 2**10},
    "full": {"max_steps": 2**13},
}
# The two larger of the authors' three rates; the smaller one is tried where the larger one fails. The larger one is
# enough up to d = 90 but not at d = 128: there it learned 7,000 facts within 1,760 steps or none, half as many per
# parameter as at smaller d.
RATES: dict[Size, tuple[float, ...]] = {"quick": (1e-2,), "full": (1e-2, 3e-3)}
LEAST, MOST = 0.9, 1.1
# The power from this d on is reported as well, but does not count for the verdict.
LARGE = 32
# Standard deviations in ln(facts): over seeds, and of a size about one law for all sizes.
SCATTER, SIZE_SCATTER = 0.06, 0.03


def _model(size: Size, d: int, span: int) -> Facts:
    heads = {"heads": span // HEAD_DIM, "head_dim": HEAD_DIM}
    return Facts.read({"subjects": 2, "relations": 2, "answers": 2, "dim": d, "width": span, **heads, **TASK[size]})


def _point(size: Size, capacity: FactsCapacity) -> dict[str, Any]:
    reached = [trial.metrics["steps"] or 0 for trial in capacity.trials if trial.status == "ok"]
    spec, each = capacity.spec, [capacity.facts(subjects) for subjects in capacity.limits.each]
    place = {name: getattr(spec, name) for name in ("dim", "width", "heads", "head_dim")}
    place |= {"size": spec.parameters, "steps": max(reached, default=None)}
    return limit_point(each, (1 + RESOLUTION[size]) ** 2 - 1, **place)


def measure(size: Size, bench: Bench) -> Numbers:
    """How many facts each size learns to 0.99, with S = R and eight answers per relation."""
    models = [_model(size, d, alpha * d) for d, alpha in SIZES[size]]
    search: LimitOptions = {"resolution": RESOLUTION[size], "first_seed": bench.seed, "tools": bench.tools}
    search |= {"seeds": SEEDS[size], "most_seeds": SEEDS[size]}
    capacities = facts_capacity_many(models, "equal", rates=RATES[size], **search)
    return {"points": [_point(size, capacity) for capacity in capacities]}


def judge_all(all_numbers: Sequence[Numbers]) -> Judgement:
    """By the power of the parameters."""
    points = pool_limits([numbers["points"] for numbers in all_numbers], ("size",))
    fit = fit_growth(points)
    text = say_growth(fit, "facts")
    if fit is not None:
        each = [1 / fit[name] for name in ("constant", "constant_high", "constant_low")]
        text += f", that is {each[0]:.3f} facts a parameter, {each[1]:.3f} to {each[2]:.3f}"
    large = fit_growth([point for point in points if point["dim"] >= LARGE])
    if large is not None:
        text += f"; from d = {LARGE} on {large['power']:.3f} [{large['low']:.3f}, {large['high']:.3f}]"
    slowest = max((point["steps"] or 0 for numbers in all_numbers for point in numbers["points"]), default=0)
    text += f"; the slowest success took {slowest:,} steps"
    return Judgement(text, "inconclusive" if fit is None else within(fit["low"], fit["high"], LEAST, MOST))


def power(size: Size) -> Power:
    """The power if facts follow the authors' guide line, and if they follow another power of the parameters."""
    models = [_model(size, d, alpha * d) for d, alpha in SIZES[size]]
    middle = float(np.exp(np.mean([np.log(model.parameters) for model in models])))
    places = [{"dim": model.dim, "size": model.parameters, "steps": None} for model in models]

    def drawn(of_size: float) -> Draw:
        law = [GUIDE_FACTS * middle * (model.parameters / middle) ** of_size for model in models]
        return simulate_limits(size, places, {"points": law}, SEEDS[size], SCATTER, SIZE_SCATTER)

    rivals = {f"parameters^{p:g}": drawn(p) for p in (0.5, 0.75, 1.25, 1.5)}
    note = f"seeds scatter by {SCATTER:.0%} and sizes by {SIZE_SCATTER:.0%} about the authors' guide line"
    return rehearse(judge_all, drawn(1.0), rivals, note=note)


def draw(numbers: Numbers, figure: Any) -> None:
    """Facts against parameters."""
    axes = figure.add_subplot()
    points = numbers["points"]
    fit = fit_growth(points)
    draw_limits(axes, points, f"heads of {HEAD_DIM}", "C0")
    x = sizes_along(points)
    draw_law(axes, x, GUIDE_FACTS * x, f"authors' guide: {GUIDE_FACTS:g} facts a parameter", "--")
    if fit:
        draw_law(axes, x, x / fit["constant"], f"ours: {1 / fit['constant']:.3g} facts a parameter", "-.")
    finish_limits(axes, points, "parameters, 4 H d_h d + 2 m d", "facts learned, S R")


STUDY = Study(
    id="b-fig4-left",
    revision=3,
    source="paper B",
    place="Fig. 4 left",
    statement="The number of facts that a one-layer transformer learns is proportional to its parameters.",
    expected="0.15 facts a parameter (the authors' guide line)",
    rule="Limits of all base seeds' seeds in one. Power of the parameters in the facts learned to 99 % within 2^13 "
    "steps at a rate of 0.01 or 0.003 (quick: 2^10, 0.01), with heads of two dimensions and d from 16 to 128 (quick: 8 "
    "and 12): supported if its 95 % interval lies within 0.9 to 1.1, refuted if it lies outside.",
    measure=measure,
    judge_all=judge_all,
    draw=draw,
    power=power,
    history=(
        Earlier(
            date="2026-11-18",
            rule="Limits of all base seeds' seeds in one. Power of the parameters in the facts learned to 99 % within "
            "2^13 steps (quick: 2^10) at a rate of 0.01, with heads of two dimensions and d from 16 to 128 (quick: 8 "
            "and 12): supported if its 95 % interval lies within 0.9 to 1.1, refuted if it lies outside.",
            measured="facts grows as size^0.947 [0.553, 1.341] over 5 sizes; size / facts 7.35, 5.50 to 13.31, that is "
            "0.136 facts a parameter, 0.075 to 0.182; from d = 32 on 0.778 [-0.059, 1.615]; the slowest success took "
            "8,128 steps",
            verdict="inconclusive",
            reason="At d = 128 the rate was too large: trainings learned about 7,000 facts within 1,760 steps or "
            "failed, where 0.15 facts a parameter are 14,700.",
        ),
        Earlier(
            date="2026-11-18",
            rule="Power of the parameters in the facts learned to 99 % within 2^13 steps (quick: 2^10), with heads of "
            "two dimensions: supported if its 95 % interval lies within 0.85 to 1.15, refuted if it lies outside.",
            measured="facts grows as size^1.127 [1.004, 1.250] over 5 sizes; size / facts 8.09, 5.81 to 11.44, that is "
            "0.124 facts a parameter, 0.087 to 0.172; the slowest success took 5,696 steps. With 4 heads at every d: "
            "facts grows as size^0.854 [0.435, 1.273] over 4 sizes; size / facts 15.18, 11.44 to 22.87",
            verdict="inconclusive",
            reason="Two of five sizes had d = 8, where there are 2 and 4 heads and the law is not to be seen yet; "
            "subjects were told apart by 12 % only; three weak base seeds had to agree instead of being pooled.",
        ),
    ),
)
