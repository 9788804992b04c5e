r"""How many directions an item takes from a memory: the statistical dimension of its cone.

A matrix stores item x if w = W e_x lies in C_x = {w : (u_x - u_y)^T w >= 0 for all y}: no other label has a larger
logit. What that costs is (T1)

    delta = E |P g|^2,   g ~ N(0, I_d),   P the projection on the cone spanned by {u_y - u_x, y != x},

the polar of C_x, and its expected number of active constraints as well. The projection is a non-negative least-squares
problem. Its value spreads over draws with variance v + 2 delta, where v is the variance of the cone's intrinsic volumes
(McCoy and Tropp 2014), which decides how sharp the transition is (T4).

As d grows with the number of labels M fixed, output embeddings become orthogonal. The cone is then that of a coordinate
that no other exceeds, {w : w_x >= w_y}, and the projection pools those above a common level a: (T2)

    delta(M, infinity) = E min_a [(a - g_x)_+^2 + sum_{y != x} (g_y - a)_+^2].

These draws take seconds. `tabulate.py` makes a table of them once, and `capacity.py` reads it.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.optimize import nnls
from scipy.special import ndtri

# Constraints to begin with: the others join where the projection violates them.
FIRST_CONSTRAINTS = 4
ROUNDING = 1e-9
# Competitors that may lie above the level of (T2): far fewer do.
MOST_ABOVE = 100


@dataclass(frozen=True)
class Cone:
    """The cones of items that can be stored: their mean dimension, the variance of their intrinsic volumes, and the
    share of items whose cone is {0}, because their label lies in the hull of the others."""

    dimension: float
    variance: float
    closed: float
    error: float


def draw_labels(random: np.random.Generator, labels: int, dim: int, law: str) -> np.ndarray:
    """Output embeddings, a row for each label."""
    rows = random.standard_normal((labels, dim))
    return rows / (np.linalg.norm(rows, axis=1, keepdims=True) if law == "sphere" else np.sqrt(dim))


def draw_cones(labels: int, dim: int, law: str, draws: int, seed: int = 0) -> Cone:
    """The average over `draws` draws of embeddings and directions.

    A direction's component along u_x matters most, so it runs through the quantiles of its law.
    """
    random = np.random.default_rng((seed, labels, dim))
    squares = np.full(draws, np.nan)
    for i in range(draws):
        U = draw_labels(random, labels, dim, law)
        g = random.standard_normal(dim)
        along = U[0] / np.linalg.norm(U[0])
        g += (ndtri((i + random.random()) / draws) - g @ along) * along
        projected = project(g, (U[1:] - U[0]).T)
        if np.sum((g - projected) ** 2) > ROUNDING * dim:
            squares[i] = projected @ projected
    open_ = squares[~np.isnan(squares)]
    if not len(open_):
        return Cone(dim, 0.0, 1.0, 0.0)
    mean = float(open_.mean())
    # Neighbouring quantiles differ by what was not stratified.
    error = float(np.sqrt(np.mean(np.diff(open_) ** 2) / 2 / len(open_)))
    return Cone(mean, float(max(0.0, open_.var() - 2 * mean)), 1 - len(open_) / draws, error)


def draw_orthogonal_cones(labels: int, draws: int, seed: int = 0) -> Cone:
    """(T2)."""
    squares = orthogonal_squares(labels, draws, seed)
    mean = float(squares.mean())
    error = float(np.sqrt(np.mean(np.diff(squares) ** 2) / 2 / draws))
    return Cone(mean, float(max(0.0, squares.var() - 2 * mean)), 0.0, error)


def orthogonal_squares(labels: int, draws: int, seed: int = 0, kappa: float = 0.0) -> np.ndarray:
    """The minimum in (T2) for every draw, where the item has to exceed the others by a margin.

    The item's own coordinate runs through the quantiles of its law; the largest of the others are order statistics.
    """
    own, tops = _coordinates(labels, draws, seed)
    own = own - kappa
    # The level pools the item with its k largest competitors, for the k at which it lies between two of them.
    pooled = (own[:, None] + np.cumsum(tops, axis=1)) / np.arange(2, tops.shape[1] + 2)
    level = np.maximum(own, pooled.max(axis=1))
    return (level - own) ** 2 + np.sum(np.maximum(tops - level[:, None], 0) ** 2, axis=1)


@lru_cache(maxsize=8)
def _coordinates(labels: int, draws: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng((seed, labels))
    own = ndtri((np.arange(draws) + random.random(draws)) / draws)
    shown = min(labels - 1, MOST_ABOVE)
    gaps = np.cumsum(random.exponential(size=(draws, shown)), axis=1)
    rest = random.gamma(labels - shown, size=(draws, 1))
    return own, -ndtri(gaps / (gaps[:, -1:] + rest))


def project(g: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """The projection of g on the cone spanned by the columns of `edges`.

    Only a few columns are active, so a problem with few of them is solved first; those on whose side g still lies join.
    """
    dim, columns = edges.shape
    active = np.argsort(-(g @ edges))[: min(columns, FIRST_CONSTRAINTS * dim + 20)]
    while True:
        weights, _ = nnls(edges[:, active], g, maxiter=100 * columns)
        projected = edges[:, active] @ weights
        outside = (g - projected) @ edges
        outside[active] = 0.0
        joining = np.nonzero(outside > ROUNDING)[0]
        if not len(joining):
            return projected
        worst = joining[np.argsort(-outside[joining])][:200]
        active = np.union1d(active[weights > 0], worst)
