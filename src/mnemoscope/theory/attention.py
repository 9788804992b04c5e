r"""Whether attention finds the informative token: its signal, and each noise against it.

Everything is in units of (1/(N L))^2, in which the signal is `trigger_weight`. The variance of the
V token scores is a sum of terms, one for each source (docs/theory/attention.md).
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from mnemoscope.spec import Retrieval
from mnemoscope.theory.counts import Counts, count_moments, trigger_in_values, trigger_weight
from mnemoscope.theory.mlp_gains import Gains, gains
from mnemoscope.theory.quadrature import FINE, Nodes, chi_square_nodes, gauss_nodes, normal_nodes
from mnemoscope.theory.registry import embedding_law, gram_moments
from mnemoscope.theory.spec_grid import Number, Sizes


@dataclass(frozen=True)
class Attention:
    """Signal and noises of the second step. `terms` are variances over the signal squared."""

    signal: Number
    terms: dict[str, Number]
    # Variance of the trigger's weight from seed to seed.
    unsteady: Number = 0.0
    # Variance of the trigger's overlap with the noise.
    across: Number = 0.0

    @property
    def learned_noise(self) -> Number:
        """Score variance that the gradient adds outside the trigger's direction."""
        return sum(value for name, value in self.terms.items() if name != "overlap")


def attention_terms(spec: Sizes) -> Attention:
    """Signal and noise of the scores z_v . alpha."""
    if np.ndim(spec.length) == 0 and spec.length == 1:  # one token: no choice, and no gradient
        return Attention(0.0, {})
    counts, gain = count_moments(spec), gains(spec)
    # One sample says nothing about the trigger; a weight off zero keeps ratios finite. An even
    # activation may turn attention away from a trigger in the values.
    weight, least = trigger_weight(spec, gain), 1e-6 * spec.samples
    weight = np.where(weight < 0, np.minimum(weight, -least), np.maximum(weight, least))
    law = embedding_law(spec.embedding)
    terms = (_overlapping if law.overlapping else _orthonormal)(spec, counts, gain)
    # The trigger's weight varies from seed to seed (A16), and overlaps see its square.
    unsteady = _unsteady(spec, counts, gain)
    terms["overlap"] = (weight**2 + unsteady) / spec.dim * law.overlaps_trigger(spec)
    return Attention(
        signal=weight / (spec.samples * spec.length) ** 2,
        terms={name: value / weight**2 for name, value in terms.items()},
        unsteady=unsteady / weight**2,
        across=_across(spec, terms) / weight**2,
    )


def _across(spec: Sizes, terms: dict[str, Number]) -> Number:
    """Variance of z_trig . Z^T beta over triggers, smaller than that of the scores Z Z^T beta (A18).

    The trigger is independent of the tokens that carry the noise: one power of B = Z Z^T less.
    """
    c = spec.vocab / spec.dim
    law = embedding_law(spec.embedding)
    if not law.overlapping:  # at d = V it is uniform on the sphere
        every = 1.0 * law.overlaps_trigger(spec)
        bias, label = every, every
    else:
        every = c / (1 + c)
        bias = c * (1 + c) / (c**2 + 3 * c + 1)
        label = c * (c**2 + 3 * c + 1) / (c**3 + 6 * c**2 + 6 * c + 1)
    shares = {"mean_bias": bias, "label_noise": label, "overlap": 0.0}
    return sum(value * shares.get(name, every) for name, value in terms.items())


def _unsteady(spec: Sizes, counts: Counts, gain: Gains) -> Number:
    """Variance of the trigger's weight from seed to seed (A16), with the MLP's share (F8)."""
    V, L, d, n = spec.vocab, spec.length, spec.dim, counts.per_label
    both = (gain.linear + _steady(spec, gain)) ** 2 * n * counts.per_token**2
    if not embedding_law(spec.embedding).overlapping:  # overlaps of variance 1/m, none of labels (F10)
        c, overlap = 0.0, gain.inverse_width
        tables = gain.inverse_width * (counts.column + 2 * n**2)
    else:
        gram = gram_moments(spec)
        c, overlap = gram.load, 1 / d + gain.inverse_width
        tables = (1 + c) * counts.column / d + n**2 * (c / d + 2 * (gram.norm2 - 1))
    tables = gain.linear**2 * tables + (1 + c) * both * V * overlap
    own = _by_label(spec, gain, 0.0)
    # Chance overlaps within a sequence, through the constant part (F5).
    own = own + gain.constant**2 * n**2 * (1 + c) * (L - 1) * (L - 2) / L * overlap
    return V * (n**2 * (1 - 1 / L) ** 2 * tables + own) + _uneven_trigger(spec, gain)


def _uneven_trigger(spec: Sizes, gain: Gains) -> Number:
    """Variance of the weight that label counts add to a trigger in the values: of |U^T dn|^2 (C4)."""
    if spec.trigger == "keys":
        return 0.0
    uneven = 2 / spec.vocab + (2 / spec.dim if embedding_law(spec.embedding).overlapping else 0.0)
    return trigger_in_values(spec, gain) ** 2 * uneven


