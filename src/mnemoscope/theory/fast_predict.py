"""Accuracy and regime of hundreds of settings in a few milliseconds, for diagrams that move.

The formulas are those of `predict`, and shared with it. Only the averages are coarser: fewer nodes,
read from tables. `tests/theory/test_fast_predict.py` bounds the difference from `predict`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import log_ndtr

from mnemoscope.theory.attention import Attention, attention_terms, lift_nodes, noise_wins, win_rate
from mnemoscope.theory.domain import inside
from mnemoscope.theory.frame import named_in_frame
from mnemoscope.theory.kernel import Kernel, kernel
from mnemoscope.theory.predict import RECALLED, map_noise
from mnemoscope.theory.quadrature import Nodes, Quadrature, even_counts, normal_nodes, poisson_nodes
from mnemoscope.theory.recall import Memory, named_right
from mnemoscope.theory.registry import embedding_law, missing
from mnemoscope.theory.spec_grid import Number, SpecGrid

# Tokens of cells processed together.
AT_ONCE = 512
# Attention above SURE counts as perfect, a share below FEW as nothing.
SURE, FEW = 1 - 1e-4, 3e-3
# Table of ln Phi: its range, and entries per unit.
LOWEST, HIGHEST, PER_UNIT = -6.0, 10.0, 2048
# Table of Poisson nodes: the range of log means, and the number of entries.
MEANS, ENTRIES = (-9.0, 23.0), 2048


@dataclass(frozen=True)
class Surface:
    """Theory's prediction for every cell; NaN and "none" for what is impossible or not derived.

    `valid` is as in `predict`.
    """

    accuracy: np.ndarray
    attention_accuracy: np.ndarray
    regime: np.ndarray
    valid: np.ndarray


def surface(cells: SpecGrid, nodes: Quadrature | None = None) -> Surface:
    """Accuracy, attention accuracy and regime of every cell, with COARSE nodes by default."""
    nodes = nodes or COARSE
    if any(missing(cells)):
        unknown = np.full(len(cells.vocab), np.nan)
        return Surface(unknown, unknown, np.full(len(unknown), "none"), np.zeros(len(unknown), bool))
    attention = attention_terms(cells)
    lift, seed_weight = _few_lifts(cells, attention, nodes.seeds)
    score, score_weight = normal_nodes(nodes.scores)
    # Axes: seeds, tokens, cells.
    won = win_rate(cells.length, lift[:, None], score[:, None])
    wrong = noise_wins(cells, lift[:, None], score[:, None])
    weight = seed_weight[:, None, None] * score_weight[:, None] * won
    attended = weight.sum(axis=(0, 1))
    # Perfect attention first: that settles many cells, and shows where accuracy is near zero anyway.
    n = cells.samples / cells.vocab
    overlaps = kernel(cells, nodes.norms)
    stored = np.stack([n, n + n**2, 0 * n])
    right = _named(cells, overlaps, np.arange(len(n)), 1.0 + 0 * n, 0 * n, stored, nodes)
    errs = won.min(axis=(0, 1)) < SURE
    matters = (right > FEW) & (attended > FEW)
    right[errs & ~matters] = 0.0
    errs = np.flatnonzero(errs & matters)
    if len(errs):
        seed, token, at = np.nonzero(weight[..., errs] > FEW / weight[..., 0].size)
        at = errs[at]
        stored = _stored_by_seed(cells, won, wrong, score_weight)[:, seed, at]
        named = _named(cells, overlaps, at, won[seed, token, at], wrong[seed, token, at], stored, nodes)
        right[errs] = 0.0
        np.add.at(right, at, weight[seed, token, at] * named)
    # Tokens never seen cap the accuracy (D3), as in `Recall`.
    seen = -np.expm1(cells.samples * np.log1p(-1 / cells.vocab))
    accuracy = np.minimum(np.minimum(right + (1 - attended) / cells.vocab, seen + 1 / cells.vocab), 1.0)
    regime = _regimes(cells, attention, overlaps, accuracy, attended)
    possible = cells.dim >= embedding_law(cells.embedding).least_dim(cells.vocab)
    accuracy, attended = (np.where(possible, part, np.nan) for part in (accuracy, attended))
    regime = np.where(possible, regime, "none")
    return Surface(accuracy, attended, regime, inside(cells) & ~np.isnan(accuracy))


def attention_at_once(cells: SpecGrid, nodes: Quadrature | None = None) -> np.ndarray:
    """Attention accuracy of every cell alone, as `surface` has it."""
    nodes = nodes or COARSE
    lift, seed_weight = _few_lifts(cells, attention_terms(cells), nodes.seeds)
    score, score_weight = normal_nodes(nodes.scores)
    won = win_rate(cells.length, lift[:, None], score[:, None])
    return np.einsum("s,t,stc->c", seed_weight, score_weight, won)


def _few_lifts(cells: SpecGrid, attention: Attention, seeds: int) -> Nodes:
    """Normal nodes over seeds, with the mean and the spread of the lift (A18)."""
    lift, weight = lift_nodes(cells, attention)
    mean = weight @ lift
    spread = np.sqrt(np.maximum(weight @ (lift - mean) ** 2, 0.0))
    g, g_weight = normal_nodes(seeds)
    return mean + g[:, None] * spread, g_weight


def _stored_by_seed(cells: SpecGrid, won: np.ndarray, wrong: np.ndarray, share: np.ndarray) -> np.ndarray:
    """A pair's mean count and mean squared count, and wrong pairs, by seed and cell (B2)."""
    mean = cells.samples / cells.vocab * won
    return np.stack([np.einsum("stc,t->sc", part, share) for part in (mean, mean + mean**2, wrong)])


