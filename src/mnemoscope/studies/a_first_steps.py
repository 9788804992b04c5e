"""Paper A: the first steps decide, and training that goes on changes little."""

from typing import Any

from mnemoscope.report.canvas import plain_log_ticks
from mnemoscope.spec import Retrieval
from mnemoscope.studies.base import Bench, Judgement, Numbers, Size, Study
from mnemoscope.studies.means import difference, draw_curve, run_settings, show, told

BASE: dict[Size, Retrieval] = {
    "quick": Retrieval(vocab=96, dim=48, length=24, samples=2),
    "full": Retrieval(vocab=256, dim=96, length=48, samples=2),
}
SAMPLES: dict[Size, tuple[int, ...]] = {"quick": (200, 800, 3200), "full": (500, 2000, 8000, 32000)}
STEPS: dict[Size, int] = {"quick": 60, "full": 300}
SEEDS: dict[Size, int] = {"quick": 4, "full": 8}
# A change of accuracy that would not be small.
SMALL = 0.1


def measure(size: Size, bench: Bench) -> Numbers:
    """Accuracy on fresh sequences after three steps, and after AdamW goes on from there."""
    base = BASE[size]
    short = [base.replace(samples=n) for n in SAMPLES[size]]
    long = [spec.replace(then="adamw", steps=STEPS[size]) for spec in short]
    found = run_settings(bench, [*short, *long], SEEDS[size])
    half = len(short)
    return {
        "steps": STEPS[size],
        "rows": [
            {"samples": spec.samples, "three": told([one.accuracy for one in three]),
             "more": told([one.accuracy for one in more]), "gain": difference(more, three)}
            for spec, three, more in zip(short, found[:half], found[half:], strict=True)
        ],
    }  # fmt: skip


def say(numbers: Numbers) -> str:
    """The accuracies in one line."""
    return "; ".join(
        f"N = {one['samples']:,}: {show(one['three'])} after three steps, {show(one['more'])} "
        f"after {numbers['steps']} more" for one in numbers["rows"]
    )  # fmt: skip


def judge(numbers: Numbers) -> Judgement:
    """Is every change small?"""
    gains = [one["gain"] for one in numbers["rows"]]
    if any(one["low"] > SMALL or one["high"] < -SMALL for one in gains):
        return Judgement(say(numbers), "refuted")
    small = all(max(-one["low"], one["high"]) <= SMALL for one in gains)
    return Judgement(say(numbers), "supported" if small else "inconclusive")


def draw(numbers: Numbers, figure: Any) -> None:
    """Both accuracies against N."""
    axes = figure.add_subplot()
    rows = numbers["rows"]
    x = [one["samples"] for one in rows]
    for at, (key, name) in enumerate(
        (("three", "after three steps"), ("more", f"after {numbers['steps']} steps of AdamW more"))
    ):
        draw_curve(axes, x, [one[key] for one in rows], name, f"C{at}")
    plain_log_ticks(axes, "x", x[0], x[-1])
    axes.set_xlabel("samples, N")
    axes.set_ylabel("accuracy on fresh sequences")
    axes.legend(fontsize=7)


STUDY = Study(
    id="a-first-steps",
    source="ours, after paper A",
    place="early phase",
    statement="The first three steps decide what is recalled: training that goes on changes "
    "little.",
    expected="changes of accuracy within 0.1",
    rule="Accuracy after AdamW goes on less accuracy after three steps, paired by seed, at "
    "several N. Supported if all 95 % intervals lie within 0.1 of 0, refuted if one lies beyond.",
    measure=measure,
    judge=judge,
    draw=draw,
)
