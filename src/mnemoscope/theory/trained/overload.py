r"""The share of seen items that a trained memory names, below capacity, at the crossing and above it.

Below N_c every item that can be stored is stored. Above it, accuracy is that of the minimum of cross-entropy (T6, T8),
which is nearly a function of the load N/N_c alone: the numbers of labels and dimensions move it by a few hundredths.
Near N_c the load at which items begin to be lost scatters from draw to draw, by the width of (T4), and accuracy is the
average over that: (T9)

    accuracy = E a(load (1 + width h)),   h ~ N(0, 1),   a = 1 - f below a load of 1.
"""

import json
import math
from functools import cache, lru_cache
from itertools import product
from pathlib import Path

import numpy as np
from scipy.interpolate import PchipInterpolator

from mnemoscope.theory.quadrature import normal_nodes
from mnemoscope.theory.trained.capacity import load, taken, width_of_crossing

# Ranks up to which a label counts as named: those of the table.
TOPS = (1, 2, 5, 10)
NODES = 15


@cache
def curves_of(law: str, top: int) -> tuple[list[np.ndarray], list[list[list[PchipInterpolator]]]]:
    """The ends of the table (logs of labels and dimensions, inverse rates), and at each accuracy over the log load."""
    table = json.loads((Path(__file__).parent / "curves.json").read_text())
    inverse = np.array([1 / rate if rate else 0.0 for rate in table["rates"]])
    falling = np.argsort(inverse)
    ends = [np.log(table["labels"]), np.log(table["dims"]), inverse[falling]]
    curves = [[[_curve(rates[i], top) for i in falling] for rates in row] for row in table[law]]
    return ends, curves


def _curve(cell: dict[str, list[float]], top: int) -> PchipInterpolator:
    """Accuracy over the log of the load: from N_c, where everything is stored, it only falls."""
    logs, accuracy = [0.0], [1.0]
    for load_, share in sorted(zip(cell["load"], cell[str(top)], strict=True)):
        if math.log(load_) > logs[-1] + 1e-6:
            logs.append(math.log(load_))
            accuracy.append(min(share, accuracy[-1]))
    return PchipInterpolator(logs, accuracy)


def overloaded(loads: np.ndarray, labels: float, dim: float, rate: float, law: str, top: int = 1) -> np.ndarray:
    """Accuracy at the minimum of cross-entropy with `rate` samples a token, for loads above 1; 1 below."""
    ends, curves = curves_of("gaussian" if law == "gaussian" else "sphere", top)
    logs = np.log(np.maximum(loads, 1.0))
    mixed = np.zeros(np.shape(loads))
    places = zip(ends, (math.log(labels), math.log(dim), 1 / rate), strict=True)
    for corner in product(*(_between(end, at) for end, at in places)):
        (i, j, k), shares = zip(*corner, strict=True)
        curve = curves[i][j][k]
        # Beyond its last point a curve goes on as 1/load, as the share of items does that a memory could hold.
        last = float(curve.x[-1])
        mixed += math.prod(shares) * curve(np.minimum(logs, last)) * np.exp(np.minimum(0.0, last - logs))
    return np.maximum(mixed, min(1.0, top / labels))


def _between(ends: np.ndarray, at: float) -> list[tuple[int, float]]:
    """The neighbours of a number among the ends, and their shares; the nearest alone outside."""
    i = int(np.clip(np.searchsorted(ends, at) - 1, 0, len(ends) - 2))
    share = float(np.clip((at - ends[i]) / (ends[i + 1] - ends[i]), 0.0, 1.0))
    return [(i + side, weight) for side, weight in ((0, 1 - share), (1, share)) if weight]


@lru_cache(maxsize=8192)
def stored_share(
    items: float,
    labels: float,
    dim: int,
    inputs: int,
    law: str,
    rate: float = math.inf,
    top: int = 1,
    shift: float = 0.0,
) -> float:
    """(T9): the share of items whose label is among the first `top`, after `rate` samples a token on average.

    `shift` moves the load by so many standard deviations of its scatter between draws, for an interval.
    """
    at, cone = load(items, labels, dim, inputs, law), taken(labels, dim, law)
    width = width_of_crossing(items, labels, dim, law)
    if shift:
        loads, weight = np.array([at * (1 + shift * width)]), np.ones(1)
    else:
        h, weight = normal_nodes(NODES)
        loads = at * (1 + width * h)
    return float(weight @ np.minimum(overloaded(loads, labels, dim, rate, law, top), 1 - cone.closed))
