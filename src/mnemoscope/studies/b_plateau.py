"""How the hallucination stage grows: its length against the number of subjects and of relations."""

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from mnemoscope.engine.device import find_device, numerics
from mnemoscope.experiments.dynamics import dynamics
from mnemoscope.experiments.estimate.power_law import Points, fit_power_law
from mnemoscope.spec import Flow
from mnemoscope.studies.base import Bench, Judgement, Numbers, Power, Size, Study, all_agree, within
from mnemoscope.studies.panels import draw_law
from mnemoscope.studies.power import Draw, base_by_base, rehearse
from mnemoscope.studies.rival_laws import say_powers
from mnemoscope.theory.plateau import plateau_length, subject_time
from mnemoscope.ui.figures.canvas import plain_log_ticks, ticks_at

# (S, R): several S at one R, and several R at one S.
PLACES: dict[Size, tuple[tuple[int, int], ...]] = {
    "quick": ((64, 4), (128, 4), (256, 4), (128, 2), (128, 8)),
    "full": ((64, 4), (128, 4), (256, 4), (512, 4), (128, 2), (128, 8), (128, 16)),
}
# The exact gradient has no seed. Fresh sequences do, so the full size draws them.
BATCH: dict[Size, int] = {"quick": 0, "full": 1024}
ANSWERS, NOISE, LENGTH, START, STEP = 4, 5, 8, 1e-5, 1.0
# The steps of a run, over the time at which it learns the subjects in theory.
BEYOND = 1.25
CLAIMED = {"subjects": 1.0, "relations": 0.5}
# Rival powers of S and R in the length.
RIVALS = {
    "the same for all S": (0.0, 0.5),
    "as the square root of S": (0.5, 0.5),
    "as S^2": (2.0, 0.5),
    "the same for all R": (1.0, 0.0),
    "as R": (1.0, 1.0),
}
REACH = 0.1
# Standard deviation of ln(length) about theory: larger with fresh sequences.
SCATTER: dict[Size, float] = {"quick": 0.01, "full": 0.03}


def _setting(size: Size, subjects: int, relations: int) -> Flow:
    steps = BEYOND * subject_time(subjects, relations, ANSWERS, START) / STEP
    base = Flow(answers=ANSWERS, noise=NOISE, length=LENGTH, lr=STEP, start=START, batch=BATCH[size])
    return base.replace(subjects=subjects, relations=relations, steps=math.ceil(steps))


def measure(size: Size, bench: Bench) -> Numbers:
    """The number of steps with a loss near ln D, at every place."""
    points = []
    for subjects, relations in PLACES[size]:
        with numerics("float32", find_device("auto")):
            run = dynamics(_setting(size, subjects, relations), bench.seed)
        rest, predicted = run.stages[1], plateau_length(subjects, relations, ANSWERS, START) / STEP
        left = rest.last is not None and rest.last < len(run.course.loss) - 1
        steps = rest.steps if left else None  # a plateau that has not ended has no length yet
        place = {"subjects": subjects, "relations": relations, "steps": steps}
        points.append({**place, "relation_only": run.plateau_relation_accuracy, "predicted": predicted})
    return {"points": points}


def fit_length(all_numbers: Sequence[Numbers]) -> list[dict[str, Any]] | None:
    """The powers of S and R in the length, averaged over the base seeds at each place."""
    places: dict[tuple[int, int], list[float]] = {}
    for point in (point for numbers in all_numbers for point in numbers["points"]):
        if point["steps"]:
            key = (point["subjects"], point["relations"])
            places.setdefault(key, []).append(math.log(point["steps"]))
    if len(places) < 5 or any(len(set(column)) < 3 for column in zip(*places, strict=True)):
        return None
    x = np.array(list(places), float)
    y = np.array([np.mean(logs) for logs in places.values()])
    # Without seeds the only error is the scatter about the law, which the fit estimates.
    law = fit_power_law(Points(tuple(CLAIMED), x, y, np.full(len(y), 1e-3)))
    return [asdict(power) for power in law.exponents]


