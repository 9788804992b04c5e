r"""What one hidden unit makes of a query and of another token, and means over m such units.

A query's overlap with itself is a mean over units of phi(w . x)^2. The variance over t of its
overlap with another token t is a sum of squares of such means (docs/theory/mlp.md). With
w . z_t = |w| zeta and orthonormal polynomials h_k of sqrt(d) zeta,

    phi(a + |w| zeta) = sum_k c_k(a, |w|^2/d) h_k,         a = w . z_trig, or 0              (B10)

so that k(t, x) has, along the tokens' parts in the plane of x and the trigger, the coefficients

    e_kj = (1/m) sum_a phi(w_a . x) c_k x_a^j y_a^(k-j),      x_a, y_a: cosines of w_a       (B11)

and across that plane a sum of independent units. Units of large |w| make both move together from
query to query, so their law comes from draws of whole sets of m units.
"""

import math
from dataclasses import dataclass, fields
from functools import lru_cache

import numpy as np
from scipy.special import ndtri

from mnemoscope.theory.activation import apply, coefficients
from mnemoscope.theory.activation import power as power_of
from mnemoscope.theory.quadrature import Nodes, chi_square_nodes, wilson_hilferty
from mnemoscope.theory.registry import embedding_law

# Units drawn for one kernel, the fewest queries, and the most units per query.
DRAWS, QUERIES, UNITS = 2**17, 32, 2**15
# Units processed together.
AT_ONCE = 2**15
# Orders of a token's overlap that a query sees above 1/m: they fall as d^(-k/2).
ORDERS = 4
# Tables of c_k over |w|/sqrt(d) and over a: range and number of steps.
LONGEST, LENGTHS = 3.0, 40
FARTHEST, PLACES = 9.0, 120
# The integral over a token's coordinate: range in standard deviations, and number of steps.
SPAN, STEPS = 7.0, 160


@dataclass(frozen=True)
class Overlaps:
    """For many queries: the overlap with itself, and moments of the overlaps with other tokens.

    `wide` is the variance at infinite width; `kurtosis` is in excess of the normal law's.
    """

    own: np.ndarray
    mean: np.ndarray
    variance: np.ndarray
    wide: np.ndarray
    skewness: np.ndarray
    kurtosis: np.ndarray


