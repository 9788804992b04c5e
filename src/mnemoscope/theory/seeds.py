r"""How accuracy varies from seed to seed: the interval that holds 95 % of seeds.

A seed's accuracy is the share of V tokens that the map names, measured on T sequences. Tokens of
one seed are not independent: they share the lift of attention and the number of samples. Where
overlaps have a mean (the trigger in the values, an activation's constant part) they also share the
logits that uneven label counts leak into every query (docs/theory/recall.md, "The interval over
seeds"). Nothing is fitted.

    variance = V^-1 (tokens - counts) + shared + A (1 - A)/T,    at a given lift             (S1)
    interval = quantiles of Beta laws with these moments, mixed over lifts                   (S2)
"""

from collections.abc import Callable

import numpy as np
from scipy.optimize import brentq
from scipy.special import betainc, ndtr

from mnemoscope.spec import Retrieval
from mnemoscope.theory.attention import Attention, lift_nodes, win_rate
from mnemoscope.theory.common import common_overlap
from mnemoscope.theory.frame import by_largest_count
from mnemoscope.theory.kernel import kernel
from mnemoscope.theory.quadrature import chi_square_nodes, combine, legendre_nodes, normal_nodes, poisson_nodes
from mnemoscope.theory.recall import Recall
from mnemoscope.theory.registry import embedding_law

LEVEL = 0.95
# Nodes over a token's stored pairs and the noise in its right logit, over a wrong label's stored
# pairs, over the length of what queries share, and over the variables of the lift.
STORED, NOISE, OTHERS, LENGTHS, LIFTS = 14, 5, 10, 3, (3, 31, 3)
# Up to this mean, stored pairs are summed count by count.
COUNTED = 4.0
# Relative step in N for a derivative.
MORE = 0.1
# Nodes over a token's score, and in the integral of a bivariate normal law.
SCORES, ARCS = 7, 8
HALVINGS = 40
# How near to a quantile a quick search comes.
NEAR = 4e-12


def interval(spec: Retrieval, attention: Attention, recall: Recall) -> tuple[float, float]:
    """The interval that holds 95 % of seeds' accuracies, with 2.5 % on each side."""
    accuracy, variance = recall.accuracy_by_seed, _by_lift(spec, recall)
    weight = recall.weight
    if len(weight) > 1:  # interpolate between the lifts at which accuracy is known
        lift, weight = lift_nodes(spec, attention, *LIFTS)
        order = np.argsort(recall.lift)
        known = recall.lift[order]
        accuracy, variance = (np.interp(lift, known, part[order]) for part in (accuracy, variance))
    if spec.trigger == "additive" and not (embedding_law(spec.embedding).overlapping or spec.hidden):
        attended = recall.attention_accuracy
        named, weight = by_largest_count(spec.samples / spec.vocab * attended, spec.vocab)
        accuracy = attended * named + (1 - attended) / spec.vocab
        variance = accuracy * (1 - accuracy) * (1 / spec.vocab + 1 / spec.test_samples)
    tail = (1 - LEVEL) / 2
    low, high = (_quantile(share, accuracy, variance, weight) for share in (tail, 1 - tail))
    # Accuracy moves in steps of one token: half a step is the continuity correction.
    half = 1 / (2 * spec.vocab)
    return max(0.0, low - half), min(1.0, high + half)


def _by_lift(spec: Retrieval, recall: Recall) -> np.ndarray:
    """The variance between seeds of equal lift (S1)."""
    V, T = spec.vocab, spec.test_samples
    score, score_weight = normal_nodes(SCORES)
    variances, known = [], {}
    for lift, accuracy, attended in zip(recall.lift, recall.accuracy_by_seed, recall.attention_by_seed, strict=True):
        named = min(accuracy / attended, 1.0) if attended else 0.0
        alike = (round(float(attended), 4), round(float(named), 4))
        if alike not in known:  # perfect attention is the same at every lift
            known[alike] = _shared(spec, *alike)
        shared, counts = known[alike]
        # A token with a stored label counts as often as it wins.
        often = win_rate(spec.length, np.array(lift), score) ** 2 @ score_weight / max(attended, 1e-9)
        tokens = max(0.0, accuracy * (often - accuracy) - attended**2 * counts) / V
        variances.append(tokens + attended**2 * shared + accuracy * (1 - accuracy) / T)
    return np.array(variances)


