"""Items that share two answers: outer products then store a number proportional to d, not to d^2."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from mnemoscope.experiments.logit_noise import expected_variance, own_variances
from mnemoscope.spec import Memory
from mnemoscope.studies.base import Bench, Judgement, Numbers, Power, Size, Study, all_agree, within
from mnemoscope.studies.panels import draw_estimates, draw_law, draw_limits, finish
from mnemoscope.studies.power import Draw, base_by_base, rehearse
from mnemoscope.studies.scaling_fit import fit_growth
from mnemoscope.studies.seed_limits import pool_limits, search_limits, simulate_limit
from mnemoscope.studies.seed_means import spread
from mnemoscope.theory.associative import hebbian_capacity
from mnemoscope.ui.figures.canvas import ticks_at

DIMS: dict[Size, tuple[int, ...]] = {"quick": (32, 64, 128, 256), "full": (64, 128, 256, 512, 1024, 2048)}
SEEDS: dict[Size, int] = {"quick": 8, "full": 12}
RESOLUTION = 0.1
# f(x) = x mod 2, as in the paper. There are so few items that 99 % would mean all of them.
ANSWERS = 2
CRITERION = 0.9
# Variances are measured at these numbers of items per dimension.
ITEMS = (0.25, 1.0, 4.0)
LEAST, MOST = 0.85, 1.15
# The tolerated relative error of (V1).
OFF = 0.1
# Standard deviation over seeds in ln N.
SCATTER = 0.3


def measure(size: Size, bench: Bench) -> Numbers:
    """The number of items up to which 90 % are right with two answers in all, and the variances of own logits."""
    specs = [Memory(items=2, dim=d, outputs=ANSWERS) for d in DIMS[size]]
    points = search_limits(bench, specs, CRITERION, RESOLUTION, SEEDS[size], lambda m: {"dim": m.dim, "size": m.dim})
    dim, seeds = DIMS[size][1], range(bench.seed, bench.seed + 4 * SEEDS[size])
    noise = []
    for share in ITEMS:
        for outputs in (0, ANSWERS):
            spec = Memory(items=round(share * dim), dim=dim, outputs=outputs)
            ratio = own_variances(spec, seeds) / expected_variance(spec)
            noise.append({"items": spec.items, "dim": dim, "outputs": outputs, "ratio": ratio.tolist()})
    return {"points": points, "noise": noise}


def judge_all(all_numbers: Sequence[Numbers]) -> Judgement:
    """By the power of d, and (V1) at every number of items."""
    points = pool_limits([numbers["points"] for numbers in all_numbers], ("dim",))
    fit = fit_growth(points)
    ratios = [
        spread([ratio for numbers in all_numbers for ratio in numbers["noise"][at]["ratio"]])
        for at in range(len(all_numbers[0]["noise"]))
    ]
    if fit is None:
        return Judgement("too few limits were found", "inconclusive")
    text = (
        f"N grows as d^{fit['power']:.3f} [{fit['low']:.3f}, {fit['high']:.3f}], d over N {fit['constant']:.2f}; "
        f"variance of own logits {min(ratio['mean'] for ratio in ratios):.2f} to "
        f"{max(ratio['mean'] for ratio in ratios):.2f} times (same - 1)/d + other/d²"
    )
    boxes = [(fit, LEAST, MOST), *((ratio, 1 - OFF, 1 + OFF) for ratio in ratios)]
    return Judgement(text, all_agree(within(row["low"], row["high"], least, most) for row, least, most in boxes))


def power(size: Size) -> Power:
    """The power if limits are proportional to d, and if to another power of it; variances follow (V1)."""

    def drawn(of_dim: float) -> Draw:
        def base(rng: np.random.Generator) -> Numbers:
            points = [
                simulate_limit(rng, 80 * (d / 128) ** of_dim, SCATTER, SEEDS[size], dim=d, size=d) for d in DIMS[size]
            ]
            noise = [{"ratio": rng.normal(1.0, 0.2, 4 * SEEDS[size]).tolist()} for _ in range(2 * len(ITEMS))]
            return {"points": points, "noise": noise}

        return base_by_base(size, base)

    rivals = {"as d^0.5": drawn(0.5), "as d^1.5": drawn(1.5), "as d², as with own answers": drawn(2.0)}
    note = f"seeds scatter by {SCATTER:.0%} in N and 20 % in the variance"
    return rehearse(judge_all, drawn(1.0), rivals, note=note)


def draw(numbers: Numbers, figure: Any) -> None:
    """Items against d, beside theory's for both kinds of map, and variances over (V1)."""
    left, right = figure.subplots(1, 2)
    points = numbers["points"]
    draw_limits(left, points, f"{ANSWERS} answers, {CRITERION:g} right", "C0")
    dims = [point["dim"] for point in points]
    for outputs, style, name in ((ANSWERS, "-", "(H2), 2 answers"), (0, "--", "(H2), own answers")):
        draw_law(left, dims, [hebbian_capacity(d, CRITERION, outputs) for d in dims], name, style)
    ticks_at(left, "x", dims)
    left.set_yscale("log")
    for outputs, color, name in ((ANSWERS, "C0", "2 answers"), (0, "C1", "own answers")):
        rows = [row for row in numbers["noise"] if row["outputs"] == outputs]
        x = [row["items"] / row["dim"] for row in rows]
        draw_estimates(right, x, [spread(row["ratio"]) for row in rows], "mean", name, color)
    right.axhline(1, color="black", linewidth=0.6)
    right.set_xscale("log")
    right.set_xticks(ITEMS, [f"{share:g}" for share in ITEMS])
    right.set_xticks([], minor=True)
    finish(left, "dimension, d", "items stored, N")
    finish(right, "items a dimension, N / d", "variance of own logits over (V1)")


STUDY = Study(
    id="b-shared-answers",
    revision=1,
    source="paper B",
    place="maps that are not injective, f(z) = z mod 2",
    statement="Where items share answers, outer products store fewer: an own logit varies by |same answer|/d + |other "
    "answer|/d², so that with two answers N grows like d and not like d².",
    expected="N as d; variances as the formula has them",
    rule="Limits of all base seeds' seeds in one, N being the items up to which 90 % are right with two answers in "
    "all: the power of d in N. And the variance of own logits over the formula, at a quarter, one and four items a "
    "dimension, with two answers and with one for each item. Supported if the power's 95 % interval lies within 0.85 "
    "to 1.15 and those of all ratios within 0.9 to 1.1. Refuted if one lies outside.",
    measure=measure,
    judge_all=judge_all,
    draw=draw,
    power=power,
)
