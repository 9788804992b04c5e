r"""How many items a trained memory holds, and how sharp the limit is.

With random inputs the conditions of N items are close to independent, and a random subspace of dimension m d meets the
product of N cones when m d exceeds the sum of what they take. That is heuristic here: the subspace is I (x) R with the
inputs R, not a uniformly random one. It gives (T3)

    m d = N_c delta(M, d)

for M labels and m inputs: the d of the embedding, or the hidden units of a fixed MLP. Of these count no more than the
activation tells apart: hermite2 makes quadratic forms of d numbers, d (d + 1)/2 at most.

The sum of N intrinsic volumes has variance N v, so that all N items are stored with probability (T4)

    P = Phi((m d - N delta) / sqrt(N v)) exp(-N f).

f is the share of items that no matrix stores, because u_x lies inside the hull of the other labels (`hull.py`).
"""

import json
import math
from functools import cache, lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.interpolate import PchipInterpolator
from scipy.optimize import brentq
from scipy.special import comb, ndtr

from mnemoscope.theory.registry import embedding_law

# The largest vocabulary that a search tries.
MOST_ITEMS = 2**31


class Taken(NamedTuple):
    """What an item takes on average: dimensions, their variance, and the share of items that cannot be stored."""

    dimension: float
    variance: float
    closed: float


@cache
def _table() -> dict[str, object]:
    return json.loads((Path(__file__).parent / "cones.json").read_text())


@cache
def _surfaces(law: str, quantity: str) -> tuple[np.ndarray, list[PchipInterpolator]]:
    """For each number of labels in the table, the quantity over 1/d."""
    table = _table()
    labels, dims = np.array(table["labels"], float), np.array(table["dims"], float)
    inverse = np.where(dims > 0, 1 / np.maximum(dims, 1), 0.0)
    order = np.argsort(inverse)
    rows = []
    for cells in table[law]:  # pyright: ignore[reportGeneralTypeIssues, reportArgumentType]
        known = [i for i in order if cells[i] is not None]
        rows.append(PchipInterpolator(inverse[known], [cells[i][quantity] for i in known]))
    return np.log(labels), rows


@lru_cache(maxsize=4096)
def _interpolated(law: str, quantity: str, labels: float, dim: float) -> float:
    """A quantity between the table's cells; beyond the largest vocabulary, along the last slope in ln M."""
    logs, rows = _surfaces(law, quantity)
    values = np.array([float(row(min(1 / dim, 0.5))) for row in rows])
    at = math.log(labels)
    if at > logs[-1]:
        slope = (values[-1] - values[-2]) / (logs[-1] - logs[-2])
        return float(values[-1] + slope * (at - logs[-1]))
    return float(PchipInterpolator(logs, values)(at))


def taken(labels: float, dim: float, law: str) -> Taken:
    """What an item takes of a memory of `labels` labels in `dim` dimensions."""
    if not embedding_law(law).overlapping:
        # Orthonormal labels are as many dimensions: the cone of (T2).
        return Taken(_interpolated("sphere", "dimension", labels, math.inf), 0.0, 0.0)
    # What is extrapolated in M may pass these ends.
    closed = min(1.0, math.exp(_interpolated(law, "log_closed", labels, dim))) if law == "gaussian" else 0.0
    dimension = min(float(dim), _interpolated(law, "dimension", labels, dim))
    return Taken(dimension, max(0.0, _interpolated(law, "variance", labels, dim)), closed)


def effective_inputs(dim: int, width: int, activation: str) -> int:
    """The inputs of a memory that are linearly independent."""
    if not width:
        return dim
    degree = {"linear": 1, "hermite2": 2, "hermite3": 3}.get(activation)
    # Polynomials of one parity and this degree, on a sphere: as many as homogeneous ones.
    return width if degree is None else min(width, int(comb(dim + degree - 1, degree, exact=True)))


def seen_share(samples: float, vocab: float) -> float:
    """The share of tokens that were ever informative: 1 - (1 - 1/V)^N."""
    return -math.expm1(samples * math.log1p(-1 / vocab))


def load(items: float, labels: float, dim: int, inputs: int, law: str) -> float:
    """N/N_c: the directions that the items take over those there are."""
    cone = taken(labels, dim, law)
    return items * (cone.dimension * (1 - cone.closed) + dim * cone.closed) / (inputs * dim)


def critical_items(dim: int, inputs: int, law: str, labels: float | None = None) -> float:
    """N_c of (T3), with as many labels as items unless said otherwise."""
    if labels is not None:
        return 1 / load(1.0, labels, dim, inputs, law)

    def excess(log_items: float) -> float:
        items = math.exp(log_items)
        return math.log(load(items, max(2.0, items), dim, inputs, law))

    low, high = math.log(2), math.log(MOST_ITEMS)
    if excess(low) > 0:
        return math.exp(low) / load(2.0, 2.0, dim, inputs, law)
    if excess(high) <= 0:
        return math.inf
    return math.exp(float(brentq(excess, low, high, xtol=1e-6)))  # pyright: ignore[reportArgumentType]


def width_of_crossing(items: float, labels: float, dim: int, law: str) -> float:
    """The standard deviation of the load at which the last item is lost (T4)."""
    cone = taken(labels, dim, law)
    return math.sqrt(cone.variance / items) / cone.dimension


def separable_probability(items: float, labels: float, dim: int, inputs: int, law: str) -> float:
    """The share of draws in which all items can be stored (T4)."""
    cone = taken(labels, dim, law)
    room = inputs * dim - items * cone.dimension
    return float(ndtr(room / math.sqrt(items * max(cone.variance, 1e-9)))) * math.exp(-items * cone.closed)


def half_point(dim: int, inputs: int, law: str, share: float = 0.5) -> float:
    """The number of items, each with a label of its own, that half of the draws can store, or another share of them."""
    top = critical_items(dim, inputs, law)

    def excess(log_items: float) -> float:
        items = math.exp(log_items)
        return separable_probability(items, items, dim, inputs, law) - share

    return math.exp(float(brentq(excess, math.log(2.0), math.log(2 * top), xtol=1e-6)))  # pyright: ignore[reportArgumentType]
