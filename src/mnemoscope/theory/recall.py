r"""Whether the map is stored: the right label's logit against the best of the others.

Attention on one token writes V2 = (1/N) sum_i (u_{y_i} - mean) f_{t_i}^T, with f the features that
the values see. A token x with n right pairs stored then has (docs/theory/recall.md)

    right logit    n own |u|^2 + s_t g                                                       (B3)
    other logits   s g_y, for V - 1 labels y                                                 (B4)
"""

import math

import numpy as np
from scipy.special import ndtr

from mnemoscope.spec import Retrieval
from mnemoscope.theory.attention import Seeds, attended_by_seed, noise_wins, win_rate
from mnemoscope.theory.frame import named_in_frame
from mnemoscope.theory.kernel import Kernel, kernel
from mnemoscope.theory.quadrature import (
    FINE,
    Nodes,
    Quadrature,
    chi_square_nodes,
    even_counts,
    gamma_nodes,
    nodes_first,
    normal_nodes,
    poisson_nodes,
)
from mnemoscope.theory.registry import embedding_law
from mnemoscope.theory.spec_grid import Number, Sizes

# Nodes for the tails of overlaps where labels are orthonormal.
APART_TAILS = 6


class Recall:
    """Accuracy and attention accuracy, by seed and averaged over seeds."""

    def __init__(self, spec: Retrieval, seeds: Seeds) -> None:
        self.weight, self.lift = seeds.weight, seeds.lift
        score, score_weight = normal_nodes(FINE.scores)
        won = win_rate(spec.length, seeds.lift[:, None], score)
        attended = attended_by_seed(spec.length, seeds)
        if won.min() > 1 - 1e-6:  # the same for all tokens and seeds
            named = map_accuracy(spec, np.ones((1, 1)), np.zeros((1, 1)), np.ones(1))
            right = np.broadcast_to(named[:, 0], attended.shape)
        else:
            wrong = noise_wins(spec, seeds.lift[:, None], score)
            right = (won * map_accuracy(spec, won, wrong, score_weight)) @ score_weight
        # Quadrature over counts may step over zero, so tokens never seen cap the accuracy (D3).
        seen = 1 - math.exp(spec.samples * math.log1p(-1 / spec.vocab))
        named = np.minimum(right + (1 - attended) / spec.vocab, seen + 1 / spec.vocab)
        self.accuracy_by_seed = np.minimum(named, 1.0)
        self.attention_by_seed = attended
        self.accuracy = float(self.weight @ self.accuracy_by_seed)
        self.attention_accuracy = float(self.weight @ attended)


def map_accuracy(spec: Retrieval, won: np.ndarray, wrong: np.ndarray, share: np.ndarray) -> np.ndarray:
    """The chance that a token's label is named, given the share of its sequences that the token wins.

    Rows are seeds, columns are tokens. `wrong` counts the sequences of other labels in which the
    token wins, `share` says how common such a token is.
    """
    mean = spec.samples / spec.vocab * won
    apart = not embedding_law(spec.embedding).overlapping
    if apart and not spec.hidden:
        if spec.trigger == "additive":
            return named_in_frame(mean, (mean @ share)[:, None], spec.vocab)  # (B9)
        return 1 - np.exp(-mean) * (1 - 1 / spec.vocab)  # one sighting is enough (B6)
    stored, stored_weight = even_counts(mean, FINE.steps) if apart else nodes_first(poisson_nodes(mean, FINE.stored))
    # E n^2 over tokens, and the wrong pairs in the whole memory, per token (B2).
    usual = (mean @ share)[:, None]
    memory = Memory(
        usual=usual,
        pairs=((mean + mean**2) @ share)[:, None],
        errors=(wrong @ share)[:, None],
        others=even_counts(usual, FINE.steps) if apart else nodes_first(poisson_nodes(usual, FINE.others)),
    )
    named = named_right(spec, kernel(spec), memory, stored, wrong, FINE)
    return np.sum(named * stored_weight, axis=0)


class Memory:
    """What is stored, by seed: a pair's mean count and mean squared count, and wrong pairs.

    `others` holds nodes and weights of the counts of other labels (B4).
    """

    def __init__(self, usual: np.ndarray, pairs: np.ndarray, errors: np.ndarray, others: Nodes) -> None:
        counts, self.weights = others
        square = np.sum(counts**2 * self.weights, axis=0)
        self.counts = counts * np.sqrt(pairs / square)
        self.usual, self.pairs, self.errors = usual, pairs, errors
        self.uneven = pairs - usual**2
        # A label's count less the mean, and the variance that the nodes leave out.
        self.excess = counts - np.sum(counts * self.weights, axis=0)
        covered = np.sum(self.excess**2 * self.weights, axis=0)
        self.left = np.maximum(self.uneven - covered, 0.0)