def draw_overlaps(
    activation: str, embedding: str, additive: bool, dim: int, width: int, draws: int = DRAWS
) -> Overlaps:
    """Overlaps of queries, each with its own set of hidden units.

    A few queries at a time: all at once would take hundreds of megabytes.
    """
    units = min(width, UNITS)
    queries = max(QUERIES, draws // units)
    # Standard normal numbers, always the same: two coordinates of w, and its length.
    normals = _stream()[: 3 * queries * units].reshape(3, queries, units)
    drawn = (*_queries(queries, dim, embedding, additive), *normals)
    count = max(1, AT_ONCE // units)
    parts = [
        _overlaps(activation, embedding, additive, dim, width, *(values[first : first + count] for values in drawn))
        for first in range(0, queries, count)
    ]
    return Overlaps(*(np.concatenate([getattr(part, field.name) for part in parts]) for field in fields(Overlaps)))


def _overlaps(
    activation: str,
    embedding: str,
    additive: bool,
    dim: int,
    width: int,
    square: np.ndarray,
    cosine: np.ndarray,
    trigger: np.ndarray,
    along: np.ndarray,
    beside: np.ndarray,
    length: np.ndarray,
) -> Overlaps:
    """Overlaps of queries with the norms and cosines of `_queries`, and normal numbers for w."""
    law = embedding_law(embedding)
    rest = max(dim - (2 if additive else 1), 1)
    length = rest * wilson_hilferty(length, rest)  # |w|^2 less its parts along x and the trigger
    if additive:
        a = trigger * beside
        seen = a + np.sqrt(square) * (cosine * beside + np.sqrt(1 - cosine**2) * along)
    else:
        a, seen, beside = None, np.sqrt(square) * along, np.zeros(1)
    squares = length + along**2 + (beside**2 if additive else 0) if law.overlapping else length
    span_dim = dim if law.overlapping else rest
    table = _table(activation, span_dim if law.unit_norm else 0, additive)
    *c, total, third, fourth = _look_up(table, np.sqrt(squares / span_dim), a)
    phi = apply(activation, seen)
    power = phi**2
    left, variance = total, np.zeros(len(square))
    if law.overlapping:  # orthonormal tokens have no part along each other
        x, y = along / np.sqrt(squares), beside / np.sqrt(squares)
        plane = x**2 + y**2
        for k in range(1, ORDERS + 1):
            part = phi * c[k]
            left = left - c[k] ** 2 * plane**k
            for j in range(k + 1) if additive else (k,):
                e = (part * x**j * y ** (k - j)).mean(axis=1)  # (B11)
                variance = variance + math.comb(k, j) * e**2
            if k == 2 and not law.unit_norm:  # tokens' norms vary, which all units see
                e = (part * (1 - plane)).mean(axis=1)
                variance = variance + e**2 / rest
    spread = variance + (power * left).mean(axis=1) / width  # (B12)
    # A few units carry the overlaps in a narrow MLP, and a long token's are all large (B14).
    size = np.where(spread > 0, spread, 1.0)  # where all units are silent, nothing is skewed
    skewness = (power * phi * third).mean(axis=1) / (width**2 * size**1.5)
    few = (power**2 * fourth).mean(axis=1) / (width**3 * size**2)
    kurtosis = np.maximum(few, 0) + 3 * _uneven_tokens(activation, embedding, dim)
    return Overlaps(power.mean(axis=1), (phi * c[0]).mean(axis=1), spread, variance, skewness, kurtosis)


@lru_cache(maxsize=1024)
def _uneven_tokens(activation: str, embedding: str, dim: int) -> float:
    """Relative variance of a token's feature variance, as its norm varies (B14)."""
    if embedding_law(embedding).unit_norm:
        return 0.0
    square, weight = chi_square_nodes(float(dim), 9)
    spread = power_of(activation, square) - coefficients(activation, square, 1)[:, 0] ** 2
    mean = float(weight @ spread)
    return float(weight @ (spread - mean) ** 2) / mean**2


@lru_cache(maxsize=1)
def _stream() -> np.ndarray:
    """As many standard normal numbers as the largest kernel takes."""
    return np.random.default_rng(0).standard_normal(3 * max(DRAWS, QUERIES * UNITS))


def _queries(queries: int, dim: int, embedding: str, additive: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """|z_x|^2, its cosine with the trigger and |z_trig|, spread evenly over their laws.

    Each is a column, even along its own irrational step.
    """
    order = np.arange(queries)
    g = [ndtri(((order + 0.5) * step) % 1)[:, None] for step in (1 / queries, 0.7548776662, 0.5698402910)]
    law = embedding_law(embedding)
    ones = np.ones((queries, 1))
    square, trigger = (ones, ones) if law.unit_norm else (wilson_hilferty(normal, dim) for normal in (g[0], g[2]))
    cosine = np.clip(g[1] / math.sqrt(dim), -0.9, 0.9) if additive and law.overlapping else 0 * ones
    return square, cosine, np.sqrt(trigger)


@lru_cache(maxsize=16)
def _table(activation: str, span_dim: int, additive: bool) -> np.ndarray:
    """c_0 .. c_ORDERS (B10), and phi's next three cumulants, by |w|/sqrt(d) and by a.

    `span_dim` is the dimension in which a token is uniform on the sphere, 0 for a Gaussian token.
    """
    coordinate, weight = _coordinate(span_dim)
    polynomials = _orthonormal_polynomials(coordinate, weight)
    lengths = np.linspace(0, LONGEST, LENGTHS + 1)
    places = np.linspace(-FARTHEST, FARTHEST, PLACES + 1) if additive else np.zeros(1)
    table = np.empty((len(lengths), len(places), ORDERS + 4))
    for row, size in zip(table, lengths, strict=True):
        phi = apply(activation, places[:, None] + size * coordinate)
        row[:, :-3] = phi @ (polynomials * weight).T
        deviation = phi - row[:, :1]
        row[:, -3] = deviation**2 @ weight
        row[:, -2] = deviation**3 @ weight
        row[:, -1] = deviation**4 @ weight - 3 * row[:, -3] ** 2
    return table


def _coordinate(span_dim: int) -> Nodes:
    """sqrt(d) times a token's coordinate: midpoints of cells, and their weights."""
    span = SPAN if span_dim < 3 else min(SPAN, math.sqrt(span_dim))
    edges = np.linspace(-span, span, STEPS + 1)
    value = (edges[1:] + edges[:-1]) / 2
    density = np.exp(-(value**2) / 2) if span_dim < 3 else (1 - value**2 / span_dim) ** ((span_dim - 3) / 2)
    return value, density / density.sum()


def _orthonormal_polynomials(value: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """h_0 .. h_ORDERS of a symmetric law, by their recurrence."""
    rows = [np.zeros_like(value), np.ones_like(value)]
    norm = 0.0
    for _ in range(ORDERS):
        following = value * rows[-1] - norm * rows[-2]
        norm = math.sqrt(float(following**2 @ weight))
        rows.append(following / norm)
    return np.stack(rows[1:])


def _look_up(table: np.ndarray, size: np.ndarray, a: np.ndarray | None) -> list[np.ndarray]:
    """The table's columns at these lengths and places, by linear interpolation."""
    place = np.minimum(size * (LENGTHS / LONGEST), LENGTHS - 1e-6)
    left = place.astype(np.int64)
    corners = [(left, 1 - (place - left)), (left + 1, place - left)]
    if a is not None:
        where = np.clip((a + FARTHEST) * (PLACES / (2 * FARTHEST)), 0, PLACES - 1e-6)
        below = where.astype(np.int64)
        within = where - below
        corners = [
            (row * table.shape[1] + column, share * other)
            for row, share in corners
            for column, other in ((below, 1 - within), (below + 1, within))
        ]
    flat = table.reshape(-1, table.shape[-1])
    return [sum((np.take(column, index) * share for index, share in corners), np.zeros(1)) for column in flat.T.copy()]
