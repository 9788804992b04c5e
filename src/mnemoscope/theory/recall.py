r"""Whether the map is stored: the right label's logit against the best of the others.

Attention that rests on one token writes V2 = (1/N) sum_i (u_{y_i} - mean) z_{t_i}^T. A token x with
n stored right pairs and m wrong ones then has (docs/theory/recall.md)

    right logit    n |u|^2 |z|^2 + s_t g                                                     (B3)
    other logits   s g_y, for V - 1 labels y                                                 (B4)
"""

import numpy as np
from scipy.special import log_ndtr

from mnemoscope.spec import Retrieval
from mnemoscope.theory.attention import Seeds, noise_wins, win_rate
from mnemoscope.theory.quadrature import (
    chi_square_nodes,
    normal_nodes,
    poisson_nodes,
    squared_norm_nodes,
)


class Recall:
    """Accuracy and attention accuracy, seed by seed."""

    def __init__(self, spec: Retrieval, seeds: Seeds) -> None:
        self.weight = seeds.weight
        score, score_weight = normal_nodes(11)
        accuracy, attended = [], []
        perfect: float | None = None
        for lift in seeds.lift.tolist():
            won = win_rate(spec.length, lift, score)
            if won.min() > 1 - 1e-6:  # all tokens alike, whatever the seed
                if perfect is None:
                    perfect = float(map_accuracy(spec, np.ones(1), np.zeros(1), np.ones(1))[0])
                attended.append(1.0)
                accuracy.append(perfect)
                continue
            right = map_accuracy(spec, won, noise_wins(spec, lift, score), score_weight)
            attended.append(float(score_weight @ won))
            accuracy.append(float(score_weight @ (won * right)) + (1 - attended[-1]) / spec.vocab)
        self.accuracy_by_seed = np.array(accuracy)
        self.attention_by_seed = np.array(attended)

    @property
    def accuracy(self) -> float:
        """The mean over seeds."""
        return float(self.weight @ self.accuracy_by_seed)

    @property
    def attention_accuracy(self) -> float:
        """The mean over seeds."""
        return float(self.weight @ self.attention_by_seed)

    def spread(self, vocab: int) -> float:
        """Standard deviation of accuracy from seed to seed: of the attention, and of V tokens."""
        mean = self.accuracy
        seeds = float(self.weight @ (self.accuracy_by_seed - mean) ** 2)
        return float(np.sqrt(seeds + mean * (1 - mean) / vocab))


def map_accuracy(
    spec: Retrieval, won: np.ndarray, wrong: np.ndarray, share: np.ndarray
) -> np.ndarray:
    """For tokens that win these shares of their sequences: the chance that their label is named.

    `wrong` are sequences of other labels in which the token wins, `share` how common such a token
    is.
    """
    V, d = spec.vocab, spec.dim
    mean = spec.samples / V * won
    stored, stored_weight = poisson_nodes(mean)
    if spec.embedding == "orthonormal":  # no overlaps: a label once seen is named (B6)
        return stored_weight @ np.ones(stored.shape[-1]) - np.exp(-mean) * (1 - 1 / V)
    # E n^2 over tokens, and the wrong pairs that the whole memory holds, per token (B2).
    pairs = float(share @ (mean + mean**2))
    errors = float(share @ wrong)
    z2, z2_weight = squared_norm_nodes(spec, 3)
    # How the spread of the other logits varies from token to token (B5).
    c = V / d
    degrees = d * c * (c + 1) ** 2 / (c**3 + 6 * c**2 + 6 * c + 1)
    size, size_weight = chi_square_nodes(degrees, 3)
    g, g_weight = normal_nodes(7)
    # Axes: token, stored, |z|^2, |u|^2, size of the rest, noise of the right logit.
    n = stored[:, :, None, None, None, None]
    m = wrong[:, None, None, None, None, None]
    z = z2[:, None, None, None]
    u = z2[:, None, None]
    f = size[:, None]
    # With the trigger in the values, every pair stores it and every query carries it: a query's
    # squared norm grows by 1, and label counts leak into every logit (C2, C3).
    extra = 1.0 if spec.trigger == "additive" else 0.0
    usual = float(share @ mean)
    uneven = extra * (pairs - usual**2)
    # |V2 z_x|^2 from the pairs of the V - 2 others (B1), and from wrong pairs of x itself.
    rest = (V - 2) * ((pairs + errors) / d * (z + extra) * f + uneven) + m * z**2
    right = n * z * u + extra * (n - usual) * u
    right = right + np.sqrt((rest + extra * n**2 * u) * u / d) * g
    # |V2 z_x|^2 in all: along u_x what the right logit says, across it the rest; and a label's own
    # pair (B4).
    own = pairs * (z + extra) * f / d + uneven
    spread = np.sqrt((right**2 / u + rest * (1 - 1 / d)) / d + own)
    # All V - 1 others below: Phi(right/s)^(V-1).
    ahead = right / spread
    if spec.embedding == "sphere":
        ahead = _normal_quantile(ahead, d)
    named = np.exp((V - 1) * log_ndtr(ahead))
    named = named @ g_weight @ size_weight @ z2_weight @ z2_weight
    return np.sum(named * stored_weight, axis=1)


def _normal_quantile(t: np.ndarray, d: int) -> np.ndarray:
    """The normal number as rare as t, for t = sqrt(d) times a coordinate of a unit vector (B7).

    The coordinate's density is (1 - t^2/d)^((d-3)/2): it ends at sqrt(d), and its tail is lighter.
    """
    inside = np.minimum(t**2 / d, 1 - 1e-12)
    return np.sign(t) * np.sqrt(-(d - 1.5) * np.log1p(-inside))
