"""The end of training for many settings at once, for maps and searches.

The formulas are those of `predict_trained`. What a column of a map shares is computed once, and attention after the
three steps, with which training starts, is averaged over fewer nodes (`fast_predict`). Searches take that exactly.
"""

import math
from functools import lru_cache
from itertools import product
from typing import NamedTuple

import numpy as np

from mnemoscope.spec import Retrieval
from mnemoscope.theory.domain import domain_of
from mnemoscope.theory.fast_predict import Surface, attention_at_once
from mnemoscope.theory.limits import TRAINED
from mnemoscope.theory.predict import RECALLED
from mnemoscope.theory.quadrature import Quadrature, normal_nodes
from mnemoscope.theory.registry import embedding_law, missing
from mnemoscope.theory.spec_grid import SpecGrid
from mnemoscope.theory.trained.attention import FOUND, attended_share
from mnemoscope.theory.trained.capacity import effective_inputs, taken
from mnemoscope.theory.trained.overload import NODES, curves_of

# Ratios of successive numbers of samples in a search: until all tokens have been seen, and beyond, where only attention
# gains; and the samples a token that divide the two.
FINE_STEP, COARSE_STEP, SEEN_ALL = 1.01, 1.1, 40


class Held(NamedTuple):
    """What the values make of the samples: the share of tokens seen, that of these stored, and the load N/N_c."""

    seen: np.ndarray
    stored: np.ndarray
    load: np.ndarray


def trained_surface(cells: SpecGrid, nodes: Quadrature | None = None) -> Surface:
    """Accuracy, attention accuracy and what binds in every cell.

    NaN and "none" for what is impossible or not derived.
    """
    accuracy, attended = np.full((2, len(cells.vocab)), np.nan)
    binding = np.full(len(cells.vocab), "none", dtype="U9")
    valid = np.zeros(len(binding), bool)
    possible = cells.dim >= embedding_law(cells.embedding).least_dim(cells.vocab) if not any(missing(cells)) else valid
    if not possible.any():
        return Surface(accuracy, attended, binding, valid)
    some = cells.take(np.flatnonzero(possible))
    held, first = held_by(some), attention_at_once(some, nodes)
    found = np.where((first >= FOUND) | (some.length == 1), 1.0, first)
    accuracy[possible], attended[possible] = held.seen * found * held.stored, found
    lost = np.stack([1 - held.seen, 1 - found, 1 - held.stored])
    worst = np.array(["unseen", "attention", "storage"])[lost.argmax(axis=0)]
    binding[possible] = np.where(accuracy[possible] >= RECALLED, "recall", worst)
    row = domain_of(cells, TRAINED)
    if row is not None:
        valid[possible] = row.holds(some) & (found >= FOUND)
    return Surface(accuracy, attended, binding, valid)


def trained_accuracy(spec: Retrieval, enough: float = 0.0) -> float:
    """The accuracy of a setting that is derived; a bound where that is below `enough` with perfect attention."""
    held = held_by(SpecGrid.of(spec.model_dump()))
    bound = float((held.seen * held.stored)[0])
    return bound if bound < enough else bound * attended_share(spec)


def accuracy_within(
    spec: Retrieval, target: float, fullest: float = math.inf, shown: float = 0.0
) -> tuple[float, Retrieval | None]:
    """The accuracy that a derived setting reaches with at most its samples, and the least that reach the target.

    Up to 1 %; an accuracy below the target may be a bound. More samples may overload the weights, so all numbers on a
    grid are tried, but only where the load is `fullest` or less, and from `shown` samples a token on. The grid does not
    depend on the samples allowed.
    """
    if spec.samples < shown * spec.vocab:
        return 0.0, None
    samples, bound = _along_samples(spec.replace(samples=1), target, fullest, shown)
    fits = samples <= spec.samples
    samples, bound = np.append(samples[fits], spec.samples), bound[fits]
    bound = np.append(bound, _bounds(spec, samples[-1:], fullest))
    may: list[int] = np.flatnonzero(bound >= target).tolist()
    if not len(may):
        return float(bound.max()), None

    def accuracy(at: int) -> float:
        return float(bound[at]) * attended_share(spec.replace(samples=int(samples[at])))

    # Attention gains by samples: the last place that may do is the best, and the first is found by bisection.
    best = accuracy(may[-1])
    if best < target:
        return best, None
    low, high = -1, len(may) - 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if accuracy(may[middle]) >= target else (middle, high)
    return best, spec.replace(samples=int(samples[may[high]]))


@lru_cache(maxsize=256)
def _along_samples(spec: Retrieval, target: float, fullest: float, shown: float) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of samples from where enough tokens are seen, and the accuracy after each with perfect attention."""
    V, most = spec.vocab, most_samples(spec)
    least = max(1.0, shown * V, math.log1p(-target) / math.log1p(-1 / V))  # (T11)
    fine = least * FINE_STEP ** np.arange(math.ceil(math.log(max(2.0, SEEN_ALL * V / least)) / math.log(FINE_STEP)))
    coarse = fine[-1] * COARSE_STEP ** np.arange(1, 1 + math.ceil(math.log(2**31) / math.log(COARSE_STEP)))
    samples = np.unique(np.ceil(np.concatenate([fine, coarse])))
    samples = samples[samples <= most]
    return samples, _bounds(spec, samples, fullest)


def most_samples(spec: Retrieval) -> int:
    """The most samples that a setting may have: no pair of tokens is counted beyond 2^30."""
    return max(1, min(2**31 - 1, int(2**30 / spec.most_in_a_cell(1))))


def _bounds(spec: Retrieval, samples: np.ndarray, fullest: float) -> np.ndarray:
    held = held_by(SpecGrid.of(spec.model_dump(), samples=samples))
    return np.where(held.load <= fullest, held.seen * held.stored, 0.0)


def held_by(cells: SpecGrid) -> Held:
    """(T9) and (T11) for every cell."""
    seen = -np.expm1(cells.samples * np.log1p(-1 / cells.vocab))
    items = cells.vocab * seen
    columns = np.stack([cells.vocab, cells.dim, cells.width])
    distinct, at = np.unique(columns, axis=1, return_inverse=True)
    law = cells.embedding
    cones = np.array([_cone(int(V), int(d), int(m), cells.activation, law) for V, d, m in distinct.T])
    room, dimension, variance, closed = cones[at.ravel()].T
    load = items * (dimension * (1 - closed) + cells.dim * closed) / room
    h, weight = normal_nodes(NODES)
    loads = load[:, None] * (1 + (np.sqrt(variance / items) / dimension)[:, None] * h)
    named = _overloaded(loads, cells.vocab, cells.dim, cells.samples / cells.vocab, law)
    return Held(seen, np.minimum(named, (1 - closed)[:, None]) @ weight, load)


@lru_cache(maxsize=8192)
def _cone(vocab: int, dim: int, width: int, activation: str, law: str) -> tuple[float, float, float, float]:
    """The directions there are, those that an item takes, their variance, and the share of items out of reach."""
    cone = taken(vocab, dim, law)
    room = effective_inputs(dim, width, activation) * dim
    # Far beyond the table a line through its last two entries may fall below nothing.
    return float(room), max(cone.dimension, 0.1), max(cone.variance, 0.0), cone.closed


def _overloaded(loads: np.ndarray, labels: np.ndarray, dim: np.ndarray, rate: np.ndarray, law: str) -> np.ndarray:
    """`overload.overloaded` for cells that differ in labels, dimensions and samples a token; loads have a row each."""
    ends, curves = curves_of("gaussian" if law == "gaussian" else "sphere", 1)
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
