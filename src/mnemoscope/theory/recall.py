r"""Whether the map is stored: the right label's logit against the best of the others.

Attention that rests on one token writes V2 = (1/N) sum_i (u_{y_i} - mean) f_{t_i}^T, with f the
features that the values see. A token x with n stored right pairs and m wrong ones then has
(docs/theory/recall.md)

    right logit    n own |u|^2 + s_t g                                                       (B3)
    other logits   s g_y, for V - 1 labels y                                                 (B4)
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import log_ndtr

from mnemoscope.spec import Retrieval
from mnemoscope.theory.attention import Seeds, noise_wins, win_rate
from mnemoscope.theory.cells import Number, Sizes
from mnemoscope.theory.frame import named_in_frame
from mnemoscope.theory.kernel import Kernel, kernel
from mnemoscope.theory.quadrature import (
    Nodes,
    chi_square_nodes,
    normal_nodes,
    poisson_nodes,
    squared_norm_nodes,
)

# Nodes for the stored pairs of a token.
STORED = 8


@dataclass(frozen=True)
class Fineness:
    """How many nodes stand for what varies from token to token.

    The stored pairs of competing labels, the noise in the right logit, the labels' squared norms,
    and the spread of the other logits; and how ln Phi is found.
    """

    others: int = 5
    noise: int = 5
    label: int = 2
    size: int = 2
    log_phi: Callable[[np.ndarray], np.ndarray] = log_ndtr


FINE = Fineness()


class Recall:
    """Accuracy and attention accuracy, seed by seed."""

    def __init__(self, spec: Retrieval, seeds: Seeds) -> None:
        self.weight, self.lift = seeds.weight, seeds.lift
        score, score_weight = normal_nodes(7)
        won = win_rate(spec.length, seeds.lift[:, None], score)
        attended = won @ score_weight
        if won.min() > 1 - 1e-6:  # all tokens alike, whatever the seed
            named = map_accuracy(spec, np.ones((1, 1)), np.zeros((1, 1)), np.ones(1))
            right = np.broadcast_to(named[:, 0], attended.shape)
        else:
            wrong = noise_wins(spec, seeds.lift[:, None], score)
            right = (won * map_accuracy(spec, won, wrong, score_weight)) @ score_weight
        # Quadrature over counts may step over zero: what was never seen caps it (D3).
        seen = 1 - math.exp(spec.samples * math.log1p(-1 / spec.vocab))
        named = np.minimum(right + (1 - attended) / spec.vocab, seen + 1 / spec.vocab)
        self.accuracy_by_seed = np.minimum(named, 1.0)
        self.attention_by_seed = attended

    @property
    def accuracy(self) -> float:
        """The mean over seeds."""
        return float(self.weight @ self.accuracy_by_seed)

    @property
    def attention_accuracy(self) -> float:
        """The mean over seeds."""
        return float(self.weight @ self.attention_by_seed)


def map_accuracy(
    spec: Retrieval, won: np.ndarray, wrong: np.ndarray, share: np.ndarray
) -> np.ndarray:
    """For tokens that win these shares of their sequences: the chance that their label is named.

    Rows are seeds, columns are tokens. `wrong` are sequences of other labels in which the token
    wins, `share` how common such a token is.
    """
    mean = spec.samples / spec.vocab * won
    if spec.embedding == "orthonormal" and not spec.width:
        if spec.trigger == "additive":
            return named_in_frame(mean, (mean @ share)[:, None], spec.vocab)  # (B9)
        # A label once seen is named (B6).
        return 1 - np.exp(-mean) * (1 - 1 / spec.vocab)
    stored, stored_weight = _first(poisson_nodes(mean, STORED))
    # E n^2 over tokens, and the wrong pairs that the whole memory holds, per token (B2).
    usual = (mean @ share)[:, None]
    memory = Memory(
        usual=usual,
        pairs=((mean + mean**2) @ share)[:, None],
        errors=(wrong @ share)[:, None],
        others=_first(poisson_nodes(usual, FINE.others)),
    )
    named = named_right(spec, kernel(spec), memory, stored, wrong, FINE)
    return np.sum(named * stored_weight, axis=0)


def _first(nodes: Nodes) -> Nodes:
    """With the nodes along the first axis, as all are below."""
    return np.moveaxis(nodes[0], -1, 0), np.moveaxis(nodes[1], -1, 0)


class Memory:
    """What is stored, seed by seed: the mean count of a pair, its square's, and wrong pairs.

    Other labels have counts of their own, nodes and weights of which are `others` (B4).
    """

    def __init__(
        self, usual: np.ndarray, pairs: np.ndarray, errors: np.ndarray, others: Nodes
    ) -> None:
        counts, self.weights = others
        square = np.sum(counts**2 * self.weights, axis=0)
        self.squares = counts**2 * (pairs / square)
        self.usual, self.pairs, self.errors = usual, pairs, errors
        self.uneven = pairs - usual**2


def named_right(
    spec: Sizes, found: Kernel, memory: Memory, n: np.ndarray, wrong: np.ndarray, fine: Fineness
) -> np.ndarray:
    """The chance that V - 1 other logits stay below the right one, for n stored pairs.

    `n` has its nodes along the first axis, and then the shape of `wrong`, with which the rest goes
    together: arrays of settings, or one setting's seeds and tokens.
    """
    V, d = spec.vocab, spec.dim
    g, g_weight = normal_nodes(fine.noise)
    # Axes: other labels, noise, stored pairs, and the shape of `wrong`.
    g = g.reshape(-1, *(1,) * n.ndim)
    squares, weights = memory.squares[:, None, None], memory.weights[:, None, None]
    label, label_weight = squared_norm_nodes(spec, fine.label)
    # How the spread of the other logits varies from token to token (B5).
    c = V / d
    degrees = d * c * (c + 1) ** 2 / (c**3 + 6 * c**2 + 6 * c + 1)
    size, size_weight = chi_square_nodes(degrees, fine.size)
    total = np.zeros(np.broadcast_shapes(n.shape, wrong.shape))
    for own, mean, variance, weight in zip(
        found.own, found.mean, found.variance, found.weight, strict=True
    ):
        # Uneven label counts, through what all overlaps share (C2).
        leak = memory.uneven * mean**2
        pair = squares * variance + leak
        for f, f_weight in zip(size, size_weight, strict=True):
            # |V2 f_x|^2 from the pairs of the V - 2 others (B1), and from wrong pairs of x itself.
            stored = (memory.pairs + memory.errors) * variance * f + leak
            rest = (V - 2) * stored + wrong * own**2
            for u, u_weight in zip(label, label_weight, strict=True):
                right = (n * (own - mean) + mean * (n - memory.usual)) * u
                right = right + np.sqrt(rest * u / d) * g
                # Along u_x what the right logit says, across it the rest (B4).
                shared = right**2 / (u * d) + rest * (1 - 1 / d) / d
                # Two tokens may leave no noise at all.
                ahead = right / np.sqrt(np.maximum(shared + pair, 1e-300))
                if spec.embedding == "sphere":
                    ahead = normal_quantile(ahead, d)
                # All V - 1 others below, each with its own count: the product of Phi(right/s).
                below = np.sum(weights * fine.log_phi(ahead), axis=0)
                named = np.tensordot(g_weight, np.exp((V - 1) * below), 1)
                total += named * (weight * f_weight * u_weight)
    return total


def normal_quantile(t: np.ndarray, d: Number) -> np.ndarray:
    """The normal number as rare as t, for t = sqrt(d) times a coordinate of a unit vector (B7).

    The coordinate's density is (1 - t^2/d)^((d-3)/2): it ends at sqrt(d), and its tail is lighter.
    """
    inside = np.minimum(t**2 / d, 1 - 1e-12)
    return np.sign(t) * np.sqrt(-np.maximum(d - 1.5, 0.5) * np.log1p(-inside))
