"""A reviewer's question about paper A: does the MLP hurt?"""

from typing import Any

from mnemoscope.spec import Retrieval
from mnemoscope.studies.base import Bench, Judgement, Numbers, Size, Study
from mnemoscope.studies.panels import draw_estimates, finish
from mnemoscope.studies.seed_means import difference, run_settings

BASE: dict[Size, dict[str, int]] = {
    "quick": {"vocab": 96, "length": 16, "samples": 3000},
    "full": {"vocab": 256, "length": 32, "samples": 16000},
}
DIMS: dict[Size, tuple[int, ...]] = {"quick": (12, 24, 48), "full": (16, 32, 64, 128)}
WIDTH: dict[Size, int] = {"quick": 256, "full": 1024}
ACTIVATIONS = ("relu", "hermite3")
SEEDS: dict[Size, int] = {"quick": 4, "full": 16}


def measure(size: Size, bench: Bench) -> Numbers:
    """How an MLP changes the accuracy of attention alone, at small and large d."""
    specs = {
        (dim, name): Retrieval.read(
            {**BASE[size], "dim": dim, **({} if name == "none" else {"width": WIDTH[size], "activation": name})}
        )
        for dim in DIMS[size]
        for name in ("none", *ACTIVATIONS)
    }
    trials = dict(zip(specs, run_settings(bench, list(specs.values()), SEEDS[size]), strict=True))
    return {
        "width": WIDTH[size],
        "rows": [
            {"dim": dim, "activation": name, "gain": difference(trials[dim, name], trials[dim, "none"])}
            for dim in DIMS[size]
            for name in ACTIVATIONS
        ],
    }


def judge(numbers: Numbers) -> Judgement:
    """Does an MLP lower accuracy anywhere?"""
    rows = numbers["rows"]
    text = "change of accuracy with an MLP: " + "; ".join(
        f"{row['activation']} at d = {row['dim']} {row['gain']['mean']:+.3f} "
        f"[{row['gain']['low']:+.3f}, {row['gain']['high']:+.3f}]"
        for row in rows
    )
    hurts = any(row["gain"]["high"] < 0 for row in rows)
    return Judgement.by(text, supported=hurts, refuted=not hurts and all(row["gain"]["low"] > -0.01 for row in rows))


def draw(numbers: Numbers, figure: Any) -> None:
    """The change against d."""
    axes = figure.add_subplot()
    for at, name in enumerate(ACTIVATIONS):
        rows = [row for row in numbers["rows"] if row["activation"] == name]
        label = f"{name}, m = {numbers['width']}"
        draw_estimates(axes, [row["dim"] for row in rows], [row["gain"] for row in rows], "mean", label, f"C{at}", "o-")
    axes.axhline(0, color="black", linewidth=0.8)
    finish(axes, "dimension, d", "accuracy with an MLP less without")


STUDY = Study(
    id="q-mlp",
    revision=1,
    source="review",
    place="does the MLP hurt?",
    statement="There are settings in which an MLP hurts: attention alone recalls more.",
    expected="a loss of accuracy somewhere",
    rule="Accuracy with an MLP less accuracy without, paired by seed, over d and activations. Supported if a 95 % "
    "interval lies below 0, refuted if all lie above -0.01.",
    measure=measure,
    judge=judge,
    draw=draw,
)
