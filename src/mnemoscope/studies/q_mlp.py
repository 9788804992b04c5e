"""A reviewer's question about paper A: does the MLP hurt?"""

from typing import Any

from mnemoscope.spec import Retrieval
from mnemoscope.studies.base import Bench, Judgement, Numbers, Size, Study
from mnemoscope.studies.panels import finish
from mnemoscope.studies.seed_means import difference, draw_curve, run_settings

BASE: dict[Size, dict[str, int]] = {
    "quick": {"vocab": 96, "length": 16, "samples": 3000},
    "full": {"vocab": 256, "length": 32, "samples": 16000},
}
DIMS: dict[Size, tuple[int, ...]] = {"quick": (12, 24, 48), "full": (16, 32, 64, 128)}
WIDTH: dict[Size, int] = {"quick": 256, "full": 1024}
ACTIVATIONS = ("relu", "hermite3")
SEEDS: dict[Size, int] = {"quick": 4, "full": 16}


def measure(size: Size, bench: Bench) -> Numbers:
    """What an MLP adds to the accuracy of attention alone, at small and at large d."""
    specs = {
        (dim, name): Retrieval.read(
            {**BASE[size], "dim": dim, **({} if name == "none" else {"width": WIDTH[size], "activation": name})}
        )
        for dim in DIMS[size]
        for name in ("none", *ACTIVATIONS)
    }
    found = dict(zip(specs, run_settings(bench, list(specs.values()), SEEDS[size]), strict=True))
    return {
        "width": WIDTH[size],
        "rows": [
            {"dim": dim, "activation": name, "gain": difference(found[dim, name], found[dim, "none"])}
            for dim in DIMS[size]
            for name in ACTIVATIONS
        ],
    }


def judge(numbers: Numbers) -> Judgement:
    """Does it cost accuracy anywhere?"""
    rows = numbers["rows"]
    said = "change of accuracy with an MLP: " + "; ".join(
        f"{one['activation']} at d = {one['dim']} {one['gain']['mean']:+.3f} "
        f"[{one['gain']['low']:+.3f}, {one['gain']['high']:+.3f}]"
        for one in rows
    )
    if any(one["gain"]["high"] < 0 for one in rows):
        return Judgement(said, "supported")
    never = all(one["gain"]["low"] > -0.01 for one in rows)
    return Judgement(said, "refuted" if never else "inconclusive")


def draw(numbers: Numbers, figure: Any) -> None:
    """The change against d."""
    axes = figure.add_subplot()
    for at, name in enumerate(ACTIVATIONS):
        some = [one for one in numbers["rows"] if one["activation"] == name]
        label = f"{name}, m = {numbers['width']}"
        draw_curve(axes, [one["dim"] for one in some], [one["gain"] for one in some], label, f"C{at}")
    axes.axhline(0, color="black", linewidth=0.8)
    finish(axes, "dimension, d", "accuracy with an MLP less without")


STUDY = Study(
    id="q-mlp",
    revision=1,
    source="review",
    place="does the MLP hurt?",
    statement="There are settings in which an MLP hurts: attention alone recalls more.",
    expected="a loss of accuracy somewhere",
    rule="Accuracy with an MLP less accuracy without, paired by seed, over d and activations. "
    "Supported if a 95 % interval lies below 0, refuted if all lie above -0.01.",
    measure=measure,
    judge=judge,
    draw=draw,
)