def _steady(spec: Sizes, gain: Gains) -> Number:
    """The constant part where a token meets the mean of its own sequence (F2)."""
    return gain.constant * (1 - 2 / spec.length)


def _overlapping(spec: Sizes, counts: Counts, gain: Gains) -> dict[str, Number]:
    V, d, N, L = spec.vocab, spec.dim, spec.samples, spec.length
    law, gram = embedding_law(spec.embedding), gram_moments(spec)
    c, n, b, column = gram.load, counts.per_label, counts.per_token, counts.column
    linear = gain.linear**2
    # Overlaps as the MLP sees them have variance 1/d + 1/m (F3).
    seen = c + V * gain.inverse_width
    wider = 1 + d * gain.inverse_width
    # How a weight beta_w that holds one overlap of token w enters the scores (A12).
    spread = gram.norm3 + c * gram.norm2 - c / d
    # (A6): the squared weight mu of the constant matrix; (F2): the MLP's share.
    bias = (N * (1 - 1 / V) * b**2) ** 2 * (1 + 2 / (V - 1)) * (1 + 2 / d)
    bias *= _bias_gain(spec, gain) ** 2 * wider
    bias += (N * L * b * gain.drift) ** 2 * d * gain.inverse_width / V  # (F4)
    x = n * c * column + counts.uneven  # (A11)
    label = b**2 * (x * gram.fourth + n**2 * gram.third) * wider
    label += b**2 * x * counts.kept / column * seen * spread
    label *= (gain.linear + _steady(spec, gain)) ** 2  # (F2)
    gradient = linear * seen * counts.kept / column * (counts.alike + column**2 / d)
    gradient += gain.constant**2 * n**2 * (L - 1) * (L - 2) * (1 + c) * seen / V  # (F5)
    through = gain.rest * counts.kept + gain.slopes * n * L
    gradient += through * gain.inverse_width * n * (1 + c)  # (F6)
    # (A14): a column's length in d dimensions; a unit vector's own square is fixed.
    own = 2 * counts.share**2 * n**4 / d if law.unit_norm else 0.0
    length = column * (counts.kept + counts.share**2 * column) / d - own
    length += counts.spread * (1 + law.norm_variance(d))
    mean = (counts.share * column) ** 2
    t2, t3, t4 = gram.norm2, gram.norm3, gram.norm4
    length += mean * 2 * gain.inverse_width
    uneven = _by_label(spec, gain, x - counts.per_label**3 * (1 + c) + (N * b) ** 2)
    return {
        "mean_bias": bias * gram.third,
        "label_noise": label,
        "gradient_noise": gradient * spread,  # (A13)
        "count_noise": linear * (mean * (t4 - 2 * t3 + t2 + c * (t3 - 2 * t2 + 1)) + length * (t4 + c * t3))
        + (uneven + _with_trigger(spec, gain, c)) * (1 + c),
        "label_and_count": linear * _shared(spec, counts) * (c**2 + 3 * c + 1),
    }


def _bias_gain(spec: Sizes, gain: Gains) -> Number:
    """Amplitude of the mean bias (F2): L - 2 of L - 1 tokens stand beside the two that meet."""
    return gain.linear + (gain.constant + gain.own) * (spec.length - 2) / np.maximum(spec.length - 1, 1)


def _by_label(spec: Sizes, gain: Gains, noise: Number) -> Number:
    """Variance of the constant part's weight on a token, through |z|^2 (F8).

    The squared weight is that of n_y a_y where the token is informative, and `noise` elsewhere.
    """
    n, uneven = spec.samples / spec.vocab, 2 * gain.inverse_width
    load = 0.0
    if embedding_law(spec.embedding).overlapping:
        gram = gram_moments(spec)
        load, uneven = gram.load, uneven + gram.norm2 - 1
    own, kept = n**3 * (1 + load), (1 - 1 / spec.length) ** 2
    return kept * gain.constant**2 * (own + noise) * uneven


def _with_trigger(spec: Sizes, gain: Gains, load: Number) -> Number:
    """A trigger in the values meets itself where its token is informative, adding n_y a_y (C4)."""
    if spec.trigger == "keys":
        return 0.0
    n = spec.samples / spec.vocab
    return ((gain.linear + gain.constant) * (1 - 1 / spec.length)) ** 2 * n**3 * (1 + load)


