r"""How much of a stored token a query finds: the overlap of the features that the values see.

A query x finds its own pair with weight `own`, and any other stored pair with a weight that has a
mean and a variance over tokens (docs/theory/recall.md). Without an MLP the overlap is z_t . z_x;
with one it is (1/m) sum_a phi(w_a . z_t) phi(w_a . z_x).
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import roots_gegenbauer

from mnemoscope.spec import Retrieval
from mnemoscope.theory.activation import coefficients, power
from mnemoscope.theory.quadrature import (
    Nodes,
    chi_square_nodes,
    combine,
    normal_nodes,
    squared_norm_nodes,
)

# Hermite orders that count at the angles between tokens: small ones, or with the trigger in all
# values, cosines near 1/2.
ORDERS = {"keys": 12, "additive": 28}


@dataclass(frozen=True)
class Kernel:
    """Nodes over queries: what each finds of itself and of others, and how common it is."""

    own: np.ndarray
    mean: np.ndarray
    variance: np.ndarray
    weight: np.ndarray
    # The mean of the variance that would be left at infinite width.
    interference: float


def kernel(spec: Retrieval) -> Kernel:
    """The overlaps of a spec's features, over the queries' norms."""
    if not spec.width:
        return _bare(spec)
    # All that the features depend on, so that a search along N or L computes them once.
    return _hidden(spec.replace(vocab=max(2, spec.dim), length=1, samples=1))


def _bare(spec: Retrieval) -> Kernel:
    d = spec.dim
    if spec.trigger == "keys":
        t, weight = squared_norm_nodes(spec, 3)
        return Kernel(t, 0 * t, t / d, weight, float(weight @ t) / d)  # (B1)
    # The trigger is in every value: (z_t + z_trig) . (z_x + z_trig) (C2). Its overlap with the
    # query moves the own pair against the others.
    (t, xi), weight = combine(squared_norm_nodes(spec, 3), _trigger_overlap(spec))
    spread = (t + 1) / d
    return Kernel(t + xi + 1, np.ones_like(t), spread, weight, float(weight @ spread))


@lru_cache(maxsize=64)
def _hidden(spec: Retrieval) -> Kernel:
    """With the MLP (B8, B9)."""
    d, m, name = spec.dim, spec.width, spec.activation
    additive = spec.trigger == "additive"
    (t, xi), weight = combine(squared_norm_nodes(spec, 3), _trigger_overlap(spec))
    cosine, cosine_weight = _cosines(d if spec.embedding != "orthonormal" else 0)
    # Norms and overlaps of what the MLP sees: z, or z + z_trig with |z_trig|^2 = 1.
    square = t + (1 + 2 * xi if additive else 0)
    square = np.maximum(square, 0.05)
    rho = cosine * np.sqrt(t[:, None, None] * t[None, :, None])
    if additive:
        rho = rho + 1 + xi[:, None, None] + xi[None, :, None]
    angle = rho / np.sqrt(square[:, None, None] * square[None, :, None])
    orders = ORDERS[spec.trigger]
    found = _series(coefficients(name, square, orders), angle)  # (E2)
    mean = found @ cosine_weight @ weight
    second = found**2 @ cosine_weight @ weight
    # Finite width: one unit's product varies by E[phi^2 phi'^2] - f^2, itself a series (E2) of
    # phi^2, and the own overlap by Var(phi^2)/m.
    fourth = _series(coefficients(name, square, orders, 2), angle) @ cosine_weight @ weight
    usual = power(name, square)
    uneven = np.maximum(power(name, square, 4) - usual**2, 1e-12) / m
    degrees = np.maximum(2 * usual**2 / uneven, 0.5).tolist()
    factor = np.stack([chi_square_nodes(one, 3)[0] for one in degrees])
    _, factor_weight = normal_nodes(3)
    own = usual[:, None] * factor
    variance = (second - mean**2)[:, None] + (fourth - second)[:, None] * factor / m
    return Kernel(
        own=own.ravel(),
        mean=np.broadcast_to(mean[:, None], own.shape).ravel(),
        variance=variance.ravel(),
        weight=(weight[:, None] * factor_weight).ravel(),
        interference=float(weight @ (second - mean**2)),
    )


def _series(c: np.ndarray, angle: np.ndarray) -> np.ndarray:
    """sum_k c_k(s) c_k(s') angle^k over pairs of norms, by Horner's rule."""
    total = np.zeros_like(angle)
    for column in c.T[::-1]:
        total = total * angle + (column[:, None] * column)[:, :, None]
    return total


def _trigger_overlap(spec: Retrieval) -> Nodes:
    """z_x . z_trig, of variance 1/d, where the trigger is in the values."""
    if spec.trigger == "keys":
        return np.zeros(1), np.ones(1)
    g, weight = normal_nodes(2)
    return (0 * g if spec.embedding == "orthonormal" else g / spec.dim**0.5), weight


def _cosines(d: int) -> Nodes:
    """The cosine between two random directions, density (1 - x^2)^((d-3)/2); 0: no overlap."""
    if d == 0:
        return np.zeros(1), np.ones(1)
    if not 3 <= d <= 1000:  # close to normal, and past what the roots can be found for
        g, weight = normal_nodes(7)
        return g / d**0.5, weight
    nodes, weight = roots_gegenbauer(7, (d - 2) / 2)
    return nodes, weight / weight.sum()
