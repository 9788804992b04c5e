r"""What the second step makes of tokens of unequal probability: their attention scores, draw by draw.

In units of (N L)^-2 (1 - 1/L), with b = L - 1, m = sum_v p_v z_v, C = sum_v p_v z_v z_v^T and
w = U^T (n - N/V), the direction is (docs/theory/frequencies.md)

    alpha = sum_y n_y rho_y (z_y - m) + b (C - m m^T) y + tau z_trig + noise                 (Z1)
    y = V1^T w = b |w|^2 m + sum_v (n_v a_v + x_v) z_v,      a_y = u_y . w                   (Z2)
    rho_y = b a_y (z_y . m - |m|^2) + sum_v (n_v - [v=y]) (u_y . u_v) z_v . (z_y - m)        (Z3)

Single tokens' vectors are drawn; of all others only sums enter, which are close to normal.
"""

from dataclasses import dataclass

import numpy as np

from mnemoscope.spec import Retrieval
from mnemoscope.theory.frequencies.draws import Draws
from mnemoscope.theory.frequencies.tokens import Tokens, tokens_of
from mnemoscope.theory.registry import embedding_law


@dataclass(frozen=True)
class Seeds:
    """What is drawn once a seed: vectors of the single tokens, and how often those were informative."""

    tokens: Tokens
    draws: Draws
    Z: np.ndarray
    U: np.ndarray
    trigger: np.ndarray
    # Vectors for sums over the other tokens: in Z four, in U one.
    sums: np.ndarray
    labels: np.ndarray
    count: np.ndarray


@dataclass(frozen=True)
class Scores:
    """Attention's scores: of the single tokens, and mean and standard deviation in each group."""

    single: np.ndarray
    mean: np.ndarray
    spread: np.ndarray
    # What is added at the informative position.
    lift: np.ndarray
    # alpha in the coordinates of `Seeds`, and the variance of a group's scores that it does not explain.
    alpha: np.ndarray
    own: np.ndarray
    # Standard deviations over the signal.
    terms: dict[str, float]


SUMS = 5


def draw_seeds(spec: Retrieval, draws: Draws) -> Seeds:
    """The vectors and counts of every seed."""
    law, tokens = embedding_law(spec.embedding), tokens_of(spec.tokens, spec.vocab)
    single = len(tokens.single)
    Z = draws.vectors(single + 1 + SUMS, spec.dim, overlapping=law.overlapping).copy()
    U = draws.vectors(single + 1, spec.dim, overlapping=law.overlapping).copy()
    if law.bounded:  # tokens have unit length, sums of many of them do not
        Z[:, : single + 1] /= np.linalg.norm(Z[:, : single + 1], axis=-1, keepdims=True)
        U[:, :single] /= np.linalg.norm(U[:, :single], axis=-1, keepdims=True)
    return Seeds(
        tokens=tokens,
        draws=draws,
        Z=Z[:, :single],
        U=U[:, :single],
        trigger=Z[:, single],
        sums=Z[:, single + 1 :],
        labels=U[:, single],
        count=draws.binomial(spec.samples, tokens.often),
    )


