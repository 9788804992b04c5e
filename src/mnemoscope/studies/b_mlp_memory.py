"""Paper B, Fig. 1 right: a trained MLP memory stores as many items as it has weights."""

from typing import Any

import numpy as np

from mnemoscope.experiments.capacity import capacity_many
from mnemoscope.spec import Memory
from mnemoscope.studies.b_linear_memory import points_of
from mnemoscope.studies.base import Bench, Judgement, Numbers, Size, Study, agreed, within
from mnemoscope.studies.scaling_fit import draw_points, fit_growth, say_growth, scale_axes
from mnemoscope.theory.associative import GUIDE_MLP, GUIDE_MLP_FEW, items_by_law

DIMS: dict[Size, tuple[int, ...]] = {"quick": (8, 16), "full": (8, 16, 32)}
RATIOS: dict[Size, tuple[int, ...]] = {"quick": (1, 2), "full": (1, 4)}
SEEDS: dict[Size, int] = {"quick": 3, "full": 3}
RESOLUTION: dict[Size, float] = {"quick": 0.08, "full": 0.04}
# Both sizes give up earlier than the authors' 2^15 steps do: what fails takes all of them.
STEPS: dict[Size, int] = {"quick": 2**11, "full": 2**14}
FEW = 32


def measure(size: Size, bench: Bench) -> Numbers:
    """Capacities over d and m/d, with an answer for each item and with 32 answers in all."""
    more = {"seeds": SEEDS[size], "most_seeds": SEEDS[size], "first_seed": bench.seed}
    numbers: Numbers = {}
    for name, outputs in (("own", 0), ("few", FEW)):
        specs = [
            Memory(
                items=2, dim=d, width=d * ratio, outputs=outputs, method="trained",
                max_steps=STEPS[size],
            )
            for d in DIMS[size]
            for ratio in RATIOS[size]
        ]  # fmt: skip
        made = capacity_many(specs, 0.99, resolution=RESOLUTION[size], **more, **bench.tools)
        numbers[name] = points_of(made)
        numbers[f"{name}_fit"] = fit_growth(numbers[name], log=outputs == 0)
    return numbers


def judge(numbers: Numbers) -> Judgement:
    """By the power of m d, in N ln N and in N; both have to agree."""
    own, few = numbers["own_fit"], numbers["few_fit"]
    verdict = agreed(
        "inconclusive" if fit is None else within(fit["low"], fit["high"], 0.85, 1.15)
        for fit in (own, few)
    )
    return Judgement(
        f"{say_growth(own, 'N ln N')}. With {FEW} answers: {say_growth(few, 'N')}", verdict
    )


def draw(numbers: Numbers, figure: Any) -> None:
    """Items against weights of a layer, one panel for each kind of map."""
    panels = figure.subplots(1, 2, sharey=True)
    for axes, name, title in zip(
        panels, ("own", "few"), ("an answer for each item", f"{FEW} answers"), strict=True
    ):
        points, fit = numbers[name], numbers[f"{name}_fit"]
        ratios = sorted({one["width"] // one["dim"] for one in points})
        for at, ratio in enumerate(ratios):
            some = [one for one in points if one["width"] == ratio * one["dim"]]
            draw_points(axes, some, f"m = {ratio} d", f"C{at}")
        x = np.geomspace(min(one["size"] for one in points), max(one["size"] for one in points), 60)
        guide = GUIDE_MLP if name == "own" else GUIDE_MLP_FEW
        lines = [(guide, "authors' guide", "--")]
        if fit:
            lines.append((fit["constant"], "ours", "-."))
        for constant, label, style in lines:
            y = [
                items_by_law(float(one), constant) if name == "own" else float(one) / constant
                for one in x
            ]
            law = f"m d = {constant:.3g} N" + (" ln N" if name == "own" else "")
            axes.plot(x, y, style, color="black", linewidth=0.9, label=f"{label}: {law}")
        scale_axes(axes, points, "m d, weights of a layer", "items stored, N")
        axes.set_title(title, fontsize=9)
        axes.legend(fontsize=7)


STUDY = Study(
    id="b-fig1-right",
    source="paper B",
    place="Fig. 1 right",
    statement="A trained MLP memory stores a number of items proportional to its weights, up to "
    "a logarithm.",
    expected="m d = 0.35 N ln N with an answer for each item, m d = 1.2 N with 32 answers (the "
    "authors' guide lines)",
    rule="Power of m d in N ln N (an answer for each item) and in N (32 answers), N being the "
    "items at which 99 % can be trained: supported if both 95 % intervals lie within 0.85 to "
    "1.15, refuted if both lie outside.",
    measure=measure,
    judge=judge,
    draw=draw,
)