def _shared(spec: Retrieval, attended: float, named: float) -> tuple[float, float]:
    """The covariance of tokens through leaked logits (S6), and the variance that fixing N removes (S3)."""
    n = spec.samples / spec.vocab * attended
    if n <= 0:
        return 0.0, 0.0
    if not (embedding_law(spec.embedding).overlapping or spec.hidden):
        return 0.0, n * np.exp(-2 * n)  # (B6): only a count of 0 matters
    if not 1e-9 < named < 1 - 1e-9:
        return 0.0, 0.0
    logits = Logits(spec, n)
    # Moments replace nodes here: scaling the signal makes up for the difference.
    scale = _bisect(lambda scale: logits.mean_named(scale) < named, 0.0, 8.0)
    # The counts of all tokens add up to N (S3). What only one query sees stays as it is.
    more = Logits(spec, n * (1 + MORE))
    more.private = logits.private
    counts = n * ((more.mean_named(scale) - named) / (MORE * n)) ** 2
    return max(0.0, logits.both_named(scale) - named**2), counts


def _bisect(below: Callable[[float], bool], low: float, high: float) -> float:
    """Where `below` turns false."""
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if below(middle) else (low, middle)
    return (low + high) / 2


class Logits:
    """Logits of a token with n stored pairs on average, and what all queries of a seed share (S4).

    In units of one pair. Axes: seeds, which differ in what queries share; tokens; wrong labels by
    their stored pairs.
    """

    def __init__(self, spec: Retrieval, n: float) -> None:
        self.vocab, self.dim = spec.vocab, spec.dim
        ratio, pairs = spec.vocab / spec.dim, n + n**2
        overlaps, common = kernel(spec), common_overlap(spec)
        own, mean, variance = map(float, overlaps.averages())
        lengths = chi_square_nodes(float(spec.dim), LENGTHS)
        (length, shared_mean), self.chance = combine(lengths, (common.mean, common.weight))
        (_, shared), _ = combine(lengths, (common.variance, common.weight))
        (self.count, normal), self.weight = combine(poisson_nodes(np.array(n), STORED, COUNTED), normal_nodes(NOISE))
        self.others, self.others_weight = poisson_nodes(np.array(n), OTHERS, COUNTED)
        # Sums over stored labels t, through V/d: what all queries retrieve of t, along a vector
        # whose length varies from seed to seed, and what a single one retrieves (S5).
        self.along = ((pairs * shared + n * shared_mean**2) * ratio * length)[:, None]
        alone = max(0.0, variance - float(common.weight @ common.variance))
        self.private = pairs * alone * ratio
        # The same for a label's own pairs.
        self.lead = shared_mean[:, None] * (self.others - n)
        self.own_shared = shared[:, None] * self.others**2
        self.own_private = alone * self.others**2
        # The right logit. Norms do not matter where they scale right and wrong logits alike, as
        # through ReLU.
        wrong = np.maximum(pairs * overlaps.variance + n * overlaps.mean**2, 1e-300)
        level = (overlaps.own - overlaps.mean) / np.sqrt(wrong)
        norms = float(overlaps.weight @ level**2) / max(float(overlaps.weight @ level) ** 2, 1e-300) - 1
        norms += embedding_law(spec.embedding).norm_variance(spec.dim)
        self.signal = self.count * (own - mean)
        self.leaked = shared_mean[:, None] * (self.count - n)
        self.loose = self.along + self.private + norms * self.signal**2
        self.noise = np.sqrt(self.loose) * normal
        self.count_private = (alone + shared[:, None]) * self.count**2

    def right(self, scale: float) -> np.ndarray:
        """Right logits, by seed and token."""
        return scale * self.signal + self.leaked + self.noise

    def spread(self, right: np.ndarray) -> np.ndarray:
        """The variance of a wrong logit, by seed, token and stored pairs (B4)."""
        fixed = self.along + self.private + self.own_shared + self.own_private
        return np.maximum(fixed[:, None] + right[..., None] ** 2 / self.dim, 1e-300)

    def named(self, scale: float) -> np.ndarray:
        """The chance that all others stay below the right logit, by seed and token."""
        right = self.right(scale)
        level = (right[..., None] - self.lead[:, None]) / np.sqrt(self.spread(right))
        return (ndtr(level) @ self.others_weight) ** (self.vocab - 1)

    def mean_named(self, scale: float) -> float:
        """The same, averaged over seeds and tokens."""
        return float(self.chance @ self.named(scale) @ self.weight)

    def both_named(self, scale: float) -> float:
        """The chance that two tokens of a seed are both named (S6)."""
        right = self.right(scale)
        wide = self.spread(right)
        level = (right[..., None] - self.lead[:, None]) / np.sqrt(wide)
        common = self.along + self.own_shared
        # The logit that one query predicts for the other token's label, and its variance (S7).
        part = self.along / np.maximum(self.loose, 1e-300)
        seen = self.leaked + part * self.noise
        left = self.along * (1 - part) + self.private + self.count_private
        # Two tokens are a pair in either order: half of the table is enough.
        one, two = np.triu_indices(len(self.weight))
        below = np.empty((len(self.weight),) * 2)
        total = 0.0
        for at, chance in enumerate(self.chance):
            pairs = 0.0
            for c, weight in enumerate(self.others_weight):
                h, root = level[at, :, c], np.sqrt(wide[at, :, c])
                rho = np.minimum(common[at, c] / (root[one] * root[two]), 0.999)
                pairs = pairs + weight * bivariate_normal(h[one], h[two], rho)
            below[one, two] = below[two, one] = pairs
            off = np.sqrt(left[at] + (right[at] ** 2 / self.dim)[:, None])
            other = ndtr((right[at][:, None] - seen[at]) / np.maximum(off, 1e-150))
            both = below ** (self.vocab - 2) * other * other.T
            total += chance * float(self.weight @ both @ self.weight)
        return total