def _orthonormal(spec: Sizes, counts: Counts, gain: Gains) -> dict[str, Number]:
    """Without overlaps: noise of the counts (A17), and of an MLP's finite width (F10)."""
    V, N, L, n, b = spec.vocab, spec.samples, spec.length, counts.per_label, counts.per_token
    narrow, column = gain.inverse_width, counts.column
    seen, linear, both = V * narrow, gain.linear**2, gain.linear + _steady(spec, gain)
    mean = (counts.share * column) ** 2
    terms = {
        "label_noise": both**2 * b**2 * counts.uneven * (1 + seen * (1 + counts.kept / column)),
        "count_noise": linear * (counts.spread + 2 * mean * narrow)
        + _by_label(spec, gain, counts.uneven - n**3 + (N * b) ** 2)
        + _with_trigger(spec, gain, 0.0),
        "label_and_count": linear * _shared(spec, counts),
    }
    if np.any(narrow):
        bias = (N * (1 - 1 / V) * b**2 * _bias_gain(spec, gain)) ** 2 * (1 + 2 / (V - 1))
        terms["mean_bias"] = bias * seen + (N * L * b * gain.drift) ** 2 * narrow
        terms["gradient_noise"] = (
            linear * seen * counts.kept / column * counts.alike
            + gain.constant**2 * n**2 * (L - 1) * (L - 2) * narrow
            + (gain.rest * counts.kept + gain.slopes * n * L) * n * narrow
        )
    return terms


def _shared(spec: Sizes, counts: Counts) -> Number:
    """Twice the covariance of label noise and count noise, which share n_w (A15)."""
    n, q = counts.per_label, 1 - 1 / spec.length
    return 2 * counts.per_token * (q * (2 * n**3 + 4 * n**2 + n) - n**2 - n)


@dataclass(frozen=True)
class Seeds:
    """The lift, signal over the standard deviation of the scores, at nodes over seeds."""

    lift: np.ndarray
    weight: np.ndarray


def lift_over_seeds(spec: Retrieval, attention: Attention) -> Seeds:
    """A few lifts and weights with the same moments as those of `lift_nodes`."""
    if not attention.terms:
        return Seeds(np.array([np.inf]), np.array([1.0]))
    return Seeds(*gauss_nodes(*lift_nodes(spec, attention), FINE.seeds))


def lift_nodes(spec: Sizes, attention: Attention, norms: int = 3, shifts: int = 5, lengths: int = 0) -> Nodes:
    """Lifts along the first axis, and their weights, with this many nodes per variable.

    A seed has one trigger vector, one weight on it and one noise vector. The signal is
    weight |z_trig|^2 plus the trigger's overlap with the noise, the overlap noise is
    weight^2 |z_trig|^2/d (A18). `lengths` counts nodes of the noise vector's squared length, on
    which mean accuracy hardly depends.
    """
    noise, d = attention.learned_noise, spec.dim
    law = embedding_law(spec.embedding)
    square, square_weight = law.squared_norm_nodes(d, norms)
    shift, shift_weight = normal_nodes(shifts)
    length, length_weight = np.ones((1, *np.shape(noise))), np.ones(1)
    if lengths:
        length, length_weight = chi_square_nodes(2 / _uneven_noise(spec, attention), lengths)
    # Axes: the noise's length, |z_trig|^2, the trigger's overlap with the noise, its weight.
    ends = (1,) * np.ndim(noise)
    length, square = length[:, None, None, None], square[:, None, None]
    # The weight in units of its mean's magnitude; the mean may be negative.
    weight = np.sign(attention.signal) + np.sqrt(attention.unsteady) * shift.reshape(-1, *ends)
    across = np.sqrt(attention.across) * shift.reshape(-1, 1, *ends)
    lift = (square * weight + across) / np.sqrt(law.overlaps_trigger(spec) * square * weight**2 / d + noise * length)
    share = length_weight[:, None, None, None] * square_weight[:, None, None]
    share = share * shift_weight[:, None] * shift_weight
    return lift.reshape(share.size, *lift.shape[4:]), share.ravel()


def _uneven_noise(spec: Sizes, attention: Attention) -> Number:
    """Relative variance, from seed to seed, of the learned noise's squared length (A21).

    For a vector in d dimensions it is 2/d. The mean bias is the mean embedding times a quadratic
    form of label counts in the label overlaps; its square has relative variance 8 (1/d + 1/V).
    """
    V, d = spec.vocab, spec.dim
    share = attention.terms.get("mean_bias", 0.0) / np.maximum(attention.learned_noise, 1e-300)
    return 2 / d + share**2 * 8 * (1 / d + 1 / V)


def win_rate(length: Number, lift: np.ndarray, score: np.ndarray) -> np.ndarray:
    """The chance that an informative token of this score beats L - 1 others (A19)."""
    return ndtr(score + lift) ** (length - 1)


def attended_by_seed(length: Number, seeds: Seeds) -> np.ndarray:
    """The share of sequences in which attention is right, at each node over seeds."""
    score, score_weight = normal_nodes(FINE.scores)
    return win_rate(length, seeds.lift[:, None], score) @ score_weight


def noise_wins(spec: Sizes, lift: np.ndarray, score: np.ndarray) -> np.ndarray:
    """The number of training sequences that a token of this score wins as noise (A20)."""
    others = ndtr(score) ** np.maximum(0, spec.length - 2)
    return spec.samples * (spec.length - 1) / spec.vocab * others * ndtr(score - lift)
