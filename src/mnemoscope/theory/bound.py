r"""How much a viewer can know about the permutation, and so how many labels it can name.

The gradient at initialisation is G = U^T H M Z / (N L), d x d, where M[y, v] counts token v in
sequences of label y. Let r = min(d, V - 1). Proofs are in docs/theory/bound.md. The information
about the permutation, in nats, is at most

    (r^2/2) ln(1 + (d/r)^2 (N + V - 2) / (s^2 (L (V - 1) + N - 1)))                         (D5)

for G seen through normal noise of s times the root mean square of its entries,

    b d^2 ln 2                                                                              (D6)

for G written in b bits an entry, and, however exactly G is known,

    V E_n min(ln V, sum_{i=1}^n ln(1 + (V - 1) i / (n (L - 1) + i))),  n ~ Binomial(N, 1/V)  (D7)

To name a share a of the labels takes at least

    max(ln V! - V (H(a) + (1 - a) ln(V - 1)),  a V ln(a V / e))                             (D2)

with H(a) the entropy of a coin of bias a. And any learner can only guess the label of a token that
it never saw as the informative one:

    a  <=  1 - (1 - 1/V)^N + 1/V                                                             (D3)

The Gaussian surrogate replaces the counts by normal numbers of the same covariance. It has

    (r^2/2) ln(1 + N/(L (V - 1)))                                                           (D1)

with the covariance averaged over permutations, and for every permutation at most (D1) plus

    (r^2/2) ln(L/(L - 1))                                                                   (D8)

Neither holds for the gradient itself, whose counts are whole numbers: a decoder that looks for them
can read them off (tests/training/test_exact_gradient.py).
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.polynomial.legendre import leggauss
from scipy.special import betaln

from mnemoscope.spec import Retrieval

# Up to this many sightings of a token, (D7) is summed term by term; above, it is an integral.
MOST_TERMS = 512
# exp of more than this overflows float64.
MOST_POWER = 700.0


def needed_nats(vocab: int, share: float) -> float:
    """(D2): the information that naming this share of a permutation takes."""
    missed = 1 - share
    coin = -sum(p * math.log(p) for p in (share, missed) if p > 0)
    by_token = math.lgamma(vocab + 1) - vocab * (coin + missed * math.log(vocab - 1))
    named = share * vocab
    by_count = named * (math.log(named) - 1) if named > 1 else 0.0
    return max(0.0, by_token, by_count)


def allowed_share(vocab: int, nats: float) -> float:
    """(D2) solved for the share: the most that this much information can name."""
    low, high = 1 / vocab, 1.0
    if needed_nats(vocab, high) <= nats:
        return high
    while high - low > 1e-9:
        middle = (low + high) / 2
        low, high = (middle, high) if needed_nats(vocab, middle) <= nats else (low, middle)
    return high


def coverage_share(spec: Retrieval) -> float:
    """(D3): the largest share that any learner can name."""
    unseen = math.exp(spec.samples * math.log1p(-1 / spec.vocab))
    return min(1.0, 1 - unseen + 1 / spec.vocab)


def coverage_samples(spec: Retrieval, share: float) -> float:
    """(D3) solved for N: what any learner needs; 0 for a share that guessing reaches."""
    left = 1 - share + 1 / spec.vocab
    return max(0.0, math.log(left) / math.log1p(-1 / spec.vocab)) if left < 1 else 0.0


def noisy_nats(spec: Retrieval, noise: float) -> float:
    """(D5): from G with normal noise of `noise` times the root mean square of its entries."""
    V, L, N = spec.vocab, spec.length, spec.samples
    ratio = (N + V - 2) / (L * (V - 1) + N - 1)
    return _rank(spec) ** 2 / 2 * math.log1p(_dilution(spec) * ratio / noise**2)


def noisy_samples(spec: Retrieval, noise: float, share: float) -> float:
    """(D5) solved for N; infinite where no number of samples is enough."""
    V, L = spec.vocab, spec.length
    # The ratio of (D5) rises with N from below towards 1.
    ratio = noise**2 / _dilution(spec) * _needed_ratio(spec, share)
    if ratio >= 1:
        return math.inf if ratio > 1 or L > 1 else 0.0
    return max(0.0, (ratio * (L * (V - 1) - 1) - (V - 2)) / (1 - ratio))


def written_nats(spec: Retrieval, bits: float) -> float:
    """(D6): from G in this many bits per entry."""
    return bits * spec.dim**2 * math.log(2)


def written_samples(spec: Retrieval, bits: float, share: float) -> float:
    """(D6) does not depend on N: infinite where the bits cannot hold the share, else 0."""
    return 0.0 if written_nats(spec, bits) >= needed_nats(spec.vocab, share) else math.inf


def counted_nats(spec: Retrieval) -> float:
    """(D7): from all of M, and so from G, however exactly known."""
    return _counted(spec.vocab, spec.length, spec.samples)


def _counted(V: int, L: int, N: int) -> float:
    return min(math.lgamma(V + 1), V * _label_nats(V, L, N))


def _label_nats(V: int, L: int, N: int) -> float:
    """E_n of (D7): the most that one label's counts say about its token."""
    terms, slope, last = _row_nats(V, L)
    if terms is None:  # too many sightings to sum; the integral is concave, so Jensen's inequality holds
        return min(math.log(V), N / V * slope + last / 2)
    n = np.arange(min(len(terms), N + 1))
    log_odds = n * math.log(1 / V) + (N - n) * math.log1p(-1 / V)
    chance = np.exp(log_odds - math.log(N + 1) - betaln(N - n + 1, n + 1))  # Binomial(N, 1/V)
    more = max(0.0, 1 - float(chance.sum()))
    return float(chance @ terms[: len(n)]) + more * math.log(V)


