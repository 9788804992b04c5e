"""Paper A: a small dimension stores more facts for every parameter."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mnemoscope.experiments.estimate.estimate import Estimate
from mnemoscope.experiments.estimate.power_law import Exponent, fit_power_law, points_of
from mnemoscope.spec import Retrieval
from mnemoscope.studies.base import Bench, Judgement, Numbers, Power, Size, Study, alone
from mnemoscope.studies.critical_dims import critical_dims, draw_dims, say_drawn
from mnemoscope.studies.panels import finish
from mnemoscope.studies.pooling import pool_points
from mnemoscope.studies.power import rehearse
from mnemoscope.theory.critical import critical_value
from mnemoscope.ui.figures.canvas import plain_log_ticks

# V, and the d between which half of V labels come to be named.
VOCABS: dict[Size, dict[int, tuple[int, int]]] = {
    "quick": {64: (17, 32), 128: (33, 64), 256: (33, 64), 512: (65, 128)},
    "full": {128: (24, 64), 256: (33, 96), 512: (50, 128), 1024: (65, 192), 2048: (96, 256), 4096: (144, 384)},
}
LENGTH: dict[Size, int] = {"quick": 8, "full": 16}
# Enough samples: more change the critical d by a percent or two (theory).
SAMPLES_A_FACT = 64
TOLERANCE: dict[Size, float] = {"quick": 0.03, "full": 0.02}


def settings(size: Size) -> list[Retrieval]:
    """One for every number of facts; d is searched for."""
    return [
        Retrieval(vocab=V, dim=low, length=LENGTH[size], samples=SAMPLES_A_FACT * V)
        for V, (low, _) in VOCABS[size].items()
    ]


def measure(size: Size, bench: Bench) -> Numbers:
    """The d at which half of V facts are named, for several V."""
    ranges = list(VOCABS[size].values())
    return {"points": critical_dims(bench, settings(size), ranges, TOLERANCE[size])}


def facts_for_a_parameter(point: Numbers) -> float:
    """Labels named over the value matrix's d^2 weights."""
    return 0.5 * point["vocab"] / point["dim"] ** 2


def fit_power(bases: Sequence[Numbers]) -> tuple[list[Numbers], Exponent | None]:
    """The power of V in the critical d, over places that all bases share."""
    points = pool_points([numbers["points"] for numbers in bases], ("vocab",), "dim")
    if len(points) < 4:
        return points, None
    estimates = [Estimate.read(point, "dim") for point in points]
    law = fit_power_law(points_of(["vocab"], [[point["vocab"]] for point in points], estimates))
    return points, law.exponents[0]


def judge_all(bases: Sequence[Numbers]) -> Judgement:
    """Does d^2 grow faster than the facts that it holds?"""
    points, power = fit_power(bases)
    text = "facts for a parameter " + ", ".join(
        f"{facts_for_a_parameter(point):.4f} at d = {point['dim']:.1f} (V = {point['vocab']:,})" for point in points
    )
    if power is None:
        return Judgement(f"{text}: too few critical d were found", "inconclusive")
    text += f"; d^2 grows as V^{2 * power.value:.3f} [{2 * power.low:.3f}, {2 * power.high:.3f}]"
    if 2 * power.low > 1:
        return Judgement(text, "supported")
    return Judgement(text, "refuted" if 2 * power.high < 1 else "inconclusive")


def power(size: Size) -> Power:
    """From theory's critical d, and from d^2 proportional to V."""
    theory = {spec.vocab: float(critical_value(spec, "dim") or 0) for spec in settings(size)}
    places = [{"vocab": V} for V in theory]
    middle = sorted(theory)[len(theory) // 2]

    def proportional(place: Mapping[str, int]) -> float:
        return theory[middle] * math.sqrt(place["vocab"] / middle)

    claim = draw_dims(places, lambda place: theory[place["vocab"]], TOLERANCE[size], size)
    rival = draw_dims(places, proportional, TOLERANCE[size], size)
    note = say_drawn(len(places), TOLERANCE[size], size, "theory's critical d")
    return rehearse(judge_all, claim, {"d^2 as V": rival}, note=note)


def draw(numbers: Numbers, figure: Any) -> None:
    """Facts for a parameter against d."""
    axes = figure.add_subplot()
    points = [point for point in numbers["points"] if point["dim"] and point["low"]]
    x = [point["dim"] for point in points]
    y = np.array([facts_for_a_parameter(point) for point in points])
    low, high = (np.array([0.5 * point["vocab"] / point[key] ** 2 for point in points]) for key in ("high", "low"))
    axes.errorbar(x, y, yerr=[y - low, high - y], fmt="o-", capsize=2, label="random embeddings")
    known = [point for point in points if point["predicted"]]
    theory = [0.5 * point["vocab"] / point["predicted"] ** 2 for point in known]
    axes.plot([point["dim"] for point in known], theory, "x:", color="C1", label="theory")
    plain_log_ticks(axes, "x", min(x), max(x))
    axes.set_ylim(0, 1.25 * max(high))
    finish(axes, "dimension d at which half of V labels are named", "facts named / $d^2$")


STUDY = Study(
    id="a-per-parameter",
    revision=1,
    source="ours, after paper A",
    place="a smaller d enhances superposition and capacity",
    statement="With enough samples a small dimension stores more facts for every parameter than a large one.",
    expected="d^2 grows faster than the facts that it holds, by a logarithm",
    rule="The d at which half of V labels are named (64 samples a label), over V, the bases pooled: the power of V in "
    "d^2. Supported if its 95 % interval lies above 1, refuted if it lies below.",
    measure=measure,
    judge=alone(judge_all),
    draw=draw,
    judge_all=judge_all,
    power=power,
)