def named_right(
    spec: Sizes, overlaps: Kernel, memory: Memory, n: np.ndarray, wrong: np.ndarray, nodes: Quadrature
) -> np.ndarray:
    """The chance that V - 1 other logits stay below the right one, for n stored pairs.

    `n` has its nodes along the first axis, followed by the axes of `wrong`: many settings, or the
    seeds and tokens of one.
    """
    law = embedding_law(spec.embedding)
    if not law.overlapping:
        return _named_apart(spec, overlaps, memory, n, wrong)
    V, d = spec.vocab, spec.dim
    g, g_weight = normal_nodes(nodes.noise)
    # Axes: other labels, noise, stored pairs, and the shape of `wrong`.
    g = g.reshape(-1, *(1,) * n.ndim)
    label, label_weight = law.squared_norm_nodes(d, nodes.label)
    # Degrees of freedom in the spread of the other logits (B5).
    c = V / d
    degrees = d * c * (c + 1) ** 2 / (c**3 + 6 * c**2 + 6 * c + 1)
    total = np.zeros(np.broadcast_shapes(n.shape, wrong.shape))
    for at, (own, mean, variance, weight) in enumerate(
        zip(overlaps.own, overlaps.mean, overlaps.variance, overlaps.weight, strict=True)
    ):
        # A sum of V squares varies more where overlaps have heavy tails.
        heavy = 0.0 if overlaps.kurtosis is None else overlaps.kurtosis[at] / (2 * V)
        size, size_weight = chi_square_nodes(1 / (1 / degrees + heavy), nodes.size)
        # Uneven label counts leak through what all overlaps share (C2).
        leak = memory.uneven * mean**2
        counts, excess, lean, factor, weights = _competing(memory, overlaps, at, nodes.tails)
        pair = counts**2 * factor * variance + memory.left * mean**2
        # A competing label's own share in that leak follows from its count (C2).
        ahead_of = excess * mean + counts * lean * np.sqrt(variance)
        for f, f_weight in zip(size, size_weight, strict=True):
            # |V2 f_x|^2 from the pairs of the V - 2 others (B1), and from x's own wrong pairs.
            stored = (memory.pairs + memory.errors) * variance * f + leak
            rest = (V - 2) * stored + wrong * own**2
            for u, u_weight in zip(label, label_weight, strict=True):
                right = (n * (own - mean) + mean * (n - memory.usual)) * u
                right = right + np.sqrt(rest * u / d) * g
                # The part along u_x follows from the right logit, the rest lies across it (B4).
                shared = right**2 / (u * d) + rest * (1 - 1 / d) / d
                # With two tokens there may be no noise at all.
                ahead = (right - ahead_of) / np.sqrt(np.maximum(shared + pair, 1e-300))
                if law.bounded:
                    ahead = normal_quantile(ahead, d)
                # All V - 1 others stay below, each with its own count: a product of Phi(right/s).
                below = np.sum(weights * nodes.log_phi(ahead), axis=0)
                named = np.tensordot(g_weight, np.exp((V - 1) * below), 1)
                total += named * (weight * f_weight * u_weight)
    return total


def _named_apart(spec: Sizes, overlaps: Kernel, memory: Memory, n: np.ndarray, wrong: np.ndarray) -> np.ndarray:
    """`named_right` for orthonormal labels, where label y has the logit n_y k(y, x) (B15)."""
    total = np.zeros(np.broadcast_shapes(n.shape, wrong.shape))
    for at, (own, mean, variance, weight) in enumerate(
        zip(overlaps.own, overlaps.mean, overlaps.variance, overlaps.weight, strict=True)
    ):
        counts, _, lean, factor, weights = (part[:, 0] for part in _competing(memory, overlaps, at, APART_TAILS))
        spread = (counts**2 + memory.errors) * factor * variance + wrong * own**2 / spec.vocab
        lead = n * own - counts * (mean + lean * np.sqrt(variance))
        ahead = lead / np.sqrt(np.maximum(spread, 1e-300))
        below = np.sum(weights * ndtr(ahead), axis=0)
        total += weight * below ** (spec.vocab - 1)
    return total


def _competing(memory: Memory, overlaps: Kernel, at: int, count: int) -> tuple[np.ndarray, ...]:
    """Competing labels: counts, excess over the mean, the overlaps' lean and variance factor, weights.

    A skewed overlap with heavy tails is normal given a gamma number f of mean 1: of mean
    lambda (f - 1) and variance (1 - r) f, in units of its standard deviation (B14).
    """
    counts, excess, weights = (part[:, None, None] for part in (memory.counts, memory.excess, memory.weights))
    if overlaps.kurtosis is None or overlaps.skewness is None:
        none = np.zeros((1,) * counts.ndim)
        return counts, excess, none, none + 1, weights
    skewness, kurtosis = overlaps.skewness[at], np.maximum(overlaps.kurtosis[at], 1e-6)
    # With light tails, a larger r would only imitate a normal law with a few nodes.
    r = np.minimum(np.interp(skewness**2 / kurtosis, _LEANING, _SHARES), kurtosis)
    variance = kurtosis / (3 * (1 + 2 * r - r**2))
    factor, share = gamma_nodes(variance, count)
    lean = np.sign(skewness) * np.sqrt(r / variance) * (factor - 1)
    parts = [
        np.broadcast_arrays(counts, excess, lean[j], (1 - r) * factor[j], weights * share[j]) for j in range(count)
    ]
    return tuple(np.concatenate(column) for column in zip(*parts, strict=True))


# Shares r of the variance in the lean, and the skewness^2 over excess kurtosis that they give (B14).
_SHARES = np.linspace(0, 0.5, 51)
_LEANING = _SHARES * (3 - _SHARES) ** 2 / (3 * (1 + 2 * _SHARES - _SHARES**2))


def normal_quantile(t: np.ndarray, d: Number) -> np.ndarray:
    """The normal number as rare as t, where t is sqrt(d) times a coordinate of a unit vector (B7).

    The density of t is (1 - t^2/d)^((d-3)/2): it ends at sqrt(d), and its tail is lighter.
    """
    inside = np.minimum(t**2 / d, 1 - 1e-12)
    return np.sign(t) * np.sqrt(-np.maximum(d - 1.5, 0.5) * np.log1p(-inside))