def judge_all(all_numbers: Sequence[Numbers]) -> Judgement:
    """By both powers."""
    powers = fit_length(all_numbers)
    if powers is None:
        return Judgement("too few plateaus were seen to the end", "inconclusive")
    points = [p for numbers in all_numbers for p in numbers["points"] if p["steps"]]
    ratios = [point["steps"] / point["predicted"] for point in points]
    sure = min(point["relation_only"] or 0.0 for point in points)
    grows = say_powers(powers, {"subjects": "S", "relations": "R"})
    text = (
        f"the plateau's length goes as {grows}, {min(ratios):.2f} to {max(ratios):.2f} times "
        f"theory's; relation right at least {sure:.3f} on it"
    )
    boxes = ((p, CLAIMED[p["axis"]]) for p in powers)
    return Judgement(text, all_agree(within(p["low"], p["high"], at - REACH, at + REACH) for p, at in boxes))


def power(size: Size) -> Power:
    """The power if theory's lengths are right, and if other powers hold."""

    def drawn(law: Callable[[int, int], float]) -> Draw:
        def base(rng: np.random.Generator) -> Numbers:
            points = []
            for s, r in PLACES[size]:
                steps = law(s, r) * float(np.exp(rng.normal(0.0, SCATTER[size])))
                place = {"subjects": s, "relations": r, "relation_only": 1.0}
                points.append({**place, "predicted": law(s, r), "steps": steps})
            return {"points": points}

        return base_by_base(size, base)

    claim = drawn(lambda s, r: plateau_length(s, r, ANSWERS, START))
    rivals = {
        name: drawn(lambda s, r, a=a, b=b: 3000 * (s / 128) ** a * (r / 4) ** b) for name, (a, b) in RIVALS.items()
    }
    return rehearse(judge_all, claim, rivals, note=f"lengths scatter by {SCATTER[size]:.0%} about (T1) and (T2)")


def draw(numbers: Numbers, figure: Any) -> None:
    """Lengths against subjects and against relations, beside theory's."""
    names = {"subjects": "subjects, S", "relations": "relations, R"}
    for axes, along, other in zip(figure.subplots(1, 2, sharey=True), names, reversed(names), strict=True):
        counts = [point[other] for point in numbers["points"]]
        kept = max(counts, key=counts.count)  # the value that the others share
        points = [point for point in numbers["points"] if point[other] == kept and point["steps"]]
        points.sort(key=lambda point: point[along])
        x = [point[along] for point in points]
        axes.plot(x, [point["steps"] for point in points], "o", label="measured")
        draw_law(axes, x, [point["predicted"] for point in points], "theory, (T1) and (T2)")
        ticks_at(axes, "x", x)
        axes.set_xlabel(names[along])
        axes.set_title(f"{names[other][-1]} = {kept}", fontsize=9)
        axes.legend(fontsize=7)
    lengths = [point[name] for point in numbers["points"] for name in ("steps", "predicted") if point[name]]
    if lengths:
        plain_log_ticks(figure.axes[0], "y", min(lengths), max(lengths))
    figure.axes[0].set_ylabel("steps with a loss near ln D")


STUDY = Study(
    id="b-plateau",
    revision=1,
    source="ours, after paper B",
    place="gradient flow and Fig. 5: the paper shows the stage, its growth is ours",
    statement="The stage at which only the relation is known lasts longer with more facts: in proportion to the "
    "subjects S, and to the square root of the relations R.",
    expected="S sqrt(R) ln(1/a) over the step's size, for weights that start at a, less the time that relations take",
    rule="Powers of S and R in the steps that the loss is within 0.05 of ln D, base seeds in one fit. Supported if the "
    "95 % intervals lie within 0.9 to 1.1 for S and within 0.4 to 0.6 for R. Refuted if one lies outside.",
    measure=measure,
    judge_all=judge_all,
    draw=draw,
    power=power,
)
