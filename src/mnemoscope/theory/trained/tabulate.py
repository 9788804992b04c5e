"""Make the tables of this room: `python -m mnemoscope.theory.trained.tabulate` (about half an hour on one core).

`cones.json` has what a cone takes, over labels and dimensions; `curves.json` the accuracy above capacity, over labels,
dimensions and load. Both hold averages over random draws with a fixed seed, and nothing that was fitted.
"""

import json
import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mnemoscope.theory.trained.cones import draw_cones, draw_orthogonal_cones
from mnemoscope.theory.trained.fixed_point import TOPS, curve
from mnemoscope.theory.trained.hull import closed_share

LAWS = ("sphere", "gaussian")
CONE_DIMS = (2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 0)
CONE_LABELS = tuple(2**power for power in range(1, 18))
# Entries of the label matrices drawn for a cell, and the fewest and most draws.
CONE_ENTRIES, CONE_DRAWS = 1e8, (200, 10_000)
# Larger label matrices are left out: what lies beyond is interpolated to d = infinity, which the last column has.
LARGEST_MATRIX = 2**21
ORTHOGONAL_DRAWS = 100_000
# Linear programs for the reach of a hull, and a share of labels so small that it is none.
REACHES, NOTHING = 400, 1e-12

CURVE_DIMS = (8, 16, 32)
CURVE_LABELS = (32, 128, 512)
# Samples a token, N/V; 0 stands for infinity.
CURVE_RATES = (1.0, 4.0, 0.0)
SCALES = (0.5, 0.8, 1.2, 1.8, 2.7, 4.5, 8.0, 16.0, 50.0)
CURVE_ENTRIES, CURVE_DRAWS = 6e6, (300, 1600)

HERE = Path(__file__).parent


def draws_for(labels: int, dim: int, entries: float, ends: tuple[int, int]) -> int:
    """Fewer draws where each is large."""
    return int(min(max(entries / (labels * dim), ends[0]), ends[1]))


def cone_cell(law: str, labels: int, dim: int) -> dict[str, float] | None:
    """One cell of `cones.json`; a dimension of 0 stands for infinity."""
    if labels * dim > LARGEST_MATRIX:
        return None
    if dim == 0:
        cone = draw_orthogonal_cones(labels, ORTHOGONAL_DRAWS)
    else:
        cone = draw_cones(labels, dim, law, draws_for(labels, dim, CONE_ENTRIES, CONE_DRAWS))
    cell = {"dimension": round(cone.dimension, 5), "variance": round(cone.variance, 4), "error": round(cone.error, 5)}
    if law == "gaussian":
        cell["log_closed"] = round(log_closed(labels, dim), 4)
    return cell


def log_closed(labels: int, dim: int) -> float:
    """ln f, no less than NOTHING."""
    share = closed_share(labels, dim, REACHES) if dim else 0.0
    return math.log(max(share, NOTHING))


def curve_cell(law: str, labels: int, dim: int) -> list[dict[str, list[float]]]:
    """One cell of `curves.json`: for each rate the loads, and the accuracy at each for every entry of TOPS."""
    draws, cells = draws_for(labels, dim, CURVE_ENTRIES, CURVE_DRAWS), []
    for rate in CURVE_RATES:
        points = curve(labels, dim, law, rate, SCALES, draws)
        columns = zip(*(point.accuracy for point in points), strict=True)
        accuracy = {str(top): [round(value, 4) for value in column] for top, column in zip(TOPS, columns, strict=True)}
        cells.append({"load": [round(point.load, 5) for point in points], **accuracy})
    return cells


def tabulate(name: str, labels: tuple[int, ...], dims: tuple[int, ...], cell: Callable[[str, int, int], Any]) -> None:
    """Write one table, a row for each number of labels, and say how far it is."""
    table: dict[str, Any] = {"labels": labels, "dims": dims, "rates": CURVE_RATES}
    for law in LAWS:
        table[law] = []
        for count in labels:
            table[law].append([cell(law, count, dim) for dim in dims])
            print(f"{name}: {law}, {count:,} labels", file=sys.stderr, flush=True)
    (HERE / name).write_text(json.dumps(table, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    wanted = sys.argv[1:] or ["cones", "curves"]
    if "cones" in wanted:
        tabulate("cones.json", CONE_LABELS, CONE_DIMS, cone_cell)
    if "curves" in wanted:
        tabulate("curves.json", CURVE_LABELS, CURVE_DIMS, curve_cell)