def counted_samples(spec: Retrieval, share: float) -> float:
    """(D7) solved for N."""
    V, L, needed = spec.vocab, spec.length, needed_nats(spec.vocab, share)
    if needed == 0:
        return 0.0
    low, high = 0, 1
    while _counted(V, L, high) < needed:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _counted(V, L, middle) >= needed else (middle, high)
    return float(high)


def first_gradient_samples(spec: Retrieval, share: float) -> float | None:
    """(D7) and (D3): the N that a viewer of the first gradient needs.

    None with an MLP: its gradient is not a sum over counts.
    """
    if spec.width:
        return None
    return max(coverage_samples(spec, share), counted_samples(spec, share))


@lru_cache(maxsize=256)
def _row_nats(vocab: int, length: int) -> tuple[np.ndarray | None, float, float]:
    """The most that n = 0, 1, ... sightings say about a token, up to ln V; None beyond MOST_TERMS.

    Also the integral g and the last term t of the sum in (D7): its terms are concave in i/n, so
    n g + t/2 bounds it from above.
    """

    def term(part: np.ndarray) -> np.ndarray:
        return np.log1p((vocab - 1) * part / (length - 1 + part))

    terms = [0.0]
    while terms[-1] < math.log(vocab) and len(terms) <= MOST_TERMS:
        n = len(terms)
        terms.append(float(term(np.arange(1, n + 1) / n).sum()))
    nodes, weights = leggauss(64)
    slope, last = float(weights @ term((nodes + 1) / 2)) / 2, float(term(np.ones(1))[0])
    return np.array(terms[:-1]) if terms[-1] >= math.log(vocab) else None, slope, last


def surrogate_nats(spec: Retrieval) -> float:
    """(D1): from the Gaussian surrogate, with its covariance averaged over permutations."""
    ratio = spec.samples / (spec.length * (spec.vocab - 1))
    return _rank(spec) ** 2 / 2 * math.log1p(ratio)


def surrogate_samples(spec: Retrieval, share: float) -> float:
    """(D1) solved for N; infinite where it overflows."""
    return spec.length * (spec.vocab - 1) * _needed_ratio(spec, share)


