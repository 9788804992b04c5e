"""The end of training for many settings at once, for maps and searches.

The formulas are those of `predict_trained`, averages included; what a column of a map shares is computed once. A map of
seven hundred cells takes some twenty milliseconds.
"""

from functools import lru_cache
from itertools import product
from typing import Any

import numpy as np

from mnemoscope.spec import Retrieval
from mnemoscope.theory.domain import TRAINED, domain_of
from mnemoscope.theory.fast_predict import Surface
from mnemoscope.theory.predict import RECALLED
from mnemoscope.theory.quadrature import normal_nodes
from mnemoscope.theory.registry import embedding_law, missing
from mnemoscope.theory.spec_grid import SpecGrid
from mnemoscope.theory.trained.attention import attended_share
from mnemoscope.theory.trained.capacity import effective_inputs, taken
from mnemoscope.theory.trained.overload import NODES, _curves


def trained_surface(cells: SpecGrid) -> Surface:
    """Accuracy, attention accuracy and what binds in every cell.

    NaN and "none" for what is impossible or not derived.
    """
    accuracy, attended = np.full((2, len(cells.vocab)), np.nan)
    binding = np.full(len(cells.vocab), "none", dtype="U9")
    if any(missing(cells)):
        return Surface(accuracy, attended, binding, np.zeros(len(binding), bool))
    possible = cells.dim >= embedding_law(cells.embedding).least_dim(cells.vocab)
    held = cells.take(np.flatnonzero(possible))
    seen = -np.expm1(held.samples * np.log1p(-1 / held.vocab))
    stored, found = _stored(held, held.vocab * seen), _attended(held)
    accuracy[possible], attended[possible] = seen * found * stored, found
    lost = np.stack([1 - seen, 1 - found, 1 - stored])
    worst = np.array(["unseen", "attention", "storage"])[lost.argmax(axis=0)]
    binding[possible] = np.where(accuracy[possible] >= RECALLED, "recall", worst)
    row = domain_of(cells, TRAINED)
    valid = np.zeros(len(binding), bool) if row is None else row.holds(cells) & possible
    return Surface(accuracy, attended, binding, valid)


def trained_accuracy(spec: Retrieval) -> float:
    """The accuracy of a setting that is derived, for searches."""
    return float(trained_surface(SpecGrid.of(spec.model_dump())).accuracy[0])


def _stored(cells: SpecGrid, items: np.ndarray) -> np.ndarray:
    """(T9) for every cell."""
    columns = np.stack([cells.vocab, cells.dim, cells.width])
    distinct, at = np.unique(columns, axis=1, return_inverse=True)
    law = cells.embedding
    cones = np.array([_cone(int(V), int(d), int(m), cells.activation, law) for V, d, m in distinct.T])
    room, dimension, variance, closed = cones[at.ravel()].T
    load = items * (dimension * (1 - closed) + cells.dim * closed) / room
    width = np.sqrt(variance / items) / dimension
    h, weight = normal_nodes(NODES)
    loads = load[:, None] * (1 + width[:, None] * h)
    named = _overloaded(loads, cells.vocab, cells.dim, cells.samples / cells.vocab, law)
    return np.minimum(named, (1 - closed)[:, None]) @ weight


@lru_cache(maxsize=8192)
def _cone(vocab: int, dim: int, width: int, activation: str, law: str) -> tuple[float, float, float, float]:
    """The directions there are, those that an item takes, their variance, and the share of items out of reach."""
    cone = taken(vocab, dim, law)
    room = effective_inputs(dim, width, activation) * dim
    # Far beyond the table a line through its last two entries may fall below nothing.
    return float(room), max(cone.dimension, 0.1), max(cone.variance, 0.0), cone.closed


def _overloaded(loads: np.ndarray, labels: np.ndarray, dim: np.ndarray, rate: np.ndarray, law: str) -> np.ndarray:
    """`overload.overloaded` for cells that differ in labels, dimensions and samples a token; loads have a row each."""
    ends, curves = _curves("gaussian" if law == "gaussian" else "sphere", 1)
    logs = np.log(np.maximum(loads, 1.0))
    mixed = np.zeros_like(logs)
    shares = [_shares(end, at) for end, at in zip(ends, (np.log(labels), np.log(dim), 1 / rate), strict=True)]
    for i, j, k in product(*(range(len(end)) for end in ends)):
        share = shares[0][i] * shares[1][j] * shares[2][k]
        rows = np.flatnonzero(share)
        if not len(rows):
            continue
        curve = curves[i][j][k]
        last = float(curve.x[-1])
        here = curve(np.minimum(logs[rows], last)) * np.exp(np.minimum(0.0, last - logs[rows]))
        mixed[rows] += share[rows, None] * here
    return np.maximum(mixed, (1 / labels)[:, None])


def _shares(ends: np.ndarray, at: np.ndarray) -> np.ndarray:
    """The weight of each tabled number in a linear interpolation at each of `at`; the nearest alone outside."""
    return np.stack([np.interp(at, ends, unit) for unit in np.eye(len(ends))])


def _attended(cells: SpecGrid) -> np.ndarray:
    choices = {name: getattr(cells, name) for name in ("activation", "embedding", "trigger")}
    sizes = np.stack([cells.vocab, cells.dim, cells.length, cells.samples, cells.width]).astype(int).T
    names = ("vocab", "dim", "length", "samples", "width")
    return np.array([_attended_by(**dict(zip(names, map(int, row), strict=True)), **choices) for row in sizes])


@lru_cache(maxsize=65536)
def _attended_by(**values: Any) -> float:
    # The sizes were checked where they were read.
    return attended_share(Retrieval.model_construct(**values))
