r"""How much of the permutation a viewer can know, and so how many labels it can name.

The gradient at initialisation is G = U^T H M Z / (N L), d x d, with M the table of counts: how
often token v stood in a sequence of label y. Proofs are in docs/theory/bound.md; r = min(d, V - 1).
What a viewer learns of the permutation is, in nats, at most

    (r^2/2) ln(1 + (d/r)^2 (N + V - 2) / (s^2 (L (V - 1) + N - 1)))                         (D5)

for G seen through normal noise of s times the root mean square of its entries,

    b d^2 ln 2                                                                              (D6)

for G written in b bits an entry, and, however exactly G is known,

    V E_n min(ln V, sum_{i=1}^n ln(1 + (V - 1) i / (n (L - 1) + i))),  n ~ Binomial(N, 1/V)  (D7)

To name a share a of the labels takes at least

    max(ln V! - V (H(a) + (1 - a) ln(V - 1)),  a V ln(a V / e))                             (D2)

with H(a) the entropy of a coin of bias a. And any learner at all can only guess a token that it
never saw as the informative one:

    a  <=  1 - (1 - 1/V)^N + 1/V                                                             (D3)

The Gaussian surrogate replaces the counts by normal numbers of the same covariance. It has

    (r^2/2) ln(1 + N/(L (V - 1)))                                                           (D1)

on the average over permutations of the counts' covariance, and at most (D1) and

    (r^2/2) ln(L/(L - 1))                                                                   (D8)

together. Neither holds for the gradient itself, whose counts are whole numbers: a decoder that
looks for them can read them off (tests/training/test_exact_gradient.py).
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.polynomial.legendre import leggauss
from scipy.special import betaln

from mnemoscope.spec import Retrieval

# Up to so many sightings of a token (D7) adds term by term, above it takes an integral.
MOST_TERMS = 512
# exp of more than this is beyond float64.
MOST_POWER = 700.0


def needed_nats(vocab: int, share: float) -> float:
    """(D2): what must be known of a permutation to name this share of it, at least 0."""
    missed = 1 - share
    coin = -sum(p * math.log(p) for p in (share, missed) if p > 0)
    by_token = math.lgamma(vocab + 1) - vocab * (coin + missed * math.log(vocab - 1))
    named = share * vocab
    by_count = named * (math.log(named) - 1) if named > 1 else 0.0
    return max(0.0, by_token, by_count)


def allowed_share(vocab: int, nats: float) -> float:
    """(D2) solved for the share: the most that so much information can name."""
    low, high = 1 / vocab, 1.0
    if needed_nats(vocab, high) <= nats:
        return high
    while high - low > 1e-9:
        middle = (low + high) / 2
        low, high = (middle, high) if needed_nats(vocab, middle) <= nats else (low, middle)
    return high


def coverage_share(spec: Retrieval) -> float:
    """(D3): the most that any learner can name."""
    unseen = math.exp(spec.samples * math.log1p(-1 / spec.vocab))
    return min(1.0, 1 - unseen + 1 / spec.vocab)


def coverage_samples(spec: Retrieval, share: float) -> float:
    """(D3) solved for N: what any learner needs, 0 for a share that guessing reaches."""
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
    ratio = noise**2 / _dilution(spec) * _expm1(2 * needed_nats(V, share) / _rank(spec) ** 2)
    if ratio >= 1:
        return math.inf if ratio > 1 or L > 1 else 0.0
    return max(0.0, (ratio * (L * (V - 1) - 1) - (V - 2)) / (1 - ratio))


def written_nats(spec: Retrieval, bits: float) -> float:
    """(D6): from G in so many bits an entry."""
    return bits * spec.dim**2 * math.log(2)


def written_samples(spec: Retrieval, bits: float, share: float) -> float:
    """(D6) has no N in it: infinite where the bits cannot hold the share, else 0."""
    return 0.0 if written_nats(spec, bits) >= needed_nats(spec.vocab, share) else math.inf


def counted_nats(spec: Retrieval) -> float:
    """(D7): from all of M, and so from G, however exactly it is known."""
    return _counted(spec.vocab, spec.length, spec.samples)


def _counted(V: int, L: int, N: int) -> float:
    return min(math.lgamma(V + 1), V * _label_nats(V, L, N))


def _label_nats(V: int, L: int, N: int) -> float:
    """E_n of (D7): what the counts of one label say of its token at most."""
    terms, slope, last = _row_nats(V, L)
    if terms is None:  # more sightings than are added term by term: concave, so Jensen's inequality
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
    """(D7) and (D3): the N that whoever sees only the first gradient needs. Not derived for an MLP,
    whose gradient is no sum over counts."""
    if spec.width:
        return None
    return max(coverage_samples(spec, share), counted_samples(spec, share))


@lru_cache(maxsize=256)
def _row_nats(vocab: int, length: int) -> tuple[np.ndarray | None, float, float]:
    """What n sightings say of one token at most: for n = 0, 1, ..., as long as it is below ln V.

    Also the integral g and the last term t of the sum in (D7), for n g + t/2, which is above the
    sum: its terms are concave in i/n. Where ln V is not reached by MOST_TERMS there are no terms.
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
    """(D1): from a gradient of normal numbers, their covariance averaged over permutations."""
    ratio = spec.samples / (spec.length * (spec.vocab - 1))
    return _rank(spec) ** 2 / 2 * math.log1p(ratio)


