r"""What any estimator can know that sees only the first gradient.

The gradient at initialisation is G = U^T C, d x d (docs/theory/bound.md). Given U and Z, its signal
and its noise have covariances with the same eigenvectors, and the same ratio along each of them,
N/(L (V - 1)). So what G says of the permutation is at most

    (d^2/2) ln(1 + N/(L (V - 1)))  nats                                                     (D1)

while to name a share a of the labels takes, by Fano's inequality token by token, at least

    ln V! - V (H(a) + (1 - a) ln(V - 1))                                                    (D2)

with H(a) the entropy of a coin of bias a.

Learners that see more than the first gradient, the three steps among them, are not held by this.
What holds any learner is that a token it never saw as the informative one can only be guessed:

    a  <=  1 - (1 - 1/V)^N + 1/V                                                             (D3)
"""

import math
from dataclasses import dataclass

from mnemoscope.spec import Retrieval


def needed_nats(vocab: int, share: float) -> float:
    """(D2): what must be known of a permutation to name this share of it, at least 0."""
    missed = 1 - share
    coin = -sum(p * math.log(p) for p in (share, missed) if p > 0)
    return max(0.0, math.lgamma(vocab + 1) - vocab * (coin + missed * math.log(vocab - 1)))


def known_nats(spec: Retrieval) -> float:
    """(D1): the most that the first gradient can say."""
    d = min(spec.dim, spec.vocab - 1)
    return d**2 / 2 * math.log1p(spec.samples / (spec.length * (spec.vocab - 1)))


def bound_samples(spec: Retrieval, share: float) -> float:
    """The least N at which (D1) reaches (D2); infinite where float numbers cannot hold it."""
    d = min(spec.dim, spec.vocab - 1)
    power = 2 * needed_nats(spec.vocab, share) / d**2
    return spec.length * (spec.vocab - 1) * math.expm1(power) if power < 700 else math.inf


def coverage_samples(spec: Retrieval, share: float) -> float:
    """(D3) solved for N: what any learner needs, 0 for a share that guessing reaches."""
    left = 1 - share + 1 / spec.vocab
    return max(0.0, math.log(left) / math.log1p(-1 / spec.vocab)) if left < 1 else 0.0


def bound_accuracy(spec: Retrieval) -> float:
    """The largest share that the information in G allows, by bisection."""
    known = known_nats(spec)
    low, high = 1 / spec.vocab, 1.0
    if needed_nats(spec.vocab, 1.0) <= known:
        return 1.0
    while high - low > 1e-6:
        middle = (low + high) / 2
        low, high = (middle, high) if needed_nats(spec.vocab, middle) <= known else (low, middle)
    return low


@dataclass(frozen=True)
class Collapse:
    """N d^2 / (L V^2 ln V): along it, accuracies of different (V, d, L) fall on one curve."""

    x: float
    formula: str = "N d^2 / (L V^2 ln V)"


def collapse(spec: Retrieval) -> Collapse:
    """Where a setting stands on the collapsed axis."""
    V, d = spec.vocab, spec.dim
    return Collapse(spec.samples * d**2 / (spec.length * V**2 * math.log(V)))
