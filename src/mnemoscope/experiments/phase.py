"""Phase diagrams: accuracy over two axes, measured and predicted.

The whole grid, or (`adaptive`) only what the contour needs: in every column the row where accuracy
crosses the target is found by bisection with few seeds, starting from the neighbour's, and only the
rows next to it get all seeds. A contour is read off by interpolation between exactly those rows, so
it comes out as it would from the whole grid.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from mnemoscope.engine.extras import need
from mnemoscope.engine.record import Trial
from mnemoscope.experiments.axes import NAMED, Axis, grid
from mnemoscope.experiments.critical import RISING
from mnemoscope.experiments.sweep import sweep
from mnemoscope.experiments.tools import GivenTools, Tools, open_tools
from mnemoscope.spec import Retrieval, SpecError
from mnemoscope.theory.predict import predict

if TYPE_CHECKING:
    import xarray

# Seeds that are enough to see on which side of the target a cell lies.
FEW_SEEDS = 2


@dataclass(frozen=True)
class PhaseDiagram:
    """Accuracy on a grid; rows follow `y`, columns follow `x`. NaN where nothing was run."""

    x: Axis
    y: Axis
    target: float
    accuracy: np.ndarray
    predicted: np.ndarray
    regimes: list[list[str]]
    seeds: np.ndarray
    failed: int
    trials: tuple[Trial, ...] = field(default=(), repr=False)

    def contour(self) -> list[float | None]:
        """For every column, where accuracy crosses the target along `y`; None where it does not."""
        return [crossing_in_column(self.y.values, column, self.target) for column in self.accuracy.T]

    def as_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        return {
            "x": {"axis": self.x.field, "values": list(self.x.values)},
            "y": {"axis": self.y.field, "values": list(self.y.values)},
            "target": self.target,
            "accuracy": _plain(self.accuracy),
            "predicted": _plain(self.predicted),
            "regimes": self.regimes,
            "contour": self.contour(),
            "seeds": self.seeds.astype(int).tolist(),
            "trials": len(self.trials),
            "failed": self.failed,
        }

    def plot(self, path: str | Path | None = None) -> Any:
        """Draw it into a file (.png, .svg, .pdf, .html); without one, a matplotlib figure."""
        # By name: figures are made from results, and nothing here depends on them.
        report = import_module("mnemoscope.ui.figures.phase")
        if path is None:
            return report.make_figure(self)
        return report.draw_phase(self, Path(path))

    def to_xarray(self) -> "xarray.Dataset":
        """Measured and predicted accuracy with labelled axes."""
        need("tables")
        import xarray

        dims = (self.y.field, self.x.field)
        return xarray.Dataset(
            {
                "accuracy": (dims, self.accuracy),
                "predicted": (dims, self.predicted),
                "seeds": (dims, self.seeds),
                "regime": (dims, np.array(self.regimes)),
            },
            coords={self.y.field: list(self.y.values), self.x.field: list(self.x.values)},
        )


def ordered(option: str, axis: tuple[str, Sequence[Any]]) -> Axis:
    """An axis of a diagram: numbers above 0, in order, each once."""
    field, values = axis
    if field in NAMED:
        raise SpecError(option, f"expected an axis of numbers, got {field!r}")
    numbers = [value for value in values if isinstance(value, int | float) and value > 0]
    if not values or len(numbers) < len(values):
        raise SpecError(option, f"expected numbers above 0, got {field}={list(values)}")
    return Axis(field, tuple(sorted(set(numbers))))


def _plain(values: np.ndarray) -> list[list[float | None]]:
    return [[None if math.isnan(value) else float(value) for value in row] for row in values]


def crossing_in_column(values: Sequence[float], column: Sequence[float] | np.ndarray, target: float) -> float | None:
    """Between the last two measured neighbours on different sides, straight in the logarithm."""
    known = [(v, a) for v, a in zip(values, column, strict=True) if not math.isnan(a)]
    for (v0, a0), (v1, a1) in pairwise(known):
        if (a0 >= target) != (a1 >= target):
            share = (target - a0) / (a1 - a0)
            return math.exp(math.log(v0) + share * math.log(v1 / v0))
    return None


class Measured:
    """The cells of a diagram and their trials so far."""

    def __init__(self, specs: list[list[Retrieval]], tools: Tools) -> None:
        self.specs, self.tools = specs, tools
        self.trials: dict[tuple[int, int, int], Trial] = {}
        self.failed = 0

    def run(self, cells: Sequence[tuple[int, int]], seeds: int) -> None:
        """See to it that these cells (row, column) have their first seeds."""
        wanted = [(r, c, s) for r, c in cells for s in range(seeds) if (r, c, s) not in self.trials]
        jobs = [(self.specs[r][c], seed) for r, c, seed in wanted]
        tools = self.tools
        self.failed += sweep(jobs, tools.store, tools.workers, tools.report("trials")).failed
        for (r, c, seed), (spec, _) in zip(wanted, jobs, strict=True):
            trial = tools.store.get(spec, seed)
            if trial is not None:
                self.trials[r, c, seed] = trial

    def mean(self, row: int, column: int) -> float:
        """Mean accuracy of a cell over what was run, NaN if nothing was."""
        accuracies = [
            trial.accuracy
            for (r, c, _), trial in self.trials.items()
            if (r, c) == (row, column) and trial.accuracy is not None
        ]
        return math.fsum(accuracies) / len(accuracies) if accuracies else math.nan


def phase_diagram(
    base: Retrieval | dict[str, Any],
    x: tuple[str, Sequence[Any]],
    y: tuple[str, Sequence[Any]],
    *,
    seeds: int = 8,
    target: float = 0.5,
    adaptive: bool = False,
    **given: Unpack[GivenTools],
) -> PhaseDiagram:
    """Measure and predict accuracy over two axes, such as `("dim", [32, 48, 64])`.

    `base` is a spec, or as much of one as the axes leave open. Trials are kept in `store`, the
    user's own by default; workers and progress are given by name as well, or all three as `tools`.
    """
    plain = predicted_diagram(base, x, y, target=target)
    x, y, predicted = plain.x, plain.y, plain.predicted
    if adaptive and y.field not in (*RISING, "length", "vocab"):
        raise SpecError("y", f"expected an axis with an order to search along, got {y.field}")
    rows, columns = predicted.shape
    with open_tools(**given) as opened:
        measured = Measured(_specs(base, x, y), opened)
        if adaptive:
            _follow(measured, predicted, seeds, target, rising=y.field in RISING)
        else:
            measured.run([(r, c) for r in range(rows) for c in range(columns)], seeds)
    counts = np.zeros((rows, columns))
    for r, c, _ in measured.trials:
        counts[r, c] += 1
    return replace(
        plain,
        accuracy=np.array([[measured.mean(r, c) for c in range(columns)] for r in range(rows)]),
        seeds=counts,
        failed=measured.failed,
        trials=tuple(measured.trials.values()),
    )


def predicted_diagram(
    base: Retrieval | dict[str, Any], x: tuple[str, Sequence[Any]], y: tuple[str, Sequence[Any]], *, target: float = 0.5
) -> PhaseDiagram:
    """Theory's diagram alone: nothing is run, and nothing is kept."""
    x, y = ordered("x", x), ordered("y", y)
    predictions = [[predict(spec) for spec in row] for row in _specs(base, x, y)]
    predicted = np.array([[math.nan if p.accuracy is None else p.accuracy for p in r] for r in predictions])
    return PhaseDiagram(
        x=x,
        y=y,
        target=target,
        accuracy=np.full_like(predicted, math.nan),
        predicted=predicted,
        regimes=[[p.regime for p in row] for row in predictions],
        seeds=np.zeros_like(predicted),
        failed=0,
    )


def usual_share(rows: int, seeds: int) -> float:
    """The share of a grid's trials that its contour usually needs, with so many rows."""
    few = min(FEW_SEEDS, seeds)
    return (few * math.log2(rows + 1) + 2 * seeds) / (rows * seeds)


def _specs(base: Retrieval | dict[str, Any], x: Axis, y: Axis) -> list[list[Retrieval]]:
    """The settings, row by row."""
    flat = grid(base.model_dump() if isinstance(base, Retrieval) else base, [y, x])
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

        # The first row on the easy side: away from the guess in growing steps, then by halves.
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
        # All seeds may move the crossing by a row: follow it.
        while low >= 0 and (measured.mean(low, c) >= target) == rising:
            low -= 1
            measured.run([(low, c)] if low >= 0 else [], seeds)
        while high < rows and (measured.mean(high, c) >= target) != rising:
            high += 1
            measured.run([(high, c)] if high < rows else [], seeds)
