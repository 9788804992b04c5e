r"""Can a model tell what it was shown from what it was not? The lead of its first label over its second.

A token asked for with attention on it has V logits. One that was never informative has interference alone: its logits
are independent draws of a mixture of normal laws, since label k's own pair, stored n_k times, adds a variance n_k^2
times an overlap's. One that was informative, and won n times, has its own label's logit r ~ N(n own |u|^2, v^2)
besides (docs/theory/recall.md, "Confidence"). With F and f the mixture's function and density, the lead exceeds g with
the chance

    unseen   V int f(t) F(t - g)^(V-1) dt                                                                     (K1)
    seen     int f_r(t) F(t - g)^(V-1) dt + (V - 1) int f(t) F(t - g)^(V-2) F_r(t - g) dt                     (K2)

and AUC is the chance that a seen token's lead exceeds an unseen one's. A token's norm scales all of its logits, so
both are averaged over norms. Ours; the confidence is a lead of logits, since the model's scale has no limit.
"""

import math

import numpy as np
from scipy.special import ndtr

from mnemoscope.spec import Retrieval
from mnemoscope.spec.token_laws import UNIFORM
from mnemoscope.theory.kernel import kernel
from mnemoscope.theory.predict import solve
from mnemoscope.theory.quadrature import chi_square_nodes, poisson_nodes
from mnemoscope.theory.registry import embedding_law, not_derived

# Nodes over leads and over logits.
LEADS, LOGITS = 64, 96


def predicted_auc(spec: Retrieval) -> float | None:
    """The chance that a seen token's lead exceeds an unseen one's; None where it is not derived."""
    if not_derived(spec) or spec.tokens != UNIFORM or spec.hidden or spec.trigger != "keys":
        return None
    if not embedding_law(spec.embedding).overlapping:
        return None
    _, recall = solve(spec)
    V, d, law = spec.vocab, spec.dim, embedding_law(spec.embedding)
    mean = spec.samples / V
    stored, lost = mean * recall.attention_accuracy, mean * (1 - recall.attention_accuracy)
    counts, count_weight = (part.ravel() for part in poisson_nodes(np.array([stored]), 12))
    never = math.exp(-mean)
    # Given that it was seen: a count of zero means that attention lost the token every time.
    seen_weight = np.where(counts == 0, count_weight * (1 - math.exp(-lost)), count_weight) / (1 - never)
    overlaps = kernel(spec)
    label, label_weight = (np.ravel(part) for part in law.squared_norm_nodes(d, 3))
    c = V / d
    size, size_weight = chi_square_nodes(d * c * (c + 1) ** 2 / (c**3 + 6 * c**2 + 6 * c + 1), 3)
    pairs = stored + stored**2 + lost  # E n^2, and wrong pairs
    others, other_weight = (part.ravel() for part in poisson_nodes(np.array([stored]), 6))
    # Unseen tokens' leads end where the chance of a larger one is about V^-4.
    largest = V / d * float(np.max(size)) * pairs + np.max(others) ** 2
    leads = np.linspace(0, 4 * math.sqrt(largest * float(np.max(overlaps.variance))), LEADS)
    unseen, seen = np.zeros(LEADS), np.zeros(LEADS)
    for own, variance, weight in zip(overlaps.own, overlaps.variance, overlaps.weight, strict=True):
        for f, f_weight in zip(np.ravel(size), size_weight, strict=True):
            rest = V * pairs * float(variance) * f  # |V2 f_x|^2 from the pairs of the others
            share = float(weight) * f_weight

            def law_of(more: float, rest: float = rest, variance: float = float(variance)) -> Mixture:
                return Mixture(np.sqrt((rest + more) / d + others**2 * variance), other_weight)

            unseen += share * _unseen(leads, law_of(0.0), V)
            for n, n_weight in zip(counts, seen_weight, strict=True):
                for u, u_weight in zip(label, label_weight, strict=True):
                    right = n * float(own) * u, math.sqrt(rest * u / d)
                    seen += share * n_weight * u_weight * _seen(leads, *right, law_of((n * float(own)) ** 2 * u), V)
    # -int S_seen dS_unseen, by the trapezoid rule.
    return float(np.clip(np.sum((seen[1:] + seen[:-1]) / 2 * -np.diff(unseen)) / (unseen[0] - unseen[-1]), 0, 1))


class Mixture:
    """Normal laws of mean 0: their standard deviations, and how common each is."""

    def __init__(self, spreads: np.ndarray, weights: np.ndarray) -> None:
        self.spreads, self.weights = spreads, weights / weights.sum()
        widest = float(spreads.max())
        self.nodes = np.linspace(-widest, 7 * widest, LOGITS)

    def density(self, t: np.ndarray) -> np.ndarray:
        return _normal(t[..., None], self.spreads) @ self.weights

    def below(self, t: np.ndarray) -> np.ndarray:
        return ndtr(t[..., None] / self.spreads) @ self.weights


def _normal(t: np.ndarray, spread: np.ndarray | float) -> np.ndarray:
    return np.exp(-((t / spread) ** 2) / 2) / (spread * math.sqrt(2 * math.pi))


def _unseen(leads: np.ndarray, law: Mixture, V: int) -> np.ndarray:
    """(K1)."""
    t = law.nodes
    return V * np.trapezoid(law.density(t) * law.below(t - leads[:, None]) ** (V - 1), t, axis=1)


def _seen(leads: np.ndarray, mean: float, width: float, law: Mixture, V: int) -> np.ndarray:
    """(K2)."""
    width = max(width, 1e-9 * law.nodes[-1])
    t = mean + width * np.linspace(-5, 5, LOGITS // 4)
    first = np.trapezoid(_normal(t - mean, width) * law.below(t - leads[:, None]) ** (V - 1), t, axis=1)
    t = law.nodes
    rivals = law.below(t - leads[:, None]) ** (V - 2) * ndtr((t - leads[:, None] - mean) / width)
    return first + (V - 1) * np.trapezoid(law.density(t) * rivals, t, axis=1)
