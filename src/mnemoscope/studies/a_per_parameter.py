"""Paper A: a small dimension stores more facts for every parameter."""

import math
from collections.abc import Sequence
from typing import Any

from mnemoscope.experiments.estimate.power_law import Exponent, fit_power_law
from mnemoscope.spec import Retrieval
from mnemoscope.studies.base import Bench, Judgement, Numbers, Power, Size, Study
from mnemoscope.studies.expected_scatter import scatter_within
from mnemoscope.studies.exponents import points_in, pool_points, search_criticals
from mnemoscope.studies.panels import draw_estimates, finish
from mnemoscope.studies.power import Place, rehearse_grid
from mnemoscope.theory.critical import critical_value
from mnemoscope.ui.figures.canvas import plain_log_ticks

# For every V, the range of d in which half of the labels come to be named.
VOCABS: dict[Size, dict[int, tuple[int, int]]] = {
    "quick": {64: (17, 32), 128: (33, 64), 256: (33, 64), 512: (65, 128)},
    "full": {128: (24, 64), 256: (33, 96), 512: (50, 128), 1024: (65, 192), 2048: (96, 256), 4096: (144, 384)},
}
LENGTH: dict[Size, int] = {"quick": 8, "full": 16}
# Enough samples: more change the critical d by a percent or two (theory).
SAMPLES_A_FACT = 64
TOLERANCE: dict[Size, float] = {"quick": 0.03, "full": 0.02}


def settings(size: Size) -> list[Retrieval]:
    """A setting for every number of facts; d is searched for."""
    return [
        Retrieval(vocab=V, dim=low, length=LENGTH[size], samples=SAMPLES_A_FACT * V)
        for V, (low, _) in VOCABS[size].items()
    ]


def measure(size: Size, bench: Bench) -> Numbers:
    """The d at which half of V facts are named, for several V."""
    ranges = list(VOCABS[size].values())
    fields = ("vocab", "length", "samples")
    return {"points": search_criticals(bench, settings(size), "dim", ranges, fields, TOLERANCE[size])}


def facts_for_a_parameter(point: Numbers, dim: str = "dim") -> float:
    """Labels named over the value matrix's d^2 weights; `dim` is the key of d."""
    return 0.5 * point["vocab"] / point[dim] ** 2


def fit_power(bases: Sequence[Numbers]) -> tuple[list[Numbers], Exponent | None]:
    """The pooled points, and the power of V in the critical d."""
    points = pool_points([numbers["points"] for numbers in bases], ("vocab",), "dim")
    if len(points) < 4:
        return points, None
    return points, fit_power_law(points_in(["vocab"], points, "dim")).exponents[0]


def judge_all(bases: Sequence[Numbers]) -> Judgement:
    """Does d^2 grow faster than the number of facts?"""
    points, power = fit_power(bases)
    text = "facts for a parameter " + ", ".join(
        f"{facts_for_a_parameter(point):.4f} at d = {point['dim']:.1f} (V = {point['vocab']:,})" for point in points
    )
    if power is None:
        return Judgement(f"{text}: too few critical d were found", "inconclusive")
    text += f"; d^2 grows as V^{2 * power.value:.3f} [{2 * power.low:.3f}, {2 * power.high:.3f}]"
    return Judgement.by(text, supported=2 * power.low > 1, refuted=2 * power.high < 1)


def power(size: Size) -> Power:
    """The power if theory's critical d is right, and if d^2 is proportional to V."""
    theory = {spec.vocab: float(critical_value(spec, "dim") or 0) for spec in settings(size)}
    places = [Place({"vocab": V}, dim, scatter_within(TOLERANCE[size])) for V, dim in theory.items()]
    middle = sorted(theory)[len(theory) // 2]
    rivals = {"d^2 as V": [theory[middle] * math.sqrt(V / middle) for V in theory]}
    return rehearse_grid(judge_all, places, rivals, size, "dim")


def draw(numbers: Numbers, figure: Any) -> None:
    """Facts for a parameter against d."""
    axes = figure.add_subplot()
    points = [point for point in numbers["points"] if point["dim"] and point["low"]]
    x = [point["dim"] for point in points]
    # The largest d is the fewest facts for a parameter.
    ends = {"value": "dim", "low": "high", "high": "low"}
    facts = [{name: facts_for_a_parameter(point, key) for name, key in ends.items()} for point in points]
    draw_estimates(axes, x, facts, "value", "random embeddings", fmt="o-")
    known = [point for point in points if point["predicted"]]
    theory = [facts_for_a_parameter(point, "predicted") for point in known]
    axes.plot([point["dim"] for point in known], theory, "x:", color="C1", label="theory")
    plain_log_ticks(axes, "x", min(x), max(x))
    axes.set_ylim(0, 1.25 * max(point["high"] for point in facts))
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
    draw=draw,
    judge_all=judge_all,
    power=power,
)
