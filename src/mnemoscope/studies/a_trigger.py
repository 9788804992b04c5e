"""Paper A: the second step points the attention at the trigger."""

import math
from typing import Any

from mnemoscope.report.canvas import plain_log_ticks
from mnemoscope.spec import Retrieval
from mnemoscope.studies.base import Bench, Judgement, Numbers, Size, Study
from mnemoscope.studies.means import draw_curve, run_settings, show, spread

BASE: dict[Size, Retrieval] = {
    "quick": Retrieval(vocab=128, dim=64, length=32, samples=2),
    "full": Retrieval(vocab=1024, dim=256, length=128, samples=2),
}
SAMPLES: dict[Size, tuple[int, ...]] = {
    "quick": (250, 1000, 4000, 16000),
    "full": (1000, 4000, 16000, 65536),
}
SEEDS: dict[Size, int] = {"quick": 8, "full": 16}


def measure(size: Size, bench: Bench) -> Numbers:
    """How far the trigger's score stands above the tokens', in their standard deviations."""
    base = BASE[size]
    specs = [base.replace(samples=n) for n in SAMPLES[size]]
    rows = []
    for spec, trials in zip(specs, run_settings(bench, specs, SEEDS[size]), strict=True):
        steps = [next(step for step in one.steps if step.name == "W1") for one in trials]
        lifts = [step.ratio for step in steps if step.ratio is not None]
        rows.append({"samples": spec.samples, "lift": spread(lifts)})
    return {"rows": rows, "needed": math.sqrt(2 * math.log(base.length))}


def judge(numbers: Numbers) -> Judgement:
    """Above the largest of L Gaussians, and rising."""
    rows, needed = numbers["rows"], numbers["needed"]
    said = "lift of the trigger's score " + ", ".join(
        f"{show(one['lift'])} at N = {one['samples']:,}" for one in rows
    )
    first, last = rows[0]["lift"], rows[-1]["lift"]
    if last["high"] < needed or last["high"] < first["low"]:
        return Judgement(said, "refuted")
    sure = last["low"] > needed and last["low"] > first["high"]
    return Judgement(said, "supported" if sure else "inconclusive")


def draw(numbers: Numbers, figure: Any) -> None:
    """The lift against N."""
    axes = figure.add_subplot()
    rows = numbers["rows"]
    x = [one["samples"] for one in rows]
    draw_curve(axes, x, [one["lift"] for one in rows], None)
    axes.axhline(numbers["needed"], color="black", linewidth=0.8, linestyle=":",
                 label="the largest of L Gaussians, sqrt(2 ln L)")  # fmt: skip
    plain_log_ticks(axes, "x", x[0], x[-1])
    axes.set_xlabel("samples, N")
    axes.set_ylabel("trigger's score above the tokens', in their spread")
    axes.legend(fontsize=7)


STUDY = Study(
    id="a-trigger",
    source="review",
    place="does the key-query matrix learn the trigger?",
    statement="The second gradient step aligns the attention's key-query matrix with the trigger.",
    expected="a lift that grows with N and passes sqrt(2 ln L)",
    rule="Score of the trigger less the mean score of tokens, over their standard deviation, "
    "after the second step. Supported if at the most samples its 95 % interval lies above sqrt(2 "
    "ln L) and above the one at the fewest samples. Refuted if it lies below either.",
    measure=measure,
    judge=judge,
    draw=draw,
)
