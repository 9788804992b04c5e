"""Averages over normal numbers, squared norms and Poisson counts, with a few nodes each."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import gammaln, log_ndtr

from mnemoscope.theory.spec_grid import Number

Nodes = tuple[np.ndarray, np.ndarray]
# Up to this mean, a Poisson law is summed count by count; above it, Gauss nodes take over.
MOST_COUNTED = 2.0


@dataclass(frozen=True)
class Quadrature:
    """The number of nodes in each average. The defaults are those of `predict`."""

    # Seeds, and the scores of tokens.
    seeds: int = 5
    scores: int = 7
    # Stored pairs of a token; `steps` where labels do not mix and the most frequent one decides.
    stored: int = 8
    steps: int = 25
    # Squared norms of queries and of labels.
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
    """Gauss-Hermite nodes and weights of the standard normal law."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(count)
    return nodes, weights / weights.sum()


@lru_cache(maxsize=32)
def legendre_nodes(count: int) -> Nodes:
    """Gauss-Legendre nodes and weights on [-1, 1]."""
    return np.polynomial.legendre.leggauss(count)


def wilson_hilferty(g: np.ndarray, degrees: Number) -> np.ndarray:
    """chi^2 over its degrees of freedom, approximately, from a standard normal g."""
    small = 2 / (9 * np.asarray(degrees, float))
    return np.maximum(1 - small + g * np.sqrt(small), 0.05) ** 3


def chi_square_nodes(degrees: Number, count: int) -> Nodes:
    """Nodes of chi^2 over its degrees of freedom, along a new first axis."""
    g, weights = normal_nodes(count)
    return wilson_hilferty(g.reshape(-1, *(1,) * np.ndim(degrees)), degrees), weights


def _gauss(diagonal: np.ndarray, below: np.ndarray) -> Nodes:
    """Gauss nodes and weights, along the last axis, from the recurrence of orthogonal polynomials.

    They are the eigenvalues of its tridiagonal matrix, and the squares of the vectors' first entries.
    """
    j = np.arange(diagonal.shape[-1])
    matrix = np.zeros((*diagonal.shape, len(j)))
    matrix[..., j, j] = diagonal
    matrix[..., j[1:], j[:-1]] = below
    nodes, vectors = np.linalg.eigh(matrix)
    return nodes, vectors[..., 0, :] ** 2


def gamma_nodes(variance: Number, count: int) -> Nodes:
    """Gauss nodes of a gamma law of mean 1 and this variance, along a new first axis."""
    k = 1 / np.maximum(np.asarray(variance, float), 1e-6)[..., None]
    j = np.arange(count)
    # Laguerre polynomials of index k - 1.
    return nodes_first(_gauss((2 * j + k) / k, np.sqrt(j[1:] * (j[1:] + k - 1)) / k))


def nodes_first(nodes: Nodes) -> Nodes:
    """Nodes and weights moved from the last axis to the first."""
    return np.moveaxis(nodes[0], -1, 0), np.moveaxis(nodes[1], -1, 0)


def combine(first: Nodes, second: Nodes) -> tuple[tuple[np.ndarray, np.ndarray], np.ndarray]:
    """Two independent numbers: nodes of each, and the weight of every pair, along one axis."""
    a, b = np.broadcast_arrays(first[0][:, None], second[0][None])
    flat = (a.shape[0] * a.shape[1], *a.shape[2:])
    return (a.reshape(flat), b.reshape(flat)), np.outer(first[1], second[1]).ravel()


def poisson(count: np.ndarray, mean: Number) -> np.ndarray:
    """The probability of a count."""
    safe = np.maximum(mean, 1e-300)
    return np.exp(count * np.log(safe) - safe - gammaln(count + 1))


def poisson_nodes(mean: np.ndarray, count: int, counted: float = MOST_COUNTED) -> Nodes:
    """Poisson counts of these means: nodes and weights along a new last axis.

    Every count where no mean exceeds `counted`, otherwise `count` Gauss nodes.
    """
    mean = np.asarray(mean, float)
    largest = mean.max(initial=0.0)  # there may be none
    if largest <= counted:
        k = np.arange(math.ceil(largest + 5 * math.sqrt(largest) + 2.0) + 1.0)
        weights = poisson(k, mean[..., None])
        return np.broadcast_to(k, weights.shape), weights
    a, k = np.maximum(mean, 1e-9)[..., None], np.arange(count)
    nodes, weights = _gauss(k + a, np.sqrt(k[1:] * a))  # Charlier polynomials
    return np.maximum(nodes, 0), weights


def even_counts(mean: np.ndarray, count: int) -> Nodes:
    """Poisson counts at even steps, along a new first axis, for what changes in steps.

    Steps of 1 where `count` of them cover four standard deviations, longer ones otherwise.
    """
    mean = np.maximum(np.asarray(mean, float), 1e-9)
    first = np.floor(np.maximum(mean - 4 * np.sqrt(mean), 0.0))
    last = np.ceil(mean + 5 * np.sqrt(mean) + 2)
    step = np.maximum(1.0, np.ceil((last - first) / (count - 1)))
    k = first + step * np.arange(count).reshape(-1, *(1,) * mean.ndim)
    weights = poisson(k, mean)
    return k, weights / weights.sum(axis=0)


def gauss_nodes(values: np.ndarray, weights: np.ndarray, count: int) -> Nodes:
    """Fewer nodes with the same first 2 count - 1 moments, by the Lanczos recurrence."""
    if len(values) <= count:
        return values, weights
    centre = float(weights @ values)
    scale = math.sqrt(float(weights @ (values - centre) ** 2))
    if scale <= 1e-9 * max(1.0, abs(centre)):
        return np.array([centre]), np.ones(1)
    x = (values - centre) / scale
    previous, current = np.zeros_like(x), np.sqrt(weights)
    diagonal, below = [], []
    for _ in range(count):
        diagonal.append(float(current @ (x * current)))
        residual = (x - diagonal[-1]) * current - (below[-1] if below else 0.0) * previous
        below.append(float(np.linalg.norm(residual)))
        if below[-1] < 1e-6:
            break
        previous, current = current, residual / below[-1]
    nodes, shares = _gauss(np.array(diagonal), np.array(below[: len(diagonal) - 1]))
    return centre + scale * nodes, shares
