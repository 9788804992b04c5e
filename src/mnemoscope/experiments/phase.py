"""Phase diagrams: accuracy over two axes, measured and predicted.

Measure the whole grid or, with `adaptive`, only what the contour needs: in each column, bisection with few seeds finds
the row where accuracy crosses the target, starting from the neighbouring column's, and only the rows next to it get
all seeds. The contour interpolates between exactly those rows, so it equals that of the whole grid.
"""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, ClassVar, Unpack

import numpy as np

from mnemoscope.engine.record import Trial
from mnemoscope.experiments.axes import FIELDS, Axis, grid
from mnemoscope.experiments.critical import AnySpec, check_measure
from mnemoscope.experiments.drawable import Drawable
from mnemoscope.experiments.keeping import place_for
from mnemoscope.experiments.signatures import spells_out
from mnemoscope.experiments.sweep import sweep
from mnemoscope.experiments.tabular import Tabular
from mnemoscope.experiments.tools import GivenTools, Tools, open_tools
from mnemoscope.spec import Spec, SpecError
from mnemoscope.spec.summary import Summary, brief, number
from mnemoscope.spec.validators import Measure
from mnemoscope.theory.critical import has_trained_law
from mnemoscope.theory.predict import predict

# Accuracy rises along these axes and falls along the others.
RISING = ("dim", "samples", "width")
# Enough seeds to see on which side of the target a cell lies.
FEW_SEEDS = 2


@dataclass(frozen=True, repr=False)
class PhaseDiagram(Drawable, Tabular):
    """Accuracy, or another measure, on a grid; rows follow `y`, columns follow `x`. NaN where nothing was run.

    `spread` is the standard deviation over a cell's seeds, `spec` the setting of the first cell.
    """

    figure: ClassVar[str] = "phase"
    spec: AnySpec
    x: Axis
    y: Axis
    target: float
    accuracy: np.ndarray
    spread: np.ndarray
    predicted: np.ndarray
    regimes: list[list[str]]
    seeds: np.ndarray
    failed: int
    trials: tuple[Trial, ...] = field(default=(), repr=False)
    measure: Measure = "accuracy"

    @property
    def unreached(self) -> int:
        """The number of trainings that had not settled after all their steps; they count with the accuracy reached."""
        return sum(trial.status == "unreached" for trial in self.trials)

    def contour(self) -> list[float | None]:
        """Where accuracy crosses the target along `y`, for each column; None where it does not."""
        return [crossing_in_column(self.y.values, column, self.target) for column in self.accuracy.T]

    def as_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        return {
            "x": {"axis": self.x.field, "values": list(self.x.values)},
            "y": {"axis": self.y.field, "values": list(self.y.values)},
            "measure": self.measure,
            "target": self.target,
            "accuracy": _plain(self.accuracy),
            "predicted": _plain(self.predicted),
            "regimes": self.regimes,
            "contour": self.contour(),
            "seeds": self.seeds.astype(int).tolist(),
            "trials": len(self.trials),
            "failed": self.failed,
            "unreached": self.unreached,
        }

    def labels(self) -> tuple[str, ...]:
        """The two axes."""
        return self.y.field, self.x.field

    def records(self) -> list[dict[str, Any]]:
        """A row for each cell: measured accuracy with its spread over seeds, their number, and theory."""
        return [
            {
                self.y.field: up,
                self.x.field: across,
                "accuracy": self.accuracy[r, c],
                "spread": self.spread[r, c],
                "seeds": int(self.seeds[r, c]),
                "predicted": self.predicted[r, c],
                "regime": self.regimes[r][c],
            }
            for r, up in enumerate(self.y.values)
            for c, across in enumerate(self.x.values)
        ]

    def summary(self) -> Summary:
        """The axes, how much was run, and the contour."""
        contour = zip(self.x.values, self.contour(), predicted_contour(self), strict=True)
        rows = [(f"{x:,}", number(measured, 0), number(theory, 0)) for x, measured, theory in contour]
        return Summary(
            brief(self.spec, without=self.labels()),
            {
                "grid": f"{len(self.y.values)} {self.y.field} x {len(self.x.values)} {self.x.field}",
                "trials": f"{len(self.trials):,}",
                **({"failed": f"{self.failed:,}"} if self.failed else {}),
            },
            (self.x.field, f"{self.y.field} at accuracy {self.target:g}", "predicted"),
            tuple(rows),
        )


