r"""How much of a stored token a query finds: the overlap of the features that the values see.

A query x finds its own pair with weight `own`, and any other stored pair with a weight that has a
mean and a variance over tokens (docs/theory/recall.md). Without an MLP the overlap is z_t . z_x;
with one it is (1/m) sum_a phi(w_a . z_t) phi(w_a . z_x).
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from mnemoscope.spec import Retrieval
from mnemoscope.theory.activation import coefficients, power
from mnemoscope.theory.cells import Cells, Number, Sizes
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
    """Nodes over queries: what each finds of itself and of others, and how common it is.

    Of several settings, with the nodes along the first axis.
    """

    own: np.ndarray
    mean: np.ndarray
    variance: np.ndarray
    weight: np.ndarray
    # The mean of the variance that would be left at infinite width.
    interference: Number


def kernel(spec: Sizes, norms: int = 3) -> Kernel:
    """The overlaps of a spec's features, over so many of the queries' norms."""
    if isinstance(spec, Cells):
        return _hidden_cells(spec, norms) if spec.hidden else _bare(spec, norms)
    if not spec.width:
        return _bare(spec, norms)
    found = _features(spec.activation, spec.embedding, spec.trigger, spec.dim, norms)
    return _widened(found, spec.width)


def _bare(spec: Sizes, norms: int) -> Kernel:
    d = spec.dim
    if spec.trigger == "keys":
        t, weight = squared_norm_nodes(spec, norms)
        return Kernel(t, 0 * t, t / d, weight, weight @ t / d)  # (B1)
    # The trigger is in every value: (z_t + z_trig) . (z_x + z_trig) (C2). Its overlap with the
    # query moves the own pair against the others.
    (t, xi), weight = combine(squared_norm_nodes(spec, norms), _trigger_overlap(spec))
    spread = (t + 1) / d
    return Kernel(t + xi + 1, np.ones_like(t), spread, weight, weight @ spread)


def _hidden_cells(spec: Cells, norms: int) -> Kernel:
    """With the MLP, for every pair of d and m once."""
    pairs, at = np.unique(spec.dim + 1j * spec.width, return_inverse=True)
    made = _hidden_pairs(
        spec.activation, spec.embedding, spec.trigger, norms,
        tuple((int(one.real), one.imag) for one in pairs.tolist()),
    )  # fmt: skip
    return Kernel(made.own[:, at], made.mean[:, at], made.variance[:, at], made.weight,
                  made.interference[at])  # fmt: skip


@lru_cache(maxsize=256)
def _hidden_pairs(
    activation: str, embedding: str, trigger: str, norms: int, pairs: tuple[tuple[int, float], ...]
) -> Kernel:
    """The kernels of so many pairs of d and m, side by side."""
    made = [_widened(_features(activation, embedding, trigger, d, norms), m) for d, m in pairs]
    own, mean, variance = (
        np.stack([getattr(one, name) for one in made], axis=-1)
        for name in ("own", "mean", "variance")
    )
    rest = np.array([one.interference for one in made])
    return Kernel(own, mean, variance, made[0].weight, rest)


@dataclass(frozen=True)
class Features:
    """What an MLP of any width makes of queries, over their norms: moments of overlaps.

    `usual` and `fourth_power` are E phi^2 and E phi^4 at a query's norm; `mean`, `second` the first
    two moments of the overlap with another token, `product` that of one unit's squared product.
    """

    usual: np.ndarray
    fourth_power: np.ndarray
    mean: np.ndarray
    second: np.ndarray
    product: np.ndarray
    weight: np.ndarray


@lru_cache(maxsize=4096)
def _features(name: str, embedding: str, trigger: str, dim: int, norms: int) -> Features:
    """All that does not depend on the width, so that a search along N, L or m computes it once."""
    additive = trigger == "additive"
    spec = Retrieval.read({
        "vocab": max(2, dim), "dim": dim, "length": 1, "samples": 1, "embedding": embedding,
        "trigger": trigger,
    })  # fmt: skip
    (t, xi), weight = combine(squared_norm_nodes(spec, norms), _trigger_overlap(spec))
    cosine, cosine_weight = _cosines(dim if embedding != "orthonormal" else 0)
    # Norms and overlaps of what the MLP sees: z, or z + z_trig with |z_trig|^2 = 1.
    square = t + (1 + 2 * xi if additive else 0)
    square = np.maximum(square, 0.05)
    rho = cosine * np.sqrt(t[:, None, None] * t[None, :, None])
    if additive:
        rho = rho + 1 + xi[:, None, None] + xi[None, :, None]
    angle = rho / np.sqrt(square[:, None, None] * square[None, :, None])
    orders = ORDERS[trigger]
    found = _series(coefficients(name, square, orders), angle)  # (E2)
    mean = found @ cosine_weight @ weight
    second = found**2 @ cosine_weight @ weight
    # One unit's product varies by E[phi^2 phi'^2] - f^2, itself a series (E2) of phi^2.
    product = _series(coefficients(name, square, orders, 2), angle) @ cosine_weight @ weight
    return Features(power(name, square), power(name, square, 4), mean, second, product, weight)


def _widened(found: Features, m: float) -> Kernel:
    """With m hidden units (B8, B9): the own overlap varies by Var(phi^2)/m."""
    usual, mean = found.usual, found.mean
    uneven = np.maximum(found.fourth_power - usual**2, 1e-12) / m
    factor, factor_weight = chi_square_nodes(np.maximum(2 * usual**2 / uneven, 0.5), 3)
    factor = factor.T
    own = usual[:, None] * factor
    left = found.second - mean**2
    variance = left[:, None] + (found.product - found.second)[:, None] * factor / m
    return Kernel(
        own=own.ravel(),
        mean=np.broadcast_to(mean[:, None], own.shape).ravel(),
        variance=variance.ravel(),
        weight=(found.weight[:, None] * factor_weight).ravel(),
        interference=float(found.weight @ left),
    )


def _series(c: np.ndarray, angle: np.ndarray) -> np.ndarray:
    """sum_k c_k(s) c_k(s') angle^k over pairs of norms, by Horner's rule."""
    total = np.zeros_like(angle)
    for column in c.T[::-1]:
        total = total * angle + (column[:, None] * column)[:, :, None]
    return total


def _trigger_overlap(spec: Sizes) -> Nodes:
    """z_x . z_trig, of variance 1/d, where the trigger is in the values."""
    if spec.trigger == "keys":
        return np.zeros((1, *np.shape(spec.dim))), np.ones(1)
    g, weight = normal_nodes(2)
    g = g.reshape(-1, *(1,) * np.ndim(spec.dim)) / np.sqrt(spec.dim)
    return (0 * g if spec.embedding == "orthonormal" else g), weight


def _cosines(d: int) -> Nodes:
    """The cosine between two random directions, density (1 - x^2)^((d-3)/2); 0: no overlap."""
    if d == 0:
        return np.zeros(1), np.ones(1)
    if d < 3:  # the density has poles or two points there; theory says that d is too small
        g, weight = normal_nodes(7)
        return g / d**0.5, weight
    # Gauss nodes are the eigenvalues of the recurrence of Gegenbauer's polynomials of index
    # a = (d - 2)/2, whose weight this density is.
    k, a = np.arange(1, 7), (d - 2) / 2
    beside = np.sqrt(k * (k + 2 * a - 1) / (4 * (k + a) * (k + a - 1)))
    nodes, vectors = np.linalg.eigh(np.diag(beside, -1))
    return nodes, vectors[0] ** 2