def bivariate_normal(h: np.ndarray, k: np.ndarray, rho: np.ndarray) -> np.ndarray:
    """P(X <= h, Y <= k) of two normal numbers with correlation rho, |rho| < 1.

    Its derivative in rho is the density at (h, k) (Plackett), integrated here over arcsin rho.
    """
    if not np.any(rho):
        return ndtr(h) * ndtr(k)
    nodes, weights = legendre_nodes(ARCS)
    end = np.arcsin(rho)
    angle = end * (1 + nodes.reshape(-1, *(1,) * np.ndim(end))) / 2
    density = np.exp(-(h**2 + k**2 - 2 * h * k * np.sin(angle)) / (2 * np.cos(angle) ** 2))
    return ndtr(h) * ndtr(k) + end / 2 * np.tensordot(weights, density, 1) / (2 * np.pi)


def _quantile(share: float, mean: np.ndarray, variance: np.ndarray, weight: np.ndarray) -> float:
    """The quantile of a mixture of Beta laws with these moments (S2)."""
    # Most lifts share their law: each law once.
    laws, law_of = np.unique(mean + 1j * variance, return_inverse=True)
    mean = np.clip(laws.real, 1e-12, 1 - 1e-12)
    total = np.maximum(mean * (1 - mean) / np.maximum(laws.imag, 1e-300) - 1, 1e-3)

    def beyond(x: float) -> float:
        return float(weight @ betainc(mean * total, (1 - mean) * total, x)[law_of]) - share

    # What a quick search has found, the slow one need not look at again.
    found, _ = brentq(beyond, 0.0, 1.0, xtol=NEAR, full_output=True)
    low, high = found - NEAR, found + NEAR
    low, high = low if low > 0 and beyond(low) < 0 else 0.0, high if high < 1 and beyond(high) >= 0 else 1.0
    return _bisect(lambda x: x <= low or (x < high and beyond(x) < 0), 0.0, 1.0)
