r"""What one hidden unit makes of a query and of another token, and means over m such units.

A query's own overlap is a mean over units of phi(w . x)^2. How its overlap with another token t
varies over t is a sum of squares of such means (docs/theory/mlp.md). With w . z_t = |w| zeta and
orthonormal polynomials h_k of sqrt(d) zeta,

    phi(a + |w| zeta) = sum_k c_k(a, |w|^2/d) h_k,         a = w . z_trig, or 0              (B10)

so that k(t, x) has, along the tokens' parts that lie as x and the trigger do, the coefficients

    e_kj = (1/m) sum_a phi(w_a . x) c_k x_a^j y_a^(k-j),      x_a, y_a: cosines of w_a       (B11)

and across them a sum of units that have nothing to do with each other. Both move together from
query to query, through units of large |w|: their law is taken by draws of whole sets of m units.
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import ndtri

from mnemoscope.theory.activation import apply, coefficients
from mnemoscope.theory.activation import power as power_of
from mnemoscope.theory.quadrature import chi_square_nodes
from mnemoscope.theory.registry import embedding_law

# Units drawn for one kernel, at least so many queries, and units to a query at most.
DRAWS, QUERIES, UNITS = 2**17, 32, 2**15
# Units that are looked at together.
AT_ONCE = 2**15
# Parts of a token's overlap that a query sees above 1/m: their size falls as d^(-k/2).
ORDERS = 4
# Tables of c_k over |w|/sqrt(d) and over a: the range and the steps.
LONGEST, LENGTHS = 3.0, 40
FARTHEST, PLACES = 9.0, 120
# Steps of the integral over a token's coordinate, in standard deviations.
SPAN, STEPS = 7.0, 160


@dataclass(frozen=True)
class Overlaps:
    """Of many queries: the overlap with itself, and the mean and variance of those with others.

    `wide` is the part of the variance that would be left at infinite width; `skewness` and
    `kurtosis`, in excess of a normal law's, are those over tokens.
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
    """Overlaps of queries with sets of hidden units of their own.

    A few queries at a time: all at once would take a hundred megabytes and more.
    """
    units = min(width, UNITS)
    queries = max(QUERIES, draws // units)
    drawn = (*_queries(queries, dim, embedding, additive), *_normals(queries, units))
    count = max(1, AT_ONCE // units)
    parts = [
        _overlaps(activation, embedding, additive, dim, width, *(values[first : first + count] for values in drawn))
        for first in range(0, queries, count)
    ]
    return Overlaps(
        *(np.concatenate([getattr(part, name) for part in parts]) for name in Overlaps.__dataclass_fields__)
    )


def _overlaps(
    activation: str,
    embedding: str,
    additive: bool,
    dim: int,
    width: int,
    square: np.ndarray,
    across: np.ndarray,
    trigger: np.ndarray,
    along: np.ndarray,
    beside: np.ndarray,
    length: np.ndarray,
) -> Overlaps:
    """Of queries with these norms and units."""
    queries = len(square)
    law = embedding_law(embedding)
    rest = max(dim - (2 if additive else 1), 1)
    # |w|^2 less the parts along x and the trigger: chi^2, by Wilson and Hilferty's cube.
    small = 2 / (9 * rest)
    length = rest * np.maximum(1 - small + math.sqrt(small) * length, 0.05) ** 3
    if additive:
        a = trigger * beside
        # z_x is cosine `across` along the trigger, and the rest of it across.
        seen = a + np.sqrt(square) * (across * beside + np.sqrt(1 - across**2) * along)
    else:
        a, seen, beside = None, np.sqrt(square) * along, np.zeros(1)
    squares = length + along**2 + (beside**2 if additive else 0) if law.overlapping else length
    span_dim = dim if law.overlapping else rest
    table = _table(activation, span_dim if law.unit_norm else 0, additive)
    *c, total, third, fourth = _look_up(table, np.sqrt(squares / span_dim), a)
    phi = apply(activation, seen)
    power = phi**2
    mean = (phi * c[0]).mean(axis=1)
    if not law.overlapping:  # no token has a part along another
        left, variance = total, 0.0
    else:
        x, y = along / np.sqrt(squares), beside / np.sqrt(squares)
        left, variance = total.copy(), np.zeros(queries)
        plane = x**2 + y**2
        for k in range(1, ORDERS + 1):
            part = phi * c[k]
            left -= c[k] ** 2 * plane**k
            for j in range(k + 1) if additive else (k,):
                e = (part * x**j * y ** (k - j)).mean(axis=1)  # (B11)
                variance = variance + math.comb(k, j) * e**2
            if k == 2 and not law.unit_norm:  # tokens' norms vary, which all units see
                e = (part * (1 - plane)).mean(axis=1)
                variance = variance + e**2 / rest
    through = (power * left).mean(axis=1) / width  # (B12)
    wide = variance + 0 * through
    spread = wide + through
    # Few units carry a narrow query's overlaps, and all of a long token's are large (B14).
    skewness = (power * phi * third).mean(axis=1) / (width**2 * spread**1.5)
    few = (power**2 * fourth).mean(axis=1) / (width**3 * spread**2)
    kurtosis = np.maximum(few, 0) + 3 * _uneven_tokens(activation, embedding, dim)
    return Overlaps(power.mean(axis=1), mean, spread, wide, skewness, kurtosis)


@lru_cache(maxsize=1024)
def _uneven_tokens(activation: str, embedding: str, dim: int) -> float:
    """How far a token's norm makes its features' variance vary: relative variance (B14)."""
    if embedding_law(embedding).unit_norm:
        return 0.0
    square, weight = chi_square_nodes(float(dim), 9)
    spread = power_of(activation, square) - coefficients(activation, square, 1)[:, 0] ** 2
    mean = float(weight @ spread)
    return float(weight @ (spread - mean) ** 2) / mean**2


@lru_cache(maxsize=1)
def _stream() -> np.ndarray:
    """As many standard normal numbers as any kernel takes, kept once for all of them."""
    return np.random.default_rng(0).standard_normal(3 * max(DRAWS, QUERIES * UNITS))


def _normals(queries: int, units: int) -> np.ndarray:
    """Standard normal numbers, always the same: two coordinates of w, and its length."""
    return _stream()[: 3 * queries * units].reshape(3, queries, units)


def _queries(queries: int, dim: int, embedding: str, additive: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """|z_x|^2, its cosine with the trigger and |z_trig|, evenly over their laws.

    Even along three irrational steps, a column each.
    """
    order = np.arange(queries)
    even = [((order + 0.5) * step) % 1 for step in (1 / queries, 0.7548776662, 0.5698402910)]
    g = [ndtri(part)[:, None] for part in even]
    law, one = embedding_law(embedding), np.ones((queries, 1))
    small = 2 / (9 * dim)

    def squared_norm(normal: np.ndarray) -> np.ndarray:
        if law.unit_norm:
            return one
        return np.maximum(1 - small + math.sqrt(small) * normal, 0.05) ** 3

    cosine = np.clip(g[1] / math.sqrt(dim), -0.9, 0.9)
    if not (additive and law.overlapping):
        cosine = 0 * one
    return squared_norm(g[0]), cosine, np.sqrt(squared_norm(g[2]))


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
    for at, size in enumerate(lengths):
        phi = apply(activation, places[:, None] + size * coordinate)
        table[at, :, :-3] = phi @ (polynomials * weight).T
        apart = phi - table[at, :, :1]
        table[at, :, -3] = apart**2 @ weight
        table[at, :, -2] = apart**3 @ weight
        table[at, :, -1] = apart**4 @ weight - 3 * table[at, :, -3] ** 2
    return table


def _coordinate(span_dim: int) -> tuple[np.ndarray, np.ndarray]:
    """sqrt(d) times a token's coordinate: values in the middle of cells, and their weights."""
    span = SPAN if span_dim < 3 else min(SPAN, math.sqrt(span_dim))
    edges = np.linspace(-span, span, STEPS + 1)
    value = (edges[1:] + edges[:-1]) / 2
    inside = np.exp(-(value**2) / 2) if span_dim < 3 else (1 - value**2 / span_dim) ** ((span_dim - 3) / 2)
    return value, inside / inside.sum()


def _orthonormal_polynomials(value: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """h_0 .. h_ORDERS of a symmetric law, by their recurrence."""
    rows = [np.ones_like(value)]
    before, beside = np.zeros_like(value), 0.0
    for _ in range(ORDERS):
        following = value * rows[-1] - beside * before
        beside = math.sqrt(float(following**2 @ weight))
        before = rows[-1]
        rows.append(following / beside)
    return np.stack(rows)


def _look_up(table: np.ndarray, size: np.ndarray, a: np.ndarray | None) -> list[np.ndarray]:
    """The table's columns at these lengths and places, linearly between its entries."""
    place = np.minimum(size * (LENGTHS / LONGEST), LENGTHS - 1e-6)
    left = place.astype(np.int64)
    parts = [(left, 1 - (place - left)), (left + 1, place - left)]
    columns = table.shape[1]
    if a is None:
        corners = parts
    else:
        where = np.clip((a + FARTHEST) * (PLACES / (2 * FARTHEST)), 0, PLACES - 1e-6)
        below = where.astype(np.int64)
        within = where - below
        corners = [
            (row * columns + column, share * other)
            for row, share in parts
            for column, other in ((below, 1 - within), (below + 1, within))
        ]
    flat = table.reshape(-1, table.shape[-1])
    return [sum((np.take(column, index) * share for index, share in corners), np.zeros(1)) for column in flat.T.copy()]
