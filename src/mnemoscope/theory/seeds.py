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
from mnemoscope.theory.attention import Attention, lift_nodes
from mnemoscope.theory.kernel import kernel
from mnemoscope.theory.quadrature import chi_square_nodes, combine, normal_nodes
from mnemoscope.theory.recall import Recall

LEVEL = 0.95
# Nodes over right logits, over each of the two sizes of a leak, and over lifts.
RIGHT, SIZE, NORMS, SHIFTS = 15, 3, 5, 31
# Nodes of the integral in a bivariate normal law.
ARCS = 20
# Halvings that solve an equation.
HALVINGS = 50


@dataclass(frozen=True)
class Logits:
    """One token's right logit over the wrong ones' spread, and what all queries of a seed share.

    `spread` is the standard deviation of the right logit over that of a wrong one, `counted` the
    part of its mean that one more stored pair adds. `leak` is the share of a wrong logit's variance
    that is the same for every query; `size` and `weight` are its sizes over seeds, of mean 1.
    """

    spread: tuple[float, float]
    counted: float
    leak: float
    size: np.ndarray
    weight: np.ndarray


def interval(spec: Retrieval, attention: Attention, recall: Recall) -> tuple[float, float]:
    """What holds 95 % of seeds' accuracies, from 2.5 % on each side."""
    accuracy, variance = recall.accuracy_by_seed, _by_lift(spec, recall)
    weight = recall.weight
    if len(weight) > 1:  # between the lifts at which accuracy is known
        lift, weight = lift_nodes(spec, attention, NORMS, SHIFTS)
        order = np.argsort(recall.lift)
        known = recall.lift[order]
        accuracy, variance = (
            np.interp(lift, known, part[order]) for part in (accuracy, variance)
        )
    tail = (1 - LEVEL) / 2
    low, high = (_quantile(share, accuracy, variance, weight) for share in (tail, 1 - tail))
    # Accuracy is a whole number of hits: an end between two of them holds the next one.
    step = 1 / spec.test_samples
    return max(0.0, np.floor(low / step) * step), min(1.0, np.ceil(high / step) * step)


def _by_lift(spec: Retrieval, recall: Recall) -> np.ndarray:
    """The variance between seeds of one lift (S1)."""
    V, T = spec.vocab, spec.test_samples
    found = []
    for accuracy, attended in zip(recall.accuracy_by_seed, recall.attention_by_seed, strict=True):
        named = min(accuracy / attended, 1.0) if attended else 0.0
        shared, counts = _shared(spec, attended, named)
        tokens = max(0.0, accuracy * (attended - accuracy) - attended**2 * counts) / V
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
    g, g_weight = normal_nodes(RIGHT)
    low, high = 0.0, 60.0
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        right = middle + _spread(logits, middle) * g
        low, high = (
            (middle, high) if _named(spec, logits, right) @ g_weight < named else (low, middle)
        )
    mean = (low + high) / 2
    spread = _spread(logits, mean)
    right = mean + spread * g
    # d named / d count, by parts: E f'(m + s g) = E f g / s.
    slope = float((_named(spec, logits, right) * g) @ g_weight / spread) * logits.counted * mean / n
    counts = n * slope**2
    if logits.leak < 1e-6:
        return 0.0, counts
    together = 0.0
    for size, weight in zip(logits.size, logits.weight, strict=True):
        # Over the wrong logits' spread of this seed; the own pair's part of it is not shared (B4).
        wide = 1 + logits.leak * (size - 1) + right**2 / spec.dim
        level = right / np.sqrt(wide)
        rho = logits.leak * size / np.sqrt(wide[:, None] * wide)
        below = bivariate_normal(level[:, None], level, np.minimum(rho, 0.999))
        together += weight * float(g_weight @ below ** (V - 1) @ g_weight)
    return max(0.0, together - named**2), counts


def _named(spec: Retrieval, logits: Logits, right: np.ndarray) -> np.ndarray:
    """The chance that all others are below such right logits, over sizes of the leak."""
    wide = 1 + logits.leak * (logits.size[:, None] - 1) + right**2 / spec.dim
    return logits.weight @ np.exp((spec.vocab - 1) * log_ndtr(right / np.sqrt(wide)))


def _spread(logits: Logits, mean: float) -> float:
    fixed, relative = logits.spread
    return float(np.sqrt(fixed + relative * mean**2))


def _logits(spec: Retrieval, n: float) -> Logits:
    """From the moments of (B1) to (B5), with n stored pairs to a token (S4)."""
    V, d = spec.vocab, spec.dim
    found = kernel(spec)
    own, mean, variance = (
        float(found.weight @ part) for part in (found.own, found.mean, found.variance)
    )
    wobble = float(found.weight @ (found.own - own) ** 2)
    leak = n * mean**2 * (1 + V / d)
    wrong = (n + n**2) * variance * (1 + V / d) + leak
    rest = ((n + n**2) * variance + n * mean**2) * V / d
    signal = n * (own - mean)
    norms = 2 / d if spec.embedding == "gaussian" else 0.0
    sizes = [chi_square_nodes(float(d), SIZE)]  # |sum of (n_t - n) u_t|^2
    square = chi_square_nodes(float(d), SIZE)
    if spec.embedding != "gaussian" or spec.trigger == "keys":
        square = (np.ones(1), np.ones(1))
    (along, trigger), weight = combine(sizes[0], square)
    size = (1 + V / d * along) / (1 + V / d) * trigger**2
    return Logits(
        spread=(rest / wrong, (n * own**2 + n**2 * wobble) / signal**2 + norms),
        counted=own / (own - mean),
        leak=leak / wrong,
        size=size / (weight @ size),
        weight=weight,
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


def _quantile(
    share: float, mean: np.ndarray, variance: np.ndarray, weight: np.ndarray
) -> float:
    """Where a mixture of Beta laws with these moments has that share below it (S2)."""
    mean = np.clip(mean, 1e-12, 1 - 1e-12)
    total = np.maximum(mean * (1 - mean) / np.maximum(variance, 1e-300) - 1, 1e-3)
    low, high = 0.0, 1.0
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        below = float(weight @ betainc(mean * total, (1 - mean) * total, middle))
        low, high = (middle, high) if below < share else (low, middle)
    return (low + high) / 2
