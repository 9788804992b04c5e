"""A reviewer's question about paper A: what happens beyond three steps?"""

from typing import Any

from mnemoscope.studies.a_first_steps import BASE, STEPS
from mnemoscope.studies.base import Bench, Judgement, Numbers, Size, Study
from mnemoscope.studies.panels import draw_estimates, finish
from mnemoscope.studies.seed_means import mean_over_seeds, run_settings, show, spread
from mnemoscope.ui.figures.canvas import plain_log_ticks

# The settings of a-first-steps, whose trials the store may have, and one with more samples.
SAMPLES: dict[Size, tuple[int, ...]] = {"quick": (600, 1200, 4800), "full": (4000, 8000, 32000)}
SEEDS: dict[Size, int] = {"quick": 6, "full": 8}


def measure(size: Size, bench: Bench) -> Numbers:
    """Accuracy on fresh sequences after three steps, and after AdamW continues from there."""
    specs = [BASE[size].replace(samples=n, then="adamw", steps=STEPS[size]) for n in SAMPLES[size]]
    rows = []
    for spec, trials in zip(specs, run_settings(bench, specs, SEEDS[size]), strict=True):
        before = [next(step for step in trial.steps if step.name == "V2").accuracy for trial in trials]
        after = [trial.accuracy or 0.0 for trial in trials]
        rows.append(
            {
                "samples": spec.samples,
                "three": mean_over_seeds(before),
                "more": mean_over_seeds(after),
                "gain": spread([end - start for start, end in zip(before, after, strict=True)]),
            }
        )
    return {"steps": STEPS[size], "rows": rows}


def judge(numbers: Numbers) -> Judgement:
    """Does more training help somewhere and hurt nowhere?"""
    gains, more = [row["gain"] for row in numbers["rows"]], numbers["steps"]
    text = "; ".join(
        f"N = {row['samples']:,}: {show(row['three'])} after three steps, {show(row['more'])} after {more} more"
        for row in numbers["rows"]
    )
    helps, hurts = any(gain["low"] > 0 for gain in gains), any(gain["high"] < 0 for gain in gains)
    return Judgement.by(text, supported=helps, refuted=hurts)


def draw(numbers: Numbers, figure: Any) -> None:
    """Both accuracies against N."""
    axes = figure.add_subplot()
    rows = numbers["rows"]
    x = [row["samples"] for row in rows]
    names = {"three": "after three steps", "more": f"after {numbers['steps']} steps of AdamW more"}
    for color, (key, name) in zip(("C0", "C1"), names.items(), strict=True):
        draw_estimates(axes, x, [row[key] for row in rows], "mean", name, color, "o-")
    plain_log_ticks(axes, "x", x[0], x[-1])
    finish(axes, "samples, N", "accuracy on fresh sequences")


STUDY = Study(
    id="q-beyond",
    revision=1,
    source="review",
    place="what happens beyond three steps?",
    statement="Training beyond the three steps goes on to improve recall.",
    expected="accuracy on fresh sequences rises, or stays",
    rule="Accuracy after AdamW goes on less accuracy after three steps, paired by seed, at several N. Supported if a "
    "95 % interval lies above 0 and none below, refuted if one lies below.",
    measure=measure,
    judge=judge,
    draw=draw,
)
