r"""Whether attention finds the informative token: its signal, and every noise against it.

All of it is in units of (1/(N L))^2, in which the signal is `trigger_weight`. Scores of
the V tokens have a variance that is a sum of terms, each from its own source (docs/theory/
attention.md).
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from mnemoscope.spec import Retrieval
from mnemoscope.theory.cells import Number, Sizes
from mnemoscope.theory.counts import Counts, count_moments, trigger_weight
from mnemoscope.theory.gains import Gains, gains
from mnemoscope.theory.gram import Gram, gram_moments
from mnemoscope.theory.quadrature import (
    chi_square_nodes,
    gauss_nodes,
    normal_nodes,
    squared_norm_nodes,
)

# Seeds that stand for all.
SEED_NODES = 5


@dataclass(frozen=True)
class Attention:
    """Signal and noises of the second step. `terms` are variances over the signal squared."""

    signal: Number
    terms: dict[str, Number]
    # Variance of the signal itself from seed to seed, beyond |z_trig|^2 and overlaps.
    unsteady: Number = 0.0

    @property
    def learned_noise(self) -> Number:
        """What the gradient adds to the scores beside the trigger's direction."""
        return sum(value for name, value in self.terms.items() if name != "overlap")


def attention_terms(spec: Sizes) -> Attention:
    """Signal and noise of the scores z_v . alpha, from the spec alone."""
    if isinstance(spec, Retrieval) and spec.length == 1:  # nothing to choose from, and no gradient
        return Attention(0.0, {})
    counts, gain = count_moments(spec), gains(spec)
    # One sample says nothing of the trigger: kept above zero, so that a ratio stays a number.
    weight = np.maximum(trigger_weight(spec, gain), 1e-6 * spec.samples)
    make = _orthonormal if spec.embedding == "orthonormal" else _random
    terms = make(spec, counts, gain)
    # The trigger's weight varies from seed to seed (A16), and its square is what overlaps see.
    unsteady = _unsteady(spec, counts, gain)
    terms["overlap"] = (weight**2 + unsteady) / spec.dim
    if spec.embedding == "orthonormal":
        terms["overlap"] *= spec.dim <= spec.vocab  # else the trigger fits into the frame
    return Attention(
        signal=weight / (spec.samples * spec.length) ** 2,
        terms={name: value / weight**2 for name, value in terms.items()},
        unsteady=unsteady / weight**2,
    )


def _unsteady(spec: Sizes, counts: Counts, gain: Gains) -> Number:
    """Variance of the trigger's weight from seed to seed (A16), and an MLP's share in it (F8)."""
    if spec.embedding == "orthonormal":
        return 0.0
    V, d, n, gram = spec.vocab, spec.dim, counts.per_label, gram_moments(spec)
    c, norms = gram.load, 2 * (gram.norm2 - 1)
    tables = (1 + c) * (counts.column / d + n * counts.per_token**2 * c) + n**2 * (c / d + norms)
    own = V * _constant_by_label(spec, gram, gain)
    return gain.linear**2 * V * n**2 * (1 - 1 / spec.length) ** 2 * tables + own


def _random(spec: Sizes, counts: Counts, gain: Gains) -> dict[str, Number]:
    V, d, N, L = spec.vocab, spec.dim, spec.samples, spec.length
    gram = gram_moments(spec)
    c, n, b, column = gram.load, counts.per_label, counts.per_token, counts.column
    linear = gain.linear**2
    # Overlaps as the MLP sees them have variance 1/d + 1/m (F3).
    seen = c + V * gain.inverse_width
    wider = 1 + d * gain.inverse_width
    # What a weight beta_w that holds one overlap of token w becomes in the scores (A12).
    spread = gram.norm3 + c * gram.norm2 - c / d
    # (A6): mu, the weight of the constant matrix, squared; (F2): the MLP's share in it.
    bias = (N * (1 - 1 / V) * b**2) ** 2 * (1 + 2 / (V - 1)) * (1 + 2 / d)
    bias *= (gain.linear + gain.constant + gain.own) ** 2 * wider
    bias += (N * L * b * gain.drift) ** 2 * d * gain.inverse_width / V  # (F4)
    x = n * c * column + counts.uneven  # (A11)
    label = b**2 * (x * gram.fourth + n**2 * gram.third) * wider
    label *= (gain.linear + gain.constant) ** 2  # (F2)
    label += linear * b**2 * x * counts.kept / column * seen * spread
    gradient = linear * seen * counts.kept / column * (counts.alike + column**2 / d)
    gradient += gain.constant**2 * n**2 * L * (L - 1) * (1 + c) / d  # (F5)
    gradient += gain.rest**2 * gain.inverse_width * n * (1 + c) * counts.kept  # (F6)
    # (A14): a column's length in d dimensions, where a unit vector's own square is fixed.
    own = 0.0 if spec.embedding == "gaussian" else 2 * counts.share**2 * n**4 / d
    length = column * (counts.kept + counts.share**2 * column) / d - own
    length += counts.spread * (1 + 2 / d if spec.embedding == "gaussian" else 1.0)
    mean = (counts.share * column) ** 2
    t2, t3, t4 = gram.norm2, gram.norm3, gram.norm4
    length += mean * 2 * gain.inverse_width
    uneven = _constant_by_label(spec, gram, gain)
    return {
        "mean_bias": bias * gram.third,
        "label_noise": label,
        "gradient_noise": gradient * spread,  # (A13)
        "count_noise": linear
        * (mean * (t4 - 2 * t3 + t2 + c * (t3 - 2 * t2 + 1)) + length * (t4 + c * t3))
        + uneven * (1 + c),
        "label_and_count": linear * _shared(spec, counts) * (c**2 + 3 * c + 1),
    }