def dot(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Inner products, with an axis of length 1 in place of the vectors'."""
    return np.einsum("...i,...i->...", a, b)[..., None]


def along(vectors: np.ndarray, a: np.ndarray) -> np.ndarray:
    """The inner product of each row with one vector a seed."""
    return np.einsum("ski,si->sk", vectors, a)


def combined(weights: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    """The rows' sum with these weights."""
    return np.einsum("sk,ski->si", np.broadcast_to(weights, vectors.shape[:2]), vectors)


def scores_of(spec: Retrieval, seeds: Seeds) -> Scores:
    """Scores in every seed."""
    tokens, draws, Z, U, n = seeds.tokens, seeds.draws, seeds.Z, seeds.U, seeds.count
    law = embedding_law(spec.embedding)
    N, b, per = spec.samples, spec.length - 1, 1 / spec.dim if law.overlapping else 0.0
    wobble = law.norm_variance(spec.dim)
    often, rare, size = tokens.often, tokens.rare, tokens.size
    r = N * rare  # n of the groups' tokens, on average
    over = r - N / spec.vocab  # mean of a_y there
    # (Z2): w and the labels' part a along it; its squared length.
    w = combined(n - N / spec.vocab, U) + np.sqrt(size @ (over**2 + r)) * seeds.labels
    G, a = dot(w, w), along(U, w)
    # m, and what other sums of group tokens have along it.
    rest = float(size @ rare**2)
    first, second, third, fourth, noise = np.moveaxis(seeds.sums, 1, 0)
    m = combined(often, Z) + np.sqrt(rest) * first
    mm, zm = dot(m, m), along(Z, m)

    def summed(weights: np.ndarray, own: np.ndarray) -> np.ndarray:
        """sum_v weight_v z_v over the groups: part of it along their part of m."""
        shared = (size * weights * rare).sum(1, keepdims=True) / max(rest, 1e-300)
        left = np.maximum((size * weights**2).sum(1, keepdims=True) - shared**2 * rest, 0.0)
        return shared * np.sqrt(rest) * first + np.sqrt(left) * own

    # Lengths kappa of columns and their sum, and sum_y n_y a_y^2 (Z5).
    column, rare_column = _column(n, N * b * often), _column(r, N * b * rare)
    columns = column.sum(1, keepdims=True) + size @ rare_column
    weighed = (n * a**2).sum(1, keepdims=True) + (size @ r) * G * per
    weighed += size @ (r * over**2 + 3 * r**2 - 2 * r * N / spec.vocab + r)
    # (Z3), with chance meetings of noise tokens and labels.
    gram_u, gram_z = U @ U.transpose(0, 2, 1), Z @ Z.transpose(0, 2, 1)
    rho = b * a * (zm - mm) + np.einsum("sj,skj,sjk->sk", n, gram_u, gram_z)
    rho -= np.einsum("sj,skj,sj->sk", n, gram_u, zm)
    lengths = np.einsum("ski,ski->sk", Z, Z)
    rho -= np.einsum("ski,ski->sk", U, U) * lengths  # a sequence does not meet itself
    chance = (n * b + N * b * often + (N * b + size @ r**2) * per) * per + n * b * often
    rho += np.sqrt(chance) * draws.normal(len(often))
    rare_rho = b * over * (rare - mm) + r * (1 - rare)
    total = (n * rho).sum(1, keepdims=True) + (size * r * rare_rho).sum(1, keepdims=True)
    # (Z3): the trigger's weight, whose mean is (Z4).
    unsteady = (r * b + rare_column + columns * per) * per + b**2 * (over**2 + r + G * per) * mm * per
    unsteady = (size * r**2 * (unsteady + 2 * wobble * r**2)).sum(1, keepdims=True)
    tau = total + np.sqrt(unsteady) * draws.normal(1)
    # (Z2): y. What varies from token to token in its sum is xi, of this variance in a group (Z8).
    x = np.sqrt(b * often * weighed) * draws.normal(len(often))
    share, steady = per * b * (size @ rare), r * over
    every, level = per * b * (size @ rare + often.sum()), per * b * ((n * a).sum(1, keepdims=True) + size @ steady)
    xi = b * rare * weighed + r**2 * G * per + _uneven(r, spec)
    y = b * G * m + combined(n * a + x, Z) + summed(np.broadcast_to(steady, (draws.count, len(r))), second)
    y_random = np.sqrt((size * xi).sum(1, keepdims=True)) * third
    y = y + y_random
    my, zy, yy = dot(m, y), along(Z, y), dot(y, y)
    # (Z5) to (Z9): variances of the tokens' weights beyond that.
    noises = _Noises(spec, tokens, columns, per)
    single_noise = noises.gradient(n, often, column, n**2 * (n**2).sum(1, keepdims=True))
    single_noise += noises.count(n, often, column) - 2 * per * n**4
    beta = n * rho + b * often * zy + b * (zm - mm) * x + N * b * often * (lengths - 1)
    beta += np.sqrt(np.maximum(single_noise, 0.0)) * draws.normal(len(often))
    through, alone = share + b * (2 * rare - mm), every + b * (2 * rare - mm)
    weights = xi * (alone**2 + b**2 * mm * per)
    bias = (b * rare) ** 2 * yy * per + (r * b) ** 2 * (over**2 + r) * mm * per
    parts = {
        "gradient_noise": noises.gradient(r, rare, rare_column, 0.0),
        "count_noise": noises.count(r, rare, rare_column)
        - (2 * per - wobble) * r**4
        + noises.counts(r)
        + wobble * (N * b * rare) ** 2,
        "label_noise": weights,
        "mean_bias": bias,
        "label_and_count": 2 * alone * noises.shared(r, N / spec.vocab),
    }
    own = np.maximum(sum(parts.values()), 0.0)
    # (Z1): alpha, with C's mean over the groups beside its single tokens. xi enters through y and by itself.
    kept = r * rare_rho + b * rare * (b * G * rare + steady)
    lost = total + b * my
    alpha = combined(beta, Z) - lost * m + summed(kept, fourth) + share * (y - y_random)
    alpha += np.sqrt((size * xi * through**2).sum(1, keepdims=True)) * third
    alpha += per * b * (size @ steady) * m + tau * seeds.trigger
    alpha += np.sqrt((size * np.maximum(own - xi * alone**2, 0.0)).sum(1, keepdims=True)) * noise
    # (Z10): scores. A token's own weight follows y and m, as alpha does.
    mean = kept - rare * lost + every * (b * G * rare + steady) + level * rare
    own = own * (1 + 3 * wobble) + wobble * mean**2
    own = np.maximum(own + 2 * per * b * (rare * dot(alpha, y) + steady * dot(alpha, m)), 0.0)
    aa = dot(alpha, alpha) * per
    single, spread = along(Z, alpha), np.sqrt(aa + own + 1e-300)
    signal = float(np.median(np.abs(tau)))
    noises_over = {name: _usual(tokens, value, per) for name, value in parts.items()}
    noises_over["overlap"] = float(np.median(tau**2)) * per
    # The mean bias along its own direction, and what is left of all: what frequent tokens add by themselves.
    drawn = combined(b**2 * G * often * zm, Z) + (share - b * mm) * b * G * m + summed(b**2 * G * rare**2, fourth)
    centred = b**2 * G * rare * (rare - mm + every / b)
    noises_over["mean_bias"] += _spread(tokens, along(Z, drawn), centred, dot(drawn, drawn) * per)
    rest = _spread(tokens, single, mean, spread**2) - sum(noises_over.values())
    noises_over["frequent_tokens"] = max(0.0, rest)
    terms = {name: float(np.sign(value) * np.sqrt(abs(value))) for name, value in noises_over.items()}
    return Scores(
        single=single,
        mean=mean,
        spread=spread,
        lift=dot(alpha, seeds.trigger),
        alpha=alpha,
        own=own,
        terms={name: value / max(signal, 1e-300) for name, value in terms.items()},
    )


def _usual(tokens: Tokens, variance: np.ndarray, per: float) -> float:
    """What a noise of the groups' weights adds to the variance of scores: a token's own, and all by overlaps."""
    variance = np.median(np.atleast_2d(variance), axis=0)
    return float(tokens.rare * tokens.size @ variance + tokens.size @ variance * per)


def _spread(tokens: Tokens, single: np.ndarray, mean: np.ndarray, variance: np.ndarray) -> float:
    """The variance of scores over the tokens of sequences, in the median seed."""
    return float(np.median(tokens.mean(single**2, variance + mean**2) - tokens.mean(single, mean) ** 2))


def _column(n: np.ndarray, noise: np.ndarray) -> np.ndarray:
    """kappa_v = E sum_y F[y, v]^2: the label's own count, and the noise tokens' variance (Z5)."""
    return n**2 + n + noise


class _Noises:
    """Variances of a token's weight through chance meetings, for single tokens and for groups."""

    def __init__(self, spec: Retrieval, tokens: Tokens, columns: np.ndarray, per: float) -> None:
        self.b, self.q, self.columns, self.per = spec.length - 1, 1 - 1 / spec.length, columns, per
        self.samples = spec.samples
        self.squares, self.cubes = spec.samples**2 * tokens.squares, spec.samples**3 * tokens.cubes

    def gradient(self, n: np.ndarray, p: np.ndarray, column: np.ndarray, explicit: np.ndarray | float) -> np.ndarray:
        """(Z6): overlaps of columns, by dimensions and by chance. `explicit` is left out, since it was drawn."""
        b, per = self.b, self.per
        kept = column + n / self.q
        alike = n**3 * b + b * p * self.cubes + b**2 * p * (self.squares + self.samples)
        return per * (per * (kept * self.columns - explicit) + alike)

    def count(self, n: np.ndarray, p: np.ndarray, column: np.ndarray) -> np.ndarray:
        """(Z7): a column's length in d dimensions, and its noise counts."""
        noise = self.b * p
        return 2 * self.per * column**2 + 2 * noise**2 * self.squares + 4 * n**3 * noise

    def counts(self, n: np.ndarray) -> np.ndarray:
        """The variance of n^2 - n/q: sequences of one label, less what each subtracts as its own mean."""
        return 4 * n**3 + 6 * n**2 + n - (4 * n**2 + 2 * n) / self.q + n / self.q**2

    def shared(self, n: np.ndarray, usual: float) -> np.ndarray:
        """The covariance of that with n (n - N/V) (Z9)."""
        return 4 * n**3 + 6 * n**2 + n - (2 * n**2 + n) * (usual + 1 / self.q) + n * usual / self.q


def _uneven(n: np.ndarray, spec: Retrieval) -> np.ndarray:
    """The variance of n (n - N/V) for a Poisson count."""
    usual = spec.samples / spec.vocab
    return 4 * n**3 + 6 * n**2 + n - 2 * usual * (2 * n**2 + n) + usual**2 * n
