r"""One step of training a linear memory from W = 0, by the optimisers that have one.

At W = 0 all answers are equally likely. With p_x the frequency of item x and ubar the mean of the M answers, the
cross-entropy's negative gradient and its Hessian are

    G = sum_x p_x (u_f(x) - ubar) e_x^T                                                      (O1)
    H = K (x) C,   K = (1/M) sum_y (u_y - ubar)(u_y - ubar)^T,   C = sum_x p_x e_x e_x^T     (O2)

A batch of B samples has their shares in place of p_x, and their labels in place of f(x). With label noise the
expectation is (1 - noise) G: the noise adds the mean of u_y - ubar over all y, which is zero. The step goes along

    gd, sgd              G
    muon                 A B^T,  where G = A S B^T is the singular value decomposition
    newton               K^+ G C^+
    adam, adamw, sign    sign(G), since Adam divides by the size of its only gradient

How far it goes does not matter to an argmax. All of it is in NumPy and double precision: the small singular values of G
are up to 10^8 times smaller than the large ones, and Muon raises them to the same size.
"""

from typing import NamedTuple

import numpy as np

from mnemoscope.spec.optimisers import OneStep

# Rows that are brought to double precision at once.
ROWS = 4096


class Terms(NamedTuple):
    """The terms of (O1): a weight for each pair of an item and a label."""

    item: np.ndarray
    label: np.ndarray
    weight: np.ndarray


def expected_terms(frequencies: np.ndarray, answer: np.ndarray) -> Terms:
    """One term for each item, weighted by its frequency."""
    return Terms(np.arange(len(answer)), answer, frequencies)


def sampled_terms(item: np.ndarray, label: np.ndarray, labels: int) -> Terms:
    """One term for each pair that occurs, weighted by its share of the samples."""
    pairs, counts = np.unique(item.astype(np.int64) * labels + label, return_counts=True)
    return Terms(pairs // labels, pairs % labels, counts / len(item))


def gradient(E: np.ndarray, U: np.ndarray, terms: Terms) -> np.ndarray:
    """(O1), block by block."""
    d = E.shape[1]
    outer, inner = np.zeros((d, d)), np.zeros(d)
    for first in range(0, len(terms.item), ROWS):
        item, label, weight = (part[first : first + ROWS] for part in terms)
        weighted = weight[:, None] * E[item].astype(float)
        outer += U[label].astype(float).T @ weighted
        inner += weighted.sum(axis=0)
    return outer - np.outer(U.mean(axis=0, dtype=float), inner)


def step(optimiser: OneStep, E: np.ndarray, U: np.ndarray, terms: Terms) -> np.ndarray:
    """W after the step, up to its length."""
    G = gradient(E, U, terms)
    if optimiser == "muon":
        return polar_factor(G)
    if optimiser == "newton":
        return newton_direction(G, E, U, terms)
    return G if optimiser in ("gd", "sgd") else np.sign(G)


def polar_factor(G: np.ndarray) -> np.ndarray:
    """A B^T, the orthogonal matrix nearest to G = A S B^T."""
    A, _, Bt = np.linalg.svd(G)
    return A @ Bt


def newton_direction(G: np.ndarray, E: np.ndarray, U: np.ndarray, terms: Terms) -> np.ndarray:
    """K^+ G C^+, by (O2)."""
    d = E.shape[1]
    C, K = np.zeros((d, d)), np.zeros((d, d))
    for first in range(0, len(terms.item), ROWS):
        item, _, weight = (part[first : first + ROWS] for part in terms)
        rows = E[item].astype(float)
        C += rows.T @ (weight[:, None] * rows)
    centre = U.mean(axis=0, dtype=float)
    for first in range(0, len(U), ROWS):
        rows = U[first : first + ROWS].astype(float) - centre
        K += rows.T @ rows / len(U)
    return np.linalg.pinv(K, hermitian=True) @ G @ np.linalg.pinv(C, hermitian=True)
