r"""Orthonormal embeddings with the trigger in the values, attention-only.

Nothing overlaps but the trigger, which every stored value and every query contains. For token x,
label y has the logit n_y (1 + [y = x]), with n_y the sequences of label y: x is named if twice its
count exceeds every other (docs/theory/recall.md). The first of k + 1 tied labels is named, so each
has the chance 1/(k + 1). With p and F a count's Poisson probability and distribution function,

    named(n) = sum_k binom(V - 1, k) p(2n)^k F(2n - 1)^(V - 1 - k) / (k + 1)
             = (F(2n)^V - F(2n - 1)^V) / (V p(2n))                                           (B9)

A seed has one largest count M, with P(M <= c) = F(c)^V. Given M, every token with a count above M/2
is named, and so are those with M/2 that stand before the first label with count M.            (S8)
"""

import numpy as np
from scipy.special import pdtr

from mnemoscope.theory.quadrature import Nodes, poisson
from mnemoscope.theory.spec_grid import Number

# Beyond this mean number of sequences per label, twice a count exceeds all others.
MOST = 600.0
# The most labels that share the largest count, and nodes for the place of the first.
TIED, PLACES = 4, 4


def named_in_frame(stored: np.ndarray, usual: Number, vocab: Number) -> np.ndarray:
    """The chance that a token is named, given its mean count and that of the other labels (B9)."""
    stored, usual = np.minimum(stored, MOST), np.minimum(usual, MOST)
    n = np.arange(np.ceil(stored.max() + 8 * np.sqrt(stored.max()) + 4))
    n = n.reshape(-1, *(1,) * np.ndim(stored))
    p, V = np.maximum(poisson(2 * n, usual), 1e-290), vocab
    upto = pdtr(2 * n, usual)
    below = np.maximum(upto - p, 0.0)
    # Where p is lost in rounding, no other label ties.
    tied = (upto**V - below**V) / (V * p)
    named = np.where(p > 1e-12 * upto, tied, upto ** (V - 1))
    return np.sum(poisson(n, stored) * named, axis=0)


def by_largest_count(mean: float, vocab: int) -> tuple[np.ndarray, np.ndarray]:
    """Accuracies under perfect attention, and their weights, by a seed's largest count (S8)."""
    mean = min(mean, MOST)
    c = np.arange(int(mean + 12 * np.sqrt(mean) + 30))
    upto, p = pdtr(c, mean), poisson(c, mean)
    weight = np.diff(upto**vocab, prepend=0.0)
    accuracies, weights = [], []
    for largest in np.flatnonzero(weight > 1e-5):
        F = upto[largest]
        half = largest // 2
        above = 1 - upto[half] / F
        if largest % 2:  # no count is M/2
            accuracies.append(above)
            weights.append(weight[largest])
        else:
            places, chance = first_places(vocab, p[largest] / F)
            accuracies.extend(above + p[half] / F * places)
            weights.extend(weight[largest] * chance)
    return np.array(accuracies), np.array(weights) / np.sum(weights)


def first_places(vocab: int, share: float) -> Nodes:
    """The place of the first label with the largest count, as a share of all labels.

    The first of k is distributed as the least of k uniform numbers, for k from 1 to TIED or more.
    """
    k = np.arange(1, TIED + 1)
    chance = poisson(k, vocab * share)
    chance[-1] += max(0.0, float(1 - pdtr(TIED, vocab * share)))
    middle = (np.arange(PLACES) + 0.5) / PLACES
    places = 1 - (1 - middle) ** (1 / k[:, None])
    return places.ravel(), np.repeat(chance / chance.sum(), PLACES) / PLACES
