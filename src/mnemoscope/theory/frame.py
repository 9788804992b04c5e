r"""Orthonormal embeddings with the trigger in the values, attention-only.

Nothing overlaps but the trigger, which is in every stored value and in every query. Asked for token
x, the logit of label y is n_y (1 + [y = x]), with n_y the sequences of label y: x is named if twice
its count is above every other (docs/theory/recall.md). Of labels that tie the first is named, so
that among k + 1 that tie a label has the chance 1/(k + 1). With p and F the Poisson law of a count
and its sums,

    named(n) = sum_k binom(V - 1, k) p(2n)^k F(2n - 1)^(V - 1 - k) / (k + 1)
             = (F(2n)^V - F(2n - 1)^V) / (V p(2n))                                           (B9)

A seed has one largest count M, of law P(M <= c) = F(c)^V. Given it, tokens of more than M/2 are
named, and of those of M/2 as many as stand before the first label that has it.                (S8)
"""

import numpy as np
from scipy.special import gammaln, pdtr

from mnemoscope.theory.quadrature import Nodes
from mnemoscope.theory.spec_grid import Number

# Beyond so many sequences of a label, twice a count is above all others.
MOST = 600.0
# Labels that have the largest count, at most, and places of the first of them.
TIED, PLACES = 4, 4


def named_in_frame(stored: np.ndarray, usual: Number, vocab: Number) -> np.ndarray:
    """The chance that a token is named, by its sequences' mean number and that of others (B9)."""
    stored, usual = np.minimum(stored, MOST), np.minimum(usual, MOST)
    n = np.arange(np.ceil(stored.max() + 8 * np.sqrt(stored.max()) + 4))
    n = n.reshape(-1, *(1,) * np.ndim(stored))
    chance = poisson(n, stored)
    p, V = np.maximum(poisson(2 * n, usual), 1e-290), vocab
    upto = pdtr(2 * n, usual)
    below = np.maximum(upto - p, 0.0)
    # Where p is lost in rounding, no other label ties.
    tied = (upto**V - below**V) / (V * p)
    named = np.where(p > 1e-12 * upto, tied, upto ** (V - 1))
    return np.sum(chance * named, axis=0)


def by_largest_count(mean: float, vocab: int) -> tuple[np.ndarray, np.ndarray]:
    """Accuracies, attention being right, and their weights, over seeds' largest counts (S8)."""
    mean = min(mean, MOST)
    c = np.arange(int(mean + 12 * np.sqrt(mean) + 30))
    upto, p = pdtr(c, mean), poisson(c, mean)
    weight = np.diff(upto**vocab, prepend=0.0)
    accuracies, weights = [], []
    for largest in np.flatnonzero(weight > 1e-5):
        F = upto[largest]
        half = largest // 2
        above = 1 - upto[half] / F
        if largest % 2:
            accuracies.append(above)
            weights.append(weight[largest])
            continue
        tie = p[half] / F
        places, chance = first_places(vocab, p[largest] / F)
        accuracies.extend(above + tie * places)
        weights.extend(weight[largest] * chance)
    total = np.sum(weights)
    return np.array(accuracies), np.array(weights) / total


def first_places(vocab: int, share: float) -> Nodes:
    """Where the first of the labels with the largest count stands, as a share of all.

    The first of k is as the least of k uniform numbers; k is at least 1, and TIED stands for more.
    """
    k = np.arange(1, TIED + 1)
    chance = poisson(k, vocab * share)
    chance[-1] += max(0.0, float(1 - pdtr(TIED, vocab * share)))
    middle = (np.arange(PLACES) + 0.5) / PLACES
    places = 1 - (1 - middle) ** (1 / k[:, None])
    weight = np.repeat(chance / chance.sum(), PLACES) / PLACES
    return places.ravel(), weight


def poisson(count: np.ndarray, mean: Number) -> np.ndarray:
    """The chance of a count."""
    safe = np.maximum(mean, 1e-300)
    return np.exp(count * np.log(safe) - safe - gammaln(count + 1))
