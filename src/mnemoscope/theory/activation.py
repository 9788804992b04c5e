r"""An activation as theory sees it: its Hermite coefficients at any input norm.

At |x|^2 = s a hidden unit's input is sqrt(s) g, g standard normal, and

    phi(sqrt(s) g) = sum_k c_k(s) h_k(g),        h_k = He_k / sqrt(k!)                       (E1)

so that for two inputs of squared norms s, s' and overlap rho a hidden unit contributes, on average,

    f(s, s', rho) = sum_k c_k(s) c_k(s') (rho / sqrt(s s'))^k.                               (E2)

The mean of phi's k-th derivative is sqrt(k!) c_k(s) / s^(k/2).
"""

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np
from scipy.special import erf

# Cells of equal width over +-SPAN standard deviations; ReLU's kink falls on an edge.
SPAN, CELLS = 9.0, 3600

# The activations that theory covers, as `docs/model.md` defines them.
FORMULAS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "relu": lambda a: np.maximum(a, 0),
    "gelu": lambda a: a * (1 + erf(a / math.sqrt(2))) / 2,
    "tanh": np.tanh,
    "linear": lambda a: a,
    "hermite2": lambda a: (a**2 - 1) / math.sqrt(2),
    "hermite3": lambda a: (a**3 - 3 * a) / math.sqrt(6),
}


def apply(name: str, a: np.ndarray) -> np.ndarray:
    """The activation `name` at a."""
    return FORMULAS[name](a)


@lru_cache(maxsize=1)
def _grid() -> tuple[np.ndarray, np.ndarray]:
    edges = np.linspace(-SPAN, SPAN, CELLS + 1)
    g = (edges[1:] + edges[:-1]) / 2
    weight = np.exp(-(g**2) / 2)
    return g, weight / weight.sum()


@lru_cache(maxsize=4)
def _polynomials(orders: int) -> np.ndarray:
    """h_0 .. h_{orders-1} on the grid: sqrt(k) h_k = g h_{k-1} - sqrt(k-1) h_{k-2}."""
    g, _ = _grid()
    rows = [np.ones_like(g), g]
    for k in range(2, orders):
        rows.append((g * rows[-1] - math.sqrt(k - 1) * rows[-2]) / math.sqrt(k))
    return np.stack(rows[:orders])


def coefficients(name: str, squares: np.ndarray, orders: int) -> np.ndarray:
    """c_k(s) of (E1): one row per squared norm s, one column per order k."""
    g, weight = _grid()
    return (apply(name, np.sqrt(squares)[:, None] * g) * weight) @ _polynomials(orders).T


def power(name: str, squares: np.ndarray) -> np.ndarray:
    """E phi(sqrt(s) g)^2 for each squared norm s."""
    g, weight = _grid()
    return apply(name, np.sqrt(squares)[:, None] * g) ** 2 @ weight


def mean_derivatives(name: str, square: float) -> tuple[float, float, float]:
    """E phi, E phi', E phi'' at one squared norm."""
    c = coefficients(name, np.array([square]), 3)[0]
    return float(c[0]), float(c[1] / math.sqrt(square)), float(c[2] * math.sqrt(2) / square)


def mean_square_slope(name: str, square: float) -> float:
    """E phi'(sqrt(s) g)^2 at one squared norm, by differences across each cell of the grid."""
    g, weight = _grid()
    half = SPAN / CELLS / 2
    ends = (apply(name, math.sqrt(square) * (g + side)) for side in (half, -half))
    slope = np.subtract(*ends) / (2 * half * math.sqrt(square))
    return float(slope**2 @ weight)
