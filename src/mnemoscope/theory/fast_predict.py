"""Accuracy and regime of hundreds of settings in a few milliseconds, for diagrams that move.

The formulas are those of `predict`, shared with it; what differs is how finely averages are taken:
fewer nodes, found in tables. `tests/theory/test_fast_predict.py` says how far that is from `predict`.
"""

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
from mnemoscope.theory.spec_grid import SpecGrid

# Tokens of cells that are looked at together.
AT_ONCE = 512
# Attention so close to 1 is taken for it, and a share so small for nothing.
SURE, FEW = 1 - 1e-4, 3e-3
# ln Phi from a table: its range, and entries to a unit.
LOWEST, HIGHEST, PER_UNIT = -6.0, 10.0, 2048
# Logarithms of means between which Poisson nodes are looked up, and their number.
MEANS, ENTRIES = (-9.0, 23.0), 2048


@dataclass(frozen=True)
class Surface:
    """What theory says of every cell; NaN and "none" where it says nothing.

    There can be no such setting, or nothing is derived for it. `valid` is as in `predict`.
    """

    accuracy: np.ndarray
    attention_accuracy: np.ndarray
    regime: np.ndarray
    valid: np.ndarray


def surface(cells: SpecGrid, nodes: Quadrature | None = None) -> Surface:
    """Accuracy, attention accuracy and regime, cell by cell; coarsely unless told otherwise."""
    nodes = nodes or COARSE
    if any(missing(cells)):
        unknown = np.full(len(cells.vocab), np.nan)
        nowhere = np.zeros(len(unknown), bool)
        return Surface(unknown, unknown, np.full(len(unknown), "none"), nowhere)
    attention = attention_terms(cells)
    lift, seed_weight = _few_lifts(cells, attention, nodes.seeds)
    score, score_weight = normal_nodes(nodes.scores)
    # Seeds, tokens, cells.
    won = win_rate(cells.length, lift[:, None], score[:, None])
    wrong = noise_wins(cells, lift[:, None], score[:, None])
    weight = seed_weight[:, None, None] * score_weight[:, None] * won
    attended = weight.sum(axis=(0, 1))
    # With attention that never errs first: for many cells that is all, for others nearly nothing.
    n = cells.samples / cells.vocab
    everything = np.arange(len(n))
    sure = np.stack([n, n + n**2, 0 * n])
    overlaps = kernel(cells, nodes.norms)
    right = _named(cells, overlaps, everything, 1.0 + 0 * n, 0 * n, sure, nodes)
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
    # What was never seen caps it (D3), as in `Recall`.
    seen = -np.expm1(cells.samples * np.log1p(-1 / cells.vocab))
    accuracy = np.minimum(right + (1 - attended) / cells.vocab, seen + 1 / cells.vocab)
    accuracy = np.minimum(accuracy, 1.0)
    regime = _regimes(cells, attention, overlaps, accuracy, attended)
    possible = cells.dim >= embedding_law(cells.embedding).least_dim(cells.vocab)
    accuracy, attended = (np.where(possible, part, np.nan) for part in (accuracy, attended))
    regime = np.where(possible, regime, "none")
    return Surface(accuracy, attended, regime, inside(cells) & ~np.isnan(accuracy))


def _few_lifts(cells: SpecGrid, attention: Attention, seeds: int) -> Nodes:
    """Seeds by normal nodes with the mean and the spread that the lift has (A18)."""
    lift, weight = lift_nodes(cells, attention)
    mean = weight @ lift
    spread = np.sqrt(np.maximum(weight @ (lift - mean) ** 2, 0.0))
    g, g_weight = normal_nodes(seeds)
    return mean + g[:, None] * spread, g_weight


