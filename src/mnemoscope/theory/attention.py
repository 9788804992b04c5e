r"""Whether attention finds the informative token: its signal, and every noise against it.

All of it is in units of (1/(N L))^2, in which the trigger's weight is `Counts.trigger`. Scores of
the V tokens have a variance that is a sum of terms, each from its own source (docs/theory/
attention.md). c = V/d.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from mnemoscope.spec import Retrieval
from mnemoscope.theory.counts import Counts, count_moments
from mnemoscope.theory.quadrature import normal_nodes, squared_norm_nodes


@dataclass(frozen=True)
class Attention:
    """Signal and noises of the second step. `terms` are variances over the signal squared."""

    signal: float
    terms: dict[str, float]

    @property
    def learned_noise(self) -> float:
        """What the gradient adds to the scores beside the trigger's direction."""
        return sum(value for name, value in self.terms.items() if name != "overlap")


def attention_terms(spec: Retrieval) -> Attention:
    """Signal and noise of the scores z_v . alpha, from the spec alone."""
    counts = count_moments(spec)
    signal = counts.trigger / (spec.samples * spec.length) ** 2  # (A5)
    if counts.trigger <= 0:  # one position: nothing to choose from, and no gradient
        return Attention(0.0, {})
    make = _orthonormal if spec.embedding == "orthonormal" else _random
    terms = make(spec, counts)
    return Attention(signal, {name: value / counts.trigger**2 for name, value in terms.items()})


def _random(spec: Retrieval, counts: Counts) -> dict[str, float]:
    V, d, N = spec.vocab, spec.dim, spec.samples
    c, n = V / d, counts.per_label
    # |z|^2 and |u|^2 have variance 2/d under the Gaussian law, none on the sphere.
    norms = 2 / d if spec.embedding == "gaussian" else 0.0
    third = c**3 + 3 * c**2 + c  # (A7): E tr (Z^T Z)^3 / d
    bias = N * (counts.noise_tokens / V) ** 2  # (A6)
    label = N * (counts.noise_tokens / V) ** 2 * counts.column * (1 / V + 1 / d)  # (A10)
    columns = counts.centred_column * counts.column
    return {
        "overlap": counts.trigger**2 / d,  # (A11): z_v . z_trig
        "mean_bias": bias**2 * (1 + 2 / d) * third,
        "label_noise": label * (third + (c + 1) ** 2),
        "gradient_noise": columns * c * (1 / V + 1 / d) * (1 + c),  # (A12)
        # (A13): a column's own length, a token's own norm, and the counts of its own label.
        "count_noise": (columns * (2 / d + norms) + 4 * n**3) * (1 + c),
    }


def _orthonormal(spec: Retrieval, counts: Counts) -> dict[str, float]:
    """Without overlaps only the counts are noisy (A14)."""
    V, d, n = spec.vocab, spec.dim, counts.per_label
    cell = n * counts.noise_tokens / V
    return {
        "overlap": counts.trigger**2 / d if d == V else 0.0,
        "count_noise": V * (cell + 6 * cell**2 + 4 * cell**3) + 4 * n**3 + 2 * n**2,
    }


@dataclass(frozen=True)
class Seeds:
    """The lift (signal over the standard deviation of the scores) over many seeds."""

    lift: np.ndarray
    weight: np.ndarray


def lift_over_seeds(spec: Retrieval, attention: Attention) -> Seeds:
    r"""Lifts and their weights.

    A seed has one trigger vector and one noise vector. Its signal is |z_trig|^2 plus their overlap,
    which is as large as the overlap of a token with the noise; its overlap noise |z_trig|^2/d
    (A15).
    """
    if not attention.terms:
        return Seeds(np.array([np.inf]), np.array([1.0]))
    noise, overlap = attention.learned_noise, attention.terms["overlap"]
    square, square_weight = squared_norm_nodes(spec, 3)
    shift, shift_weight = normal_nodes(7)
    if spec.embedding == "orthonormal":  # the noise lies in the tokens' span, the trigger outside
        shift, shift_weight = np.zeros(1), np.ones(1)
    signal = square[:, None] + math.sqrt(noise) * shift[None, :]
    spread = np.sqrt(overlap * square[:, None] + noise)
    weight = square_weight[:, None] * shift_weight[None, :]
    return Seeds((signal / spread).ravel(), weight.ravel())


def win_rate(length: int, lift: float, score: np.ndarray) -> np.ndarray:
    """Chance that the informative token, of this score among tokens, beats L - 1 others (A16)."""
    return ndtr(score + lift) ** (length - 1)


def noise_wins(spec: Retrieval, lift: float, score: np.ndarray) -> np.ndarray:
    """How many training sequences a token of this score wins as a noise token (A17)."""
    others = ndtr(score) ** max(0, spec.length - 2)
    return spec.samples * (spec.length - 1) / spec.vocab * others * ndtr(score - lift)