def surrogate_samples(spec: Retrieval, share: float) -> float:
    """(D1) solved for N; infinite where float numbers cannot hold it."""
    power = 2 * needed_nats(spec.vocab, share) / _rank(spec) ** 2
    return spec.length * (spec.vocab - 1) * _expm1(power)


def safe_surrogate_nats(spec: Retrieval) -> float:
    """(D1) and (D8): the same, whatever the permutation; infinite at L = 1."""
    if spec.length == 1:
        return math.inf
    wider = _rank(spec) ** 2 / 2 * math.log(spec.length / (spec.length - 1))
    return surrogate_nats(spec) + wider


def safe_surrogate_samples(spec: Retrieval, share: float) -> float:
    """(D1) and (D8) solved for N."""
    power = 2 * needed_nats(spec.vocab, share) / _rank(spec) ** 2
    if spec.length == 1:
        return 0.0
    return max(0.0, (spec.vocab - 1) * ((spec.length - 1) * _expm1(power) - 1))


def _rank(spec: Retrieval) -> int:
    """r: in how many dimensions the labels' and the tokens' vectors differ from their means."""
    return min(spec.dim, spec.vocab - 1)


def _dilution(spec: Retrieval) -> float:
    """(d/r)^2: noise falls on all d^2 entries, what G says of the permutation on r^2 of them."""
    return (spec.dim / _rank(spec)) ** 2


def _expm1(power: float) -> float:
    return math.expm1(power) if power < MOST_POWER else math.inf


@dataclass(frozen=True)
class Limit:
    """One bound: whom it holds, what they can know and name here, and the N they need."""

    name: str
    what: str
    # Proved for the gradient of real samples, or only of a Gaussian surrogate.
    proved: bool
    # Infinite where there is no limit; any learner's is not one of information.
    nats: float | None
    share: float
    # For the target; infinite where no N is enough.
    samples: float

    def as_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON, which has no infinity."""
        nats = None if self.nats is None or math.isinf(self.nats) else self.nats
        samples = self.samples if math.isfinite(self.samples) else None
        bound = {"name": self.name, "what": self.what, "proved": self.proved}
        return {**bound, "nats": nats, "accuracy": self.share, "samples": samples}


def limits(spec: Retrieval, target: float, *, bits: int | None = None, noise: float | None = None) -> list[Limit]:
    """Every bound on a setting. With an MLP only what holds any learner is derived."""
    V, seen, need = spec.vocab, coverage_share(spec), coverage_samples(spec, target)
    bounds = [Limit("any_learner", "looks at the samples in any way", True, None, seen, need)]
    least = first_gradient_samples(spec, target)
    if least is None:
        return bounds
    # Whoever sees less than another knows no more: each is held by the bounds above its own, too.
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
    """N d^2 / (L V^2 ln V): along it, accuracies of different (V, d, L) fall on one curve."""

    x: float
    formula: str = "N d^2 / (L V^2 ln V)"


def collapse(spec: Retrieval) -> Collapse:
    """Where a setting stands on the collapsed axis."""
    V, d = spec.vocab, spec.dim
    return Collapse(spec.samples * d**2 / (spec.length * V**2 * math.log(V)))
