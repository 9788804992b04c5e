"""Paper A: with an MLP, capacity is in the product m d."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mnemoscope.spec import Retrieval
from mnemoscope.studies.base import Bench, Earlier, Judgement, Numbers, Power, Size, Study
from mnemoscope.studies.expected_scatter import STEP, scatter_of
from mnemoscope.studies.exponents import fit_pooled, say_exponents, search_criticals
from mnemoscope.studies.panels import draw_estimates, finish, log_axes
from mnemoscope.studies.power import Place, pure_power, rehearse_grid
from mnemoscope.studies.rival_laws import CRITICAL_WIDTH, half_width, judge_powers, nearest, rivals_of, say_rule
from mnemoscope.theory.critical import first_that
from mnemoscope.theory.predict import predict

AXES = ("vocab", "dim")
CLAIMED = CRITICAL_WIDTH["parameters"]
RIVALS = rivals_of("parameters", CRITICAL_WIDTH, AXES)
HALF = half_width(CLAIMED, RIVALS, AXES)
SEEDS = 8
TOLERANCE = 0.1


@dataclass(frozen=True)
class WidthGrid:
    """Values of V and d, the length, the samples for each token, and the range of widths to search."""

    vocabs: tuple[int, ...]
    dims: tuple[int, ...]
    length: int
    samples: int
    widths: tuple[int, int]


GRIDS: dict[Size, WidthGrid] = {
    "quick": WidthGrid((128, 256), (40, 56, 80), 4, 32, (24, 400)),
    "full": WidthGrid((4096, 8192), (160, 200, 256), 8, 32, (128, 4096)),
}


def specs(size: Size) -> list[Retrieval]:
    """The places of the grid. Attention is given, so that only the memory is measured."""
    grid = GRIDS[size]
    base = Retrieval(vocab=2, dim=1, length=grid.length, samples=1, width=16, activation="hermite3", attention="locked")
    return [base.replace(vocab=V, dim=d, samples=grid.samples * V) for V in grid.vocabs for d in grid.dims]


def measure(size: Size, bench: Bench) -> Numbers:
    """The width at which half of the labels are named, over V and d."""
    places = specs(size)
    criticals = search_criticals(bench, places, "width", [GRIDS[size].widths] * len(places), AXES, TOLERANCE, SEEDS)
    points = [{**point, "predicted": theory(spec)} for spec, point in zip(places, criticals, strict=True)]
    return {"exponents": [{"axis": axis} for axis in AXES], "log_of": None, "points": points}


def theory(spec: Retrieval) -> int | None:
    """Theory's critical width, if it has one."""

    def reaches(width: int) -> bool:
        return (predict(spec.replace(width=width)).accuracy or 0.0) >= 0.5

    return first_that(reaches, 8, 2**16)


def judge_all(bases: Sequence[Numbers]) -> Judgement:
    """One fit to all base seeds."""
    fitted = fit_pooled(bases, "width")
    products = [
        f"{point['dim'] * point['width'] / point['vocab']:.1f} at V = {point['vocab']:,}, d = {point['dim']}"
        for point in fitted["points"]
    ]
    measured = f"{say_exponents(fitted, 'critical m')}; m d / V is {', '.join(products)}"
    return Judgement(measured, judge_powers(fitted["exponents"], CLAIMED, HALF))


def power(size: Size) -> Power:
    """The power if theory is right, and if something other than parameters counts."""
    places = [_expected(spec) for spec in specs(size)]
    rivals = {name: pure_power(places, powers) for name, powers in RIVALS.items()}
    return rehearse_grid(judge_all, places, rivals, size, "width")


def _expected(spec: Retrieval) -> Place:
    width = theory(spec)
    assert width is not None, "the grids lie where theory has a critical width"
    low, at, high = (predict(spec.replace(width=round(width * step))).accuracy or 0.0 for step in (1 / STEP, 1.0, STEP))
    # A seed's accuracy is a fraction of V tokens.
    spread = math.sqrt(at * (1 - at) / spec.vocab) * 2 * math.log(STEP) / (high - low)
    sizes = {axis: float(getattr(spec, axis)) for axis in AXES}
    return Place(sizes, float(width), scatter_of(spread, TOLERANCE, SEEDS))


def draw(numbers: Numbers, figure: Any) -> None:
    """Critical width against d for each V, with lines of constant m d."""
    axes = figure.add_subplot()
    points = [point for point in numbers["points"] if point["width"]]
    for number, vocab in enumerate(sorted({point["vocab"] for point in points})):
        own = [point for point in points if point["vocab"] == vocab]
        x, y = (np.array([point[name] for point in own], float) for name in ("dim", "width"))
        draw_estimates(axes, x, own, "width", f"V = {vocab:,}", f"C{number}", size=3.5)
        constant = float(np.exp(np.mean(np.log(x * y))))
        axes.plot(x, constant / x, "--", color=f"C{number}", linewidth=0.9)
    if points:
        log_axes(axes, *([float(point[name]) for point in points] for name in ("dim", "width")))
        finish(axes, "dimension, d", "critical width, m (dashed: m d = constant)")


STUDY = Study(
    id="a-width",
    revision=2,
    source="paper A (statement)",
    place="phase diagram of m d; that m d grows as V is ours",
    statement="With an MLP, capacity is in the product m d: a narrower embedding is made up for by a wider MLP, and m "
    "d grows in proportion to V.",
    expected="critical m as V d^-1",
    rule="Powers of V and d in the width at which half of the labels are named, attention given, hermite3, one fit to "
    "all base seeds. "
    f"{say_rule(HALF, *nearest(CLAIMED, RIVALS, AXES))}",
    measure=measure,
    judge_all=judge_all,
    draw=draw,
    power=power,
    history=(
        Earlier(
            date="2026-11-18",
            statement="With an MLP, capacity is in the product m d: a narrower embedding is made up for by a wider "
            "MLP.",
            rule="Power of d in the width at which half of the labels are named, attention given, hermite3. Supported "
            "if its 95 % interval lies within -1.5 to -0.5, refuted if it lies outside. Three base seeds had to agree.",
            measured="critical m goes as d^-1.07 [-1.57, -0.57]; m d / V is 22.6 at d = 48, 19.4 at d = 64, 19.4 at d "
            "= 96, 21.1 at d = 128",
            verdict="inconclusive",
            reason="Three base seeds with four places each had to decide alone, at one V: nothing said that m d goes "
            "with V. Base seeds are pooled, V is varied, the sizes are larger, and the box is half as wide.",
        ),
    ),
)
