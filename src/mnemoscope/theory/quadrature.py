"""Averages over normal numbers, squared norms and Poisson counts, by a few nodes each."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import gammaln, log_ndtr

from mnemoscope.theory.spec_grid import Number

Nodes = tuple[np.ndarray, np.ndarray]
# Up to this mean a Poisson law is summed count by count, above it by Gauss nodes.
MOST_COUNTED = 2.0


@dataclass(frozen=True)
class Quadrature:
    """How many nodes each average is taken with; the defaults are those of `predict`."""

    # Seeds, and the scores of tokens.
    seeds: int = 5
    scores: int = 7
    # The stored pairs of a token, also where labels do not mix and the most frequent one decides.
    stored: int = 8
    steps: int = 25
    # The squared norms of queries and of labels.
    norms: int = 3
    label: int = 2
    # Competing labels: their stored pairs, the tails of their overlaps, the spread of their logits.
    others: int = 5
    tails: int = 3
    size: int = 2
    # The noise in the right logit.
    noise: int = 5
    log_phi: Callable[[np.ndarray], np.ndarray] = log_ndtr


FINE = Quadrature()


@lru_cache(maxsize=32)
def normal_nodes(count: int) -> Nodes:
    """Gauss-Hermite nodes and weights of a standard normal number."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(count)
    return nodes, weights / weights.sum()


def chi_square_nodes(degrees: Number, count: int) -> Nodes:
    """chi^2 over its degrees of freedom; of several, with the nodes along the first axis.

    By Wilson and Hilferty's cube: (1 - 2/(9k) + g sqrt(2/(9k)))^3 is close to chi^2_k / k.
    """
    g, weights = normal_nodes(count)
    small = 2 / (9 * np.asarray(degrees, float))
    nodes = 1 - small + g.reshape(-1, *(1,) * small.ndim) * np.sqrt(small)
    return np.maximum(nodes, 0.05) ** 3, weights


def gamma_nodes(variance: Number, count: int) -> Nodes:
    """Gauss nodes of a gamma law of mean 1 and this variance, along a new first axis."""
    k = 1 / np.maximum(np.asarray(variance, float), 1e-6)[..., None]
    # The recurrence of Laguerre's polynomials of index k - 1.
    j = np.arange(count)
    matrix = np.zeros((*k.shape[:-1], count, count))
    matrix[..., j, j] = (2 * j + k) / k
    matrix[..., j[1:], j[:-1]] = np.sqrt(j[1:] * (j[1:] + k - 1)) / k
    nodes, vectors = np.linalg.eigh(matrix)
    return np.moveaxis(nodes, -1, 0), np.moveaxis(vectors[..., 0, :] ** 2, -1, 0)


def combine(first: Nodes, second: Nodes) -> tuple[tuple[np.ndarray, np.ndarray], np.ndarray]:
    """Two independent numbers: nodes of each and the weight of every pair, along one axis."""
    a, b = np.broadcast_arrays(first[0][:, None], second[0][None])
    flat = (a.shape[0] * a.shape[1], *a.shape[2:])
    return (a.reshape(flat), b.reshape(flat)), np.outer(first[1], second[1]).ravel()


def poisson_nodes(mean: np.ndarray, count: int, counted: float = MOST_COUNTED) -> Nodes:
    """Counts of these means: nodes and weights along a new last axis.

    Up to a mean of `counted` they are all counts, above it `count` Gauss nodes.
    """
    mean = np.asarray(mean, float)
    if mean.max() <= counted:
        k = np.arange(math.ceil(mean.max() + 5 * math.sqrt(mean.max()) + 2.0) + 1.0)
        safe = np.maximum(mean, 1e-300)[..., None]
        weights = np.exp(k * np.log(safe) - safe - gammaln(k + 1))
        return np.broadcast_to(k, weights.shape), weights
    # Gauss nodes are the eigenvalues of the recurrence of Charlier's polynomials: k + a on the
    # diagonal, sqrt(k a) beside it; the weights are the squares of the vectors' first entries.
    a = np.maximum(mean, 1e-9)[..., None]
    k = np.arange(count)
    matrix = np.zeros((*mean.shape, count, count))
    matrix[..., k, k] = k + a
    matrix[..., k[1:], k[:-1]] = np.sqrt(k[1:] * a)
    nodes, vectors = np.linalg.eigh(matrix)
    return np.maximum(nodes, 0), vectors[..., 0, :] ** 2


def even_counts(mean: np.ndarray, count: int) -> Nodes:
    """Counts of these means at even steps, along a new first axis, for what changes in steps.

    All counts within four standard deviations where `count` holds them, else every so many.
    """
    mean = np.maximum(np.asarray(mean, float), 1e-9)
    first = np.floor(np.maximum(mean - 4 * np.sqrt(mean), 0.0))
    last = np.ceil(mean + 5 * np.sqrt(mean) + 2)
    step = np.maximum(1.0, np.ceil((last - first) / (count - 1)))
    k = first + step * np.arange(count).reshape(-1, *(1,) * mean.ndim)
    weights = np.exp(k * np.log(mean) - mean - gammaln(k + 1))
    return k, weights / weights.sum(axis=0)


def gauss_nodes(values: np.ndarray, weights: np.ndarray, count: int) -> Nodes:
    """Fewer nodes with the same first 2 count - 1 moments, by Lanczos' recurrence."""
    if len(values) <= count:
        return values, weights
    centre = float(weights @ values)
    scale = math.sqrt(float(weights @ (values - centre) ** 2))
    if scale <= 1e-9 * max(1.0, abs(centre)):
        return np.array([centre]), np.ones(1)
    x = (values - centre) / scale
    before, now = np.zeros_like(x), np.sqrt(weights)
    diagonal, beside = [], []
    for _ in range(count):
        diagonal.append(float(now @ (x * now)))
        after = (x - diagonal[-1]) * now - (beside[-1] if beside else 0.0) * before
        beside.append(float(np.linalg.norm(after)))
        if beside[-1] < 1e-6:
            break
        before, now = now, after / beside[-1]
    size = len(diagonal)
    matrix = np.diag(diagonal) + np.diag(beside[: size - 1], -1)
    nodes, vectors = np.linalg.eigh(matrix)
    return centre + scale * nodes, vectors[0] ** 2