def _stored_by_seed(cells: SpecGrid, won: np.ndarray, wrong: np.ndarray, share: np.ndarray) -> np.ndarray:
    """Mean count of a pair, its square's, and wrong pairs, for every seed and cell (B2)."""
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
    """For tokens that win these shares of their sequences: the chance that their label is named.

    A part of them at a time, since each is an array over counts, norms and seeds.
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
    here = overlaps.take(at)
    if apart:
        memory = Memory(*stored, others=even_counts(stored[0], nodes.steps))
        n, weight = even_counts(mean, nodes.steps)
    else:
        memory = Memory(*stored, others=_poisson(stored[0], nodes.others))
        n, weight = _from_zero(mean, nodes.stored)
    named = named_right(items, here, memory, n, wrong, nodes)
    return np.sum(named * weight, axis=0)


def _from_zero(mean: np.ndarray, count: int) -> Nodes:
    """Poisson nodes of which one is 0, where nothing is stored (Radau's rule).

    x P(x) = a P(x - 1) makes the others Gauss nodes moved up by one.
    """
    nodes, weights = _poisson(mean, count - 1)
    nodes = nodes + 1
    weights = mean * weights / nodes
    nothing = np.maximum(1 - weights.sum(axis=0, keepdims=True), 0.0)
    return np.concatenate([0 * nothing, nodes]), np.concatenate([nothing, weights])


def _poisson(mean: np.ndarray, count: int) -> Nodes:
    """Gauss nodes of a Poisson law, between entries of a table."""
    low, high = MEANS
    at = (np.log(np.maximum(mean, 1e-30)) - low) * ((ENTRIES - 1) / (high - low))
    at = np.clip(at, 0, ENTRIES - 1.001)
    left = at.astype(np.int64)
    part = at - left
    nodes, weights = (table[:, left] * (1 - part) + table[:, left + 1] * part for table in _poisson_table(count))
    return nodes, weights


@lru_cache(maxsize=8)
def _poisson_table(count: int) -> Nodes:
    # A mean just above what is summed count by count takes all of them to Gauss nodes.
    means = np.exp(np.linspace(*MEANS, ENTRIES))
    nodes, weights = poisson_nodes(means, count)
    return nodes.T.copy(), weights.T.copy()


@lru_cache(maxsize=1)
def _log_phi_table() -> np.ndarray:
    return log_ndtr(np.arange(LOWEST, HIGHEST, 1 / PER_UNIT))


def log_phi(x: np.ndarray) -> np.ndarray:
    """ln Phi(x) at the nearest entry of a table: to a thousandth of itself where it matters."""
    at = ((x - LOWEST) * PER_UNIT + 0.5).clip(0, (HIGHEST - LOWEST) * PER_UNIT - 1)
    return _log_phi_table()[at.astype(np.int32)]


# While a slider moves, and once it rests.
COARSE = Quadrature(seeds=2, scores=3, stored=5, steps=9, norms=1, others=3, tails=2, size=1, noise=2, log_phi=log_phi)
FINER = Quadrature(seeds=3, scores=5, stored=8, steps=17, norms=2, others=3, tails=2, size=1, noise=3, log_phi=log_phi)


def _regimes(
    cells: SpecGrid, attention: Attention, overlaps: Kernel, accuracy: np.ndarray, attended: np.ndarray
) -> np.ndarray:
    """What limits each cell, by the same rule as for one setting."""
    named = accuracy / np.maximum(attended, 1e-300)
    names = list(attention.terms)
    sizes = np.stack([np.broadcast_to(attention.terms[name], accuracy.shape) for name in names])
    by_attention = np.array(names)[sizes.argmax(axis=0)]
    noises = map_noise(cells, overlaps)
    kinds = list(noises)
    across = np.stack([np.broadcast_to(noises[name], accuracy.shape) for name in kinds])
    by_map = np.array(kinds)[across.argmax(axis=0)]
    unseen = np.exp(-cells.samples / cells.vocab) > (1 - named) / 2
    limit = np.where(unseen, "unseen", by_map)
    limit = np.where(attended <= named, by_attention, limit)
    return np.where(accuracy >= RECALLED, "recall", limit)