def safe_surrogate_nats(spec: Retrieval) -> float:
    """(D1) and (D8): from the surrogate, for every permutation; infinite at L = 1."""
    if spec.length == 1:
        return math.inf
    wider = _rank(spec) ** 2 / 2 * math.log(spec.length / (spec.length - 1))
    return surrogate_nats(spec) + wider


def safe_surrogate_samples(spec: Retrieval, share: float) -> float:
    """(D1) and (D8) solved for N."""
    if spec.length == 1:
        return 0.0
    return max(0.0, (spec.vocab - 1) * ((spec.length - 1) * _needed_ratio(spec, share) - 1))


def _rank(spec: Retrieval) -> int:
    """r: the dimensions in which label and token vectors differ from their means."""
    return min(spec.dim, spec.vocab - 1)


def _dilution(spec: Retrieval) -> float:
    """(d/r)^2: noise falls on all d^2 entries of G, information about the permutation on r^2."""
    return (spec.dim / _rank(spec)) ** 2


def _needed_ratio(spec: Retrieval, share: float) -> float:
    """The x with (r^2/2) ln(1 + x) equal to (D2); infinite where it overflows."""
    power = 2 * needed_nats(spec.vocab, share) / _rank(spec) ** 2
    return math.expm1(power) if power < MOST_POWER else math.inf


@dataclass(frozen=True)
class Limit:
    """One bound: who it applies to, what they can know and name, and the N they need."""

    name: str
    what: str
    # True for the gradient of real samples, False for the Gaussian surrogate.
    proved: bool
    # Infinite where there is no limit; None for any learner, whose bound is not one of information.
    nats: float | None
    share: float
    # N for the target; infinite where no N is enough.
    samples: float

    def as_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON, which has no infinity."""
        return {
            "name": self.name,
            "what": self.what,
            "proved": self.proved,
            "nats": None if self.nats is None or math.isinf(self.nats) else self.nats,
            "accuracy": self.share,
            "samples": self.samples if math.isfinite(self.samples) else None,
        }


def limits(spec: Retrieval, target: float, *, bits: int | None = None, noise: float | None = None) -> list[Limit]:
    """Every bound on a setting. With an MLP, only the one on any learner is derived."""
    V, seen, need = spec.vocab, coverage_share(spec), coverage_samples(spec, target)
    bounds = [Limit("any_learner", "looks at the samples in any way", True, None, seen, need)]
    least = first_gradient_samples(spec, target)
    if least is None:
        return bounds
    # A viewer that sees less knows no more, so the bound on exact viewers applies to all.
    exact = counted_nats(spec), least
    viewers = [("exact_gradient", "sees only the first gradient, exactly", *exact)]
    if noise is not None:
        what = f"sees it through noise of {noise:g} rms"
        viewers.append(("noisy_gradient", what, noisy_nats(spec, noise), noisy_samples(spec, noise, target)))
    if bits is not None:
        what = f"sees it in {bits} bit{'s' * (bits > 1)} an entry"
        viewers.append(("written_gradient", what, written_nats(spec, bits), written_samples(spec, bits, target)))
    for name, what, nats, samples in viewers:
        nats, samples = min(nats, exact[0]), max(samples, exact[1])
        bounds.append(Limit(name, what, True, nats, min(allowed_share(V, nats), seen), samples))
    for name, over, allowed, required in (
        ("gaussian_surrogate", "permutations averaged", surrogate_nats, surrogate_samples),
        ("safe_surrogate", "every permutation", safe_surrogate_nats, safe_surrogate_samples),
    ):
        share = allowed_share(V, allowed(spec))
        bounds.append(Limit(name, f"Gaussian surrogate, {over}", False, allowed(spec), share, required(spec, target)))
    return bounds


@dataclass(frozen=True)
class Collapse:
    """N d^2 / (L V^2 ln V), along which accuracies of different (V, d, L) fall on one curve."""

    x: float
    formula: str = "N d^2 / (L V^2 ln V)"


def collapse(spec: Retrieval) -> Collapse:
    """A setting's position on the collapsed axis."""
    return Collapse(spec.samples * spec.dim**2 / (spec.length * spec.vocab**2 * math.log(spec.vocab)))
