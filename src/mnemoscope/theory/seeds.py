r"""How accuracy varies from seed to seed: the interval that holds 95 % of seeds.

A seed's accuracy is the mean over V tokens of what the map names, measured on T sequences. Tokens
of one seed are not independent: they share attention's lift, the number of samples, and wherever
overlaps have a mean (the trigger in the values, an activation's constant part) the logits that
uneven label counts leak into every query (docs/theory/recall.md, "The interval over seeds").

    variance = V^-1 (tokens - counts) + shared + A (1 - A)/T,    at a given lift             (S1)
    interval = quantiles of Beta laws with these moments, mixed over lifts                   (S2)

Nothing is fitted.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import betainc, log_ndtr, ndtr

from mnemoscope.spec import Retrieval
from mnemoscope.theory.attention import Attention, lift_nodes, win_rate
from mnemoscope.theory.common import common_overlap
from mnemoscope.theory.kernel import kernel
from mnemoscope.theory.quadrature import (
    chi_square_nodes,
    combine,
    gauss_nodes,
    normal_nodes,
    poisson_nodes,
)
from mnemoscope.theory.recall import Recall

LEVEL = 0.95
# Nodes over a token's stored pairs and the noise in its right logit, over each of the two sizes of
# what queries share, and of the latter together; over what a lift depends on.
STORED, NOISE, SIZE, SIZES, LIFTS = 8, 7, 3, 5, (3, 31, 3)
# Nodes over a token's score.
SCORES = 7
# Nodes of the integral in a bivariate normal law.
ARCS = 12
# Halvings that solve an equation.
HALVINGS = 40


@dataclass(frozen=True)
class Logits:
    """A token's right logit over the wrong ones' spread, and what all queries of a seed share.

    The right logit is `signal` times a scale near 1, plus `noise`; `count` is the stored pairs that
    are in it, `weight` how common such a token is. `shared` is the part of a wrong logit's variance
    that is the same for every query; `size` and `chance` are its sizes over seeds. Of a token's
    label other queries expect the logit `seen`, which leaves less by `known` of the variance.
    """

    signal: np.ndarray
    noise: np.ndarray
    count: np.ndarray
    weight: np.ndarray
    shared: float
    size: np.ndarray
    chance: np.ndarray
    seen: np.ndarray
    known: np.ndarray


def interval(spec: Retrieval, attention: Attention, recall: Recall) -> tuple[float, float]:
    """What holds 95 % of seeds' accuracies, from 2.5 % on each side."""
    accuracy, variance = recall.accuracy_by_seed, _by_lift(spec, recall)
    weight = recall.weight
    if len(weight) > 1:  # between the lifts at which accuracy is known
        lift, weight = lift_nodes(spec, attention, *LIFTS)
        order = np.argsort(recall.lift)
        known = recall.lift[order]
        accuracy, variance = (np.interp(lift, known, part[order]) for part in (accuracy, variance))
    tail = (1 - LEVEL) / 2
    low, high = (_quantile(share, accuracy, variance, weight) for share in (tail, 1 - tail))
    # Accuracy is a whole number of hits: an end between two of them holds the next one.
    step = 1 / spec.test_samples
    return max(0.0, np.floor(low / step) * step), min(1.0, np.ceil(high / step) * step)


def _by_lift(spec: Retrieval, recall: Recall) -> np.ndarray:
    """The variance between seeds of one lift (S1)."""
    V, T = spec.vocab, spec.test_samples
    score, score_weight = normal_nodes(SCORES)
    found = []
    for lift, accuracy, attended in zip(
        recall.lift, recall.accuracy_by_seed, recall.attention_by_seed, strict=True
    ):
        named = min(accuracy / attended, 1.0) if attended else 0.0
        shared, counts = _shared(spec, attended, named)
        # A token that is named counts as often as it wins.
        often = (
            win_rate(spec.length, np.array(lift), score) ** 2 @ score_weight / max(attended, 1e-9)
        )
        tokens = max(0.0, accuracy * (often - accuracy) - attended**2 * counts) / V
        found.append(tokens + attended**2 * shared + accuracy * (1 - accuracy) / T)
    return np.array(found)


