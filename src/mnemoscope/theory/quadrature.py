"""Averages over normal numbers, squared norms and Poisson counts, by a few nodes each."""

import math

import numpy as np
from scipy.special import gammaln

from mnemoscope.spec import Retrieval

Nodes = tuple[np.ndarray, np.ndarray]
# Above this mean a Poisson count is taken as normal.
MOST_COUNTED = 12.0


def normal_nodes(count: int) -> Nodes:
    """Gauss-Hermite nodes and weights of a standard normal number."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(count)
    return nodes, weights / weights.sum()


def chi_square_nodes(degrees: float, count: int) -> Nodes:
    """chi^2 over its degrees of freedom.

    By Wilson and Hilferty's cube: (1 - 2/(9k) + g sqrt(2/(9k)))^3 is close to chi^2_k / k.
    """
    g, weights = normal_nodes(count)
    small = 2 / (9 * degrees)
    return np.maximum(1 - small + g * math.sqrt(small), 0.05) ** 3, weights


def squared_norm_nodes(spec: Retrieval, count: int = 5) -> Nodes:
    """|z|^2 of an embedding: chi^2_d / d under the Gaussian law, 1 under the others."""
    if spec.embedding != "gaussian":
        return np.ones(1), np.ones(1)
    return chi_square_nodes(spec.dim, count)


def poisson_nodes(mean: np.ndarray) -> Nodes:
    """Counts of these means: nodes and weights along a new last axis."""
    mean = np.asarray(mean, float)[..., None]
    if mean.max() > MOST_COUNTED:
        g, weights = normal_nodes(9)
        nodes = np.maximum(mean + np.sqrt(mean) * g, 0)
        return nodes, np.broadcast_to(weights, nodes.shape)
    top = int(mean.max() + 6 * math.sqrt(mean.max()) + 6)
    k = np.arange(top + 1.0)
    safe = np.maximum(mean, 1e-300)
    weights = np.exp(k * np.log(safe) - mean - gammaln(k + 1))
    return np.broadcast_to(k, weights.shape), weights