def predicted_contour(diagram: PhaseDiagram) -> list[float | None]:
    """Theory's contour, for each column."""
    return [crossing_in_column(diagram.y.values, column, diagram.target) for column in diagram.predicted.T]


def ordered(option: str, axis: tuple[str, Sequence[Any]]) -> Axis:
    """An axis of a diagram: numbers above 0, in order, each once."""
    field, values = axis
    if field in FIELDS.named:
        raise SpecError(option, f"expected an axis of numbers, got {field!r}")
    numbers = [value for value in values if isinstance(value, int | float) and value > 0]
    if not values or len(numbers) < len(values):
        raise SpecError(option, f"expected numbers above 0, got {field}={list(values)}")
    return Axis(field, tuple(sorted(set(numbers))))


def _plain(values: np.ndarray) -> list[list[float | None]]:
    return [[None if math.isnan(value) else float(value) for value in row] for row in values]


def crossing_in_column(values: Sequence[float], column: Sequence[float] | np.ndarray, target: float) -> float | None:
    """Where a column crosses the target: linear in the logarithm between two measured neighbours on different sides."""
    known = [(v, a) for v, a in zip(values, column, strict=True) if not math.isnan(a)]
    for (v0, a0), (v1, a1) in pairwise(known):
        if (a0 >= target) != (a1 >= target):
            share = (target - a0) / (a1 - a0)
            return math.exp(math.log(v0) + share * math.log(v1 / v0))
    return None


class Measured:
    """The cells of a diagram and their trials so far."""

    def __init__(self, specs: list[list[Any]], measure: Measure, tools: Tools) -> None:
        self.specs, self.tools = specs, tools
        self.measure: Measure = measure
        self.trials: dict[tuple[int, int, int], Trial] = {}
        self.failed = 0

    def run(self, cells: Sequence[tuple[int, int]], seeds: int) -> None:
        """Run the first seeds of these cells (row, column) unless they were run before."""
        wanted = [(r, c, s) for r, c in cells for s in range(seeds) if (r, c, s) not in self.trials]
        jobs = [(self.specs[r][c], seed) for r, c, seed in wanted]
        tools = self.tools
        with place_for((spec for spec, _ in jobs), tools.store) as place:
            self.failed += sweep(jobs, place, tools.workers, tools.report("trials")).failed
            trials = place.get(jobs)
        self.trials |= {cell: trials[job] for cell, job in zip(wanted, jobs, strict=True) if job in trials}

    def values(self, row: int, column: int) -> list[float]:
        """The measure of a cell's trials."""
        return [
            value
            for (r, c, _), trial in self.trials.items()
            if (r, c) == (row, column) and (value := trial.measured(self.measure)) is not None
        ]

    def spread(self, row: int, column: int) -> float:
        """The standard deviation over a cell's seeds; NaN for fewer than two."""
        values = self.values(row, column)
        return statistics.stdev(values) if len(values) > 1 else math.nan

    def mean(self, row: int, column: int) -> float:
        """The measure's mean over the seeds of a cell; NaN if nothing was run."""
        values = self.values(row, column)
        return math.fsum(values) / len(values) if values else math.nan