def _shared(spec: Retrieval, attended: float, named: float) -> tuple[float, float]:
    """What tokens share through leaked logits (S5), and what the sum of all counts takes (S3)."""
    V, n = spec.vocab, spec.samples / spec.vocab * attended
    if spec.embedding == "orthonormal" and not spec.width:
        return 0.0, n * np.exp(-2 * n)  # (B6): a count of 0 is all that matters
    if not 1e-9 < named < 1 - 1e-9:
        return 0.0, 0.0
    logits = _logits(spec, n)
    # (B3) and (B4) with moments for nodes: the signal's scale makes up for what that leaves out.
    low, high = 0.0, 8.0
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        below = float(_named(spec, logits, middle) @ logits.weight) < named
        low, high = (middle, high) if below else (low, middle)
    scale = (low + high) / 2
    # The counts of all tokens add up to N (S3).
    together = float((_named(spec, logits, scale) * (logits.count - n)) @ logits.weight)
    counts = together**2 / n
    if logits.shared < 1e-6:
        return 0.0, counts
    right, both = scale * logits.signal + logits.noise, 0.0
    for size, chance in zip(logits.size, logits.chance, strict=True):
        # Over the wrong logits' spread of this seed; the own pair's part of it is not shared (B4).
        wide = 1 + logits.shared * (size - 1) + right**2 / spec.dim
        level = right / np.sqrt(wide)
        rho = logits.shared * size / np.sqrt(wide[:, None] * wide)
        below = bivariate_normal(level[:, None], level, np.minimum(rho, 0.999)) ** (V - 2)
        # Each token's label is a wrong one for the other, which sees the shared part of it (S7).
        left = np.maximum(wide[:, None] - logits.known * size, 1e-3 * wide[:, None])
        other = ndtr((right[:, None] - logits.seen) / np.sqrt(left))
        both += chance * float(logits.weight @ (below * other * other.T) @ logits.weight)
    return max(0.0, both - named**2), counts


def _named(spec: Retrieval, logits: Logits, scale: float) -> np.ndarray:
    """The chance that all others are below a token's right logit, over sizes of what is shared."""
    right = scale * logits.signal + logits.noise
    wide = 1 + logits.shared * (logits.size[:, None] - 1) + right**2 / spec.dim
    return logits.chance @ np.exp((spec.vocab - 1) * log_ndtr(right / np.sqrt(wide)))


def _logits(spec: Retrieval, n: float) -> Logits:
    """From the moments of (B1) to (B5), with n stored pairs to a token (S4)."""
    V, d = spec.vocab, spec.dim
    found = kernel(spec)
    own, mean, variance = (
        float(found.weight @ part) for part in (found.own, found.mean, found.variance)
    )
    common = common_overlap(spec)
    pairs, through = n + n**2, 1 + V / d
    wrong = (pairs * variance + n * mean**2) * through
    # Norms of the token and its label, and what of itself it finds.
    norms = float(found.weight @ (found.own - own) ** 2) / (own - mean) ** 2
    norms += 2 / d if spec.embedding == "gaussian" else 0.0
    stored, stored_weight = poisson_nodes(np.array(n), STORED)
    g, g_weight = normal_nodes(NOISE)
    (count, normal), weight = combine((stored, stored_weight), (g, g_weight))
    signal = (count * own - n * mean) / np.sqrt(wrong)
    loose = (pairs * variance + n * mean**2) * V / d / wrong
    loose = loose + norms * (count * (own - mean)) ** 2 / wrong
    # Sums over t of label vectors, the same for all queries (S5): of uneven counts, and of what
    # queries find of t. Their length varies, and so does the trigger's.
    found_by_all = (n * common.mean**2 + pairs * common.variance, common.weight)
    (along, shared), chance = combine(chi_square_nodes(float(d), SIZE), found_by_all)
    shared = shared * (1 + V / d * along)
    size, chance = gauss_nodes(shared, chance, SIZES)
    usual = max(float(chance @ size), 1e-12 * wrong)
    share = min(usual / wrong, 1.0)
    lead = mean * (count - n) / np.sqrt(wrong)
    part = share * (V / d) / through / loose
    return Logits(
        signal=signal,
        noise=np.sqrt(loose) * normal,
        count=count,
        weight=weight,
        shared=share,
        size=size / usual,
        chance=chance,
        seen=lead + part * np.sqrt(loose) * normal,
        known=share * (1 - (V / d) / through) + part**2 * loose,
    )


def bivariate_normal(h: np.ndarray, k: np.ndarray, rho: np.ndarray) -> np.ndarray:
    """P(X <= h, Y <= k) of two normal numbers with correlation rho, |rho| < 1.

    Its derivative by rho is their density at (h, k) (Plackett), taken here over arcsin rho.
    """
    nodes, weights = np.polynomial.legendre.leggauss(ARCS)
    end = np.arcsin(rho)
    angle = end * (1 + nodes.reshape(-1, *(1,) * np.ndim(end))) / 2
    density = np.exp(-(h**2 + k**2 - 2 * h * k * np.sin(angle)) / (2 * np.cos(angle) ** 2))
    return ndtr(h) * ndtr(k) + end / 2 * np.tensordot(weights, density, 1) / (2 * np.pi)


def _quantile(share: float, mean: np.ndarray, variance: np.ndarray, weight: np.ndarray) -> float:
    """Where a mixture of Beta laws with these moments has that share below it (S2)."""
    mean = np.clip(mean, 1e-12, 1 - 1e-12)
    total = np.maximum(mean * (1 - mean) / np.maximum(variance, 1e-300) - 1, 1e-3)
    low, high = 0.0, 1.0
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        below = float(weight @ betainc(mean * total, (1 - mean) * total, middle))
        low, high = (middle, high) if below < share else (low, middle)
    return (low + high) / 2
