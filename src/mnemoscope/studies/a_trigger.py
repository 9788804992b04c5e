"""A reviewer's question about paper A: does the key-query matrix learn the trigger?"""

import math
from collections.abc import Sequence
from typing import Any

from mnemoscope.engine.interrupts import stop_if_asked
from mnemoscope.experiments.alignment import trigger_cosine
from mnemoscope.spec import Retrieval
from mnemoscope.studies.base import Bench, Earlier, Judgement, Numbers, Size, Study
from mnemoscope.studies.panels import draw_estimates, finish
from mnemoscope.studies.seed_means import pool_rows, show, spread
from mnemoscope.ui.figures.canvas import plain_log_ticks

BASE: dict[Size, Retrieval] = {
    "quick": Retrieval(vocab=128, dim=64, length=32, samples=2),
    "full": Retrieval(vocab=1024, dim=256, length=128, samples=2),
}
SAMPLES: dict[Size, tuple[int, ...]] = {"quick": (64, 250, 1000, 4000, 16000), "full": (250, 1000, 4000, 16000, 65536)}
SEEDS: dict[Size, int] = {"quick": 8, "full": 16}
# Above this cosine, more than half of the squared length lies along the trigger.
ALIGNED = math.sqrt(0.5)


def measure(size: Size, bench: Bench) -> Numbers:
    """Every seed's cos(alpha, z_trig)."""
    base = BASE[size]
    rows = []
    for n in SAMPLES[size]:
        cosines = []
        for seed in range(bench.seed, bench.seed + SEEDS[size]):
            stop_if_asked()
            cosines.append(trigger_cosine(base.replace(samples=n), seed))
        rows.append({"samples": n, "cosines": cosines})
    # 95 % of random directions have a smaller absolute cosine.
    return {"rows": rows, "chance": 1.96 / math.sqrt(base.dim), "dim": base.dim}


def judge_all(bases: Sequence[Numbers]) -> Judgement:
    """Is alpha aligned at the most samples, and more so than at the fewest?"""
    rows = pool(bases)
    chance = bases[0]["chance"]
    text = "cosine of alpha and z_trig " + ", ".join(f"{show(row['cosine'])} at N = {row['samples']:,}" for row in rows)
    text += f"; a random direction's is below {chance:.3f} in 95 of 100"
    first, last = rows[0]["cosine"], rows[-1]["cosine"]
    aligned = last["low"] > max(ALIGNED, chance) and last["low"] > first["high"]
    return Judgement.by(text, supported=aligned, refuted=last["high"] < chance or last["high"] < first["low"])


def pool(bases: Sequence[Numbers]) -> list[Numbers]:
    """The mean over the seeds of all base seeds, at every N."""
    rows = pool_rows(bases, "cosines")
    return [{"samples": row["samples"], "cosine": spread(row["cosines"])} for row in rows]


def draw(numbers: Numbers, figure: Any) -> None:
    """The cosine against N."""
    axes = figure.add_subplot()
    rows = pool([numbers])
    x = [row["samples"] for row in rows]
    draw_estimates(axes, x, [row["cosine"] for row in rows], fmt="o-")
    axes.axhline(ALIGNED, color="black", linewidth=0.8, linestyle=":", label="half of its squared length")
    random = f"95 % of random directions, d = {numbers['dim']}"
    axes.axhline(numbers["chance"], color="C1", linewidth=0.8, linestyle="--", label=random)
    plain_log_ticks(axes, "x", x[0], x[-1])
    axes.set_ylim(0, 1.02)
    finish(axes, "samples, N", "cosine of $\\alpha$ and $z_{trig}$")


STUDY = Study(
    id="a-trigger",
    revision=2,
    source="review",
    place="does the key-query matrix learn the trigger?",
    statement="The second gradient step aligns the attention's key-query matrix with the trigger.",
    expected="a cosine far above a random direction's that grows with N",
    rule="Cosine of alpha and z_trig, W1 = gamma alpha z_EOS^T, over the seeds of all bases. Supported if at the most "
    "samples its 95 % interval lies above 0.707 (more than half of alpha's squared length is along the trigger) and "
    "above the one at the fewest samples. Refuted if it lies below what 95 of 100 random directions stay under, or "
    "below the one at the fewest.",
    measure=measure,
    draw=draw,
    judge_all=judge_all,
    history=(
        Earlier(
            date="2026-11-18",
            rule="Score of the trigger less the mean score of tokens, over their standard deviation, after the second "
            "step. Supported if at the most samples its 95 % interval lies above sqrt(2 ln L) and above the one at the "
            "fewest samples. Refuted if it lies below either.",
            measured="lift of the trigger's score 5.154 [4.480, 5.829] at N = 1,000, 12.487 [11.955, 13.018] at N = "
            "4,000, 15.588 [15.106, 16.069] at N = 16,000, 15.891 [15.408, 16.374] at N = 65,536",
            verdict="supported",
            reason="The claim is of an alignment, and the lift of the scores is not one: it does not say how much of "
            "alpha is along the trigger.",
        ),
    ),
)