def _named(
    cells: SpecGrid,
    overlaps: Kernel,
    at: np.ndarray,
    won: np.ndarray,
    wrong: np.ndarray,
    stored: np.ndarray,
    nodes: Quadrature,
) -> np.ndarray:
    """The chance that a token's label is named, given the share of its sequences that the token wins.

    In parts, since each token is an array over counts, norms and seeds.
    """
    if len(at) > AT_ONCE:
        parts = [slice(first, first + AT_ONCE) for first in range(0, len(at), AT_ONCE)]
        return np.concatenate(
            [_named(cells, overlaps, at[part], won[part], wrong[part], stored[:, part], nodes) for part in parts]
        )
    items = cells.take(at)
    mean = items.samples / items.vocab * won
    apart = not embedding_law(cells.embedding).overlapping
    if apart and not cells.hidden:
        if cells.trigger == "additive":
            return named_in_frame(mean, stored[0], items.vocab)  # (B9)
        return 1 - np.exp(-mean) * (1 - 1 / items.vocab)  # (B6)
    if apart:
        memory = Memory(*stored, others=even_counts(stored[0], nodes.steps))
        n, weight = even_counts(mean, nodes.steps)
    else:
        memory = Memory(*stored, others=_poisson(stored[0], nodes.others))
        n, weight = _from_zero(mean, nodes.stored)
    return np.sum(named_right(items, overlaps.take(at), memory, n, wrong, nodes) * weight, axis=0)


def _from_zero(mean: np.ndarray, count: int) -> Nodes:
    """Poisson nodes that include 0, where nothing is stored (a Radau rule).

    Since x P(x) = a P(x - 1), the others are Gauss nodes moved up by one.
    """
    nodes, weights = _poisson(mean, count - 1)
    nodes = nodes + 1
    weights = mean * weights / nodes
    nothing = np.maximum(1 - weights.sum(axis=0, keepdims=True), 0.0)
    return np.concatenate([0 * nothing, nodes]), np.concatenate([nothing, weights])


def _poisson(mean: np.ndarray, count: int) -> Nodes:
    """Gauss nodes of a Poisson law, interpolated in a table."""
    low, high = MEANS
    at = (np.log(np.maximum(mean, 1e-30)) - low) * ((ENTRIES - 1) / (high - low))
    at = np.clip(at, 0, ENTRIES - 1.001)
    left = at.astype(np.int64)
    part = at - left
    nodes, weights = (table[:, left] * (1 - part) + table[:, left + 1] * part for table in _poisson_table(count))
    return nodes, weights


@lru_cache(maxsize=8)
def _poisson_table(count: int) -> Nodes:
    # The largest mean is above MOST_COUNTED, so all means get Gauss nodes.
    nodes, weights = poisson_nodes(np.exp(np.linspace(*MEANS, ENTRIES)), count)
    return nodes.T.copy(), weights.T.copy()


@lru_cache(maxsize=1)
def _log_phi_table() -> np.ndarray:
    return log_ndtr(np.arange(LOWEST, HIGHEST, 1 / PER_UNIT))


def log_phi(x: np.ndarray) -> np.ndarray:
    """ln Phi(x) from the nearest entry of a table: to one part in a thousand where it matters."""
    at = ((x - LOWEST) * PER_UNIT + 0.5).clip(0, (HIGHEST - LOWEST) * PER_UNIT - 1)
    return _log_phi_table()[at.astype(np.int32)]


# While a slider moves, and once it rests.
COARSE = Quadrature(seeds=2, scores=3, stored=5, steps=9, norms=1, others=3, tails=2, size=1, noise=2, log_phi=log_phi)
FINER = Quadrature(seeds=3, scores=5, stored=8, steps=17, norms=2, others=3, tails=2, size=1, noise=3, log_phi=log_phi)


def _regimes(
    cells: SpecGrid, attention: Attention, overlaps: Kernel, accuracy: np.ndarray, attended: np.ndarray
) -> np.ndarray:
    """What limits each cell, by the rule that `predict` uses."""

    def largest(noises: Mapping[str, Number]) -> np.ndarray:
        sizes = np.stack([np.broadcast_to(noise, accuracy.shape) for noise in noises.values()])
        return np.array(list(noises))[sizes.argmax(axis=0)]

    named = accuracy / np.maximum(attended, 1e-300)
    unseen = np.exp(-cells.samples / cells.vocab) > (1 - named) / 2
    limit = np.where(unseen, "unseen", largest(map_noise(cells, overlaps)))
    limit = np.where(attended <= named, largest(attention.terms), limit)
    return np.where(accuracy >= RECALLED, "recall", limit)