@spells_out(open_tools)
def phase_diagram(
    base: Spec | dict[str, Any],
    x: tuple[str, Sequence[Any]],
    y: tuple[str, Sequence[Any]],
    *,
    seeds: int = 8,
    target: float = 0.5,
    measure: Measure = "accuracy",
    adaptive: bool = False,
    **given: Unpack[GivenTools],
) -> PhaseDiagram:
    """Measure and predict accuracy over two axes, such as `("dim", [32, 48, 64])`.

    `base` is a spec, or the fields that the axes leave open. Trials are kept in `store`, the user's own by default;
    workers and progress are given by name as well, or all three as `tools`.
    """
    plain = predicted_diagram(base, x, y, target=target, measure=measure)
    x, y, predicted = plain.x, plain.y, plain.predicted
    known = base.axes if isinstance(base, Spec) else (*RISING, "length", "vocab")
    if adaptive and y.field not in known:
        raise SpecError("y", f"expected an axis with an order to search along, got {y.field}")
    rising = base.rises_along(y.field) if isinstance(base, Spec) else y.field in RISING
    rows, columns = predicted.shape
    with open_tools(**given) as opened:
        measured = Measured(_specs(base, x, y), measure, opened)
        if adaptive:
            _follow(measured, predicted, seeds, target, rising=rising)
        else:
            measured.run([(r, c) for r in range(rows) for c in range(columns)], seeds)
    counts = np.zeros((rows, columns))
    for r, c, _ in measured.trials:
        counts[r, c] += 1
    return replace(
        plain,
        accuracy=np.array([[measured.mean(r, c) for c in range(columns)] for r in range(rows)]),
        spread=np.array([[measured.spread(r, c) for c in range(columns)] for r in range(rows)]),
        seeds=counts,
        failed=measured.failed,
        trials=tuple(measured.trials.values()),
    )


def predicted_diagram(
    base: Spec | dict[str, Any],
    x: tuple[str, Sequence[Any]],
    y: tuple[str, Sequence[Any]],
    *,
    target: float = 0.5,
    measure: Measure = "accuracy",
) -> PhaseDiagram:
    """Theory's diagram alone: it runs and stores nothing."""
    x, y = ordered("x", x), ordered("y", y)
    specs = _specs(base, x, y)
    for spec in (spec for row in specs for spec in row):
        check_measure(spec, measure)
    predictions = [[predict(spec, trained=has_trained_law(spec)) for spec in row] for row in specs]
    # A measure that theory does not have is not predicted.
    found = [[getattr(prediction, measure, None) for prediction in row] for row in predictions]
    predicted = np.array([[math.nan if value is None else value for value in row] for row in found])
    return PhaseDiagram(
        spec=specs[0][0],
        x=x,
        y=y,
        target=target,
        accuracy=np.full_like(predicted, math.nan),
        spread=np.full_like(predicted, math.nan),
        predicted=predicted,
        regimes=[[p.regime for p in row] for row in predictions],
        seeds=np.zeros_like(predicted),
        failed=0,
        measure=measure,
    )


def usual_share(rows: int, seeds: int) -> float:
    """The share of a grid's trials that its contour usually needs."""
    few = min(FEW_SEEDS, seeds)
    return (few * math.log2(rows + 1) + 2 * seeds) / (rows * seeds)


def _specs(base: Spec | dict[str, Any], x: Axis, y: Axis) -> list[list[Any]]:
    """The settings, row by row."""
    flat = grid(base, [y, x])
    columns = len(x.values)
    return [flat[at : at + columns] for at in range(0, len(flat), columns)]


def _follow(measured: Measured, predicted: np.ndarray, seeds: int, target: float, *, rising: bool) -> None:
    """Measure what the contour needs, column by column."""
    rows, columns = predicted.shape
    few = min(FEW_SEEDS, seeds)
    side = (predicted[:, 0] >= target) == rising
    guess = int(np.argmax(side)) if side.any() else rows - 1
    for c in range(columns):

        def easy(row: int, column: int = c) -> bool:
            measured.run([(row, column)], few)
            return (measured.mean(row, column) >= target) == rising

        # Find the first row on the easy side: growing steps away from the guess, then bisection.
        low, high, step = -1, rows, 1
        at = min(guess, rows - 1)
        while high - low > 1:
            low, high = (low, at) if easy(at) else (at, high)
            if low < 0:
                at = max(0, high - step)
            elif high == rows:
                at = min(rows - 1, low + step)
            else:
                at = (low + high) // 2
            step *= 2
        guess = high
        measured.run([(r, c) for r in (low, high) if 0 <= r < rows], seeds)
        # With all seeds the crossing may move by a row: follow it.
        while low >= 0 and (measured.mean(low, c) >= target) == rising:
            low -= 1
            measured.run([(low, c)] if low >= 0 else [], seeds)
        while high < rows and (measured.mean(high, c) >= target) != rising:
            high += 1
            measured.run([(high, c)] if high < rows else [], seeds)