def _constant_by_label(spec: Sizes, gram: Gram, gain: Gains) -> Number:
    """The constant part's weight on a label's own token, which varies with |z|^2 (F8)."""
    n = spec.samples / spec.vocab
    return gain.constant**2 * n**3 * (1 + gram.load) * (gram.norm2 - 1)


def _orthonormal(spec: Sizes, counts: Counts, gain: Gains) -> dict[str, Number]:
    """Without overlaps only the counts are noisy (A17)."""
    return {
        "label_noise": (gain.linear + gain.constant) ** 2 * counts.per_token**2 * counts.uneven,
        "count_noise": gain.linear**2 * counts.spread,
        "label_and_count": gain.linear**2 * _shared(spec, counts),
    }


def _shared(spec: Sizes, counts: Counts) -> Number:
    """Twice the covariance of label and count noise, which see the same n_w (A15)."""
    n, q = counts.per_label, 1 - 1 / spec.length
    return 2 * counts.per_token * (q * (2 * n**3 + 4 * n**2 + n) - n**2 - n)


@dataclass(frozen=True)
class Seeds:
    """The lift (signal over the standard deviation of the scores) over many seeds."""

    lift: np.ndarray
    weight: np.ndarray


def lift_over_seeds(spec: Retrieval, attention: Attention) -> Seeds:
    """Lifts and their weights, by few nodes with the same moments."""
    if not attention.terms:
        return Seeds(np.array([np.inf]), np.array([1.0]))
    return Seeds(*gauss_nodes(*lift_nodes(spec, attention), SEED_NODES))


def lift_nodes(
    spec: Sizes, attention: Attention, norms: int = 3, shifts: int = 7, lengths: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Lifts along the first axis, and their weights, over so many nodes of what varies.

    A seed has one trigger vector and one noise vector. Its signal is |z_trig|^2 plus their overlap,
    which is as large as the overlap of a token with the noise; its overlap noise |z_trig|^2/d
    (A18). `lengths` are nodes of the noise vector's squared length, which accuracy's mean hardly
    depends on.
    """
    noise, overlap = attention.learned_noise, attention.terms["overlap"]
    square, square_weight = squared_norm_nodes(spec, norms)
    shift, shift_weight = normal_nodes(shifts)
    if spec.embedding == "orthonormal":  # the noise lies in the tokens' span, the trigger outside
        shift, shift_weight = np.zeros(1), np.ones(1)
    length, length_weight = np.ones((1, *np.shape(noise))), np.ones(1)
    if lengths:
        length, length_weight = chi_square_nodes(2 / _uneven_noise(spec, attention), lengths)
    across = shift.reshape(-1, *(1,) * np.ndim(noise))
    signal = square[:, None] + np.sqrt(noise + attention.unsteady) * across
    lift = signal[:, :, None] / np.sqrt((overlap * square)[:, None] + noise * length)[:, None]
    weight = square_weight[:, None, None] * shift_weight[:, None] * length_weight
    return lift.reshape(weight.size, *lift.shape[3:]), weight.ravel()


def _uneven_noise(spec: Sizes, attention: Attention) -> Number:
    """Relative variance, from seed to seed, of the learned noise's squared length (A21).

    A vector in d dimensions has 2/d. The mean bias is the mean of the embeddings times a quadratic
    form of label counts over the overlaps of labels, whose square has 8 (1/d + 1/V).
    """
    V, d = spec.vocab, spec.dim
    share = attention.terms.get("mean_bias", 0.0) / np.maximum(attention.learned_noise, 1e-300)
    return 2 / d + share**2 * 8 * (1 / d + 1 / V)


def win_rate(length: Number, lift: np.ndarray, score: np.ndarray) -> np.ndarray:
    """Chance that the informative token, of this score among tokens, beats L - 1 others (A19)."""
    return ndtr(score + lift) ** (length - 1)


def noise_wins(spec: Sizes, lift: np.ndarray, score: np.ndarray) -> np.ndarray:
    """How many training sequences a token of this score wins as a noise token (A20)."""
    others = ndtr(score) ** np.maximum(0, spec.length - 2)
    return spec.samples * (spec.length - 1) / spec.vocab * others * ndtr(score - lift)
