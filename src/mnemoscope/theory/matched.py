r"""How much of the permutation the matched filter reads off the first gradient.

The filter scores label y for token v by u_y^T G z_v. In units of one stored pair,

    right label    n_v, how often v was the informative token: Poisson of mean N/V
    wrong label    0, with the variance of three noises                                      (D4)
      meetings     (N (L - 1)/V^2) (1 + (V + 1)/d)^2      tokens beside other tokens' labels
      other pairs  (N/V + N^2/V^2) ((V - 2)/d^2 + 1/d)    stored pairs, through overlaps
      own pair     n_v^2/d                                v's own label, through its overlap with y

and the right label has the first two as well, and 4 n_v^2/d for the lengths of u and z. The share
of tokens named right is the chance that V - 1 wrong scores stay below the right one. Scores are
taken as normal and independent, which is rough for few samples a token and for small V: accuracy
comes out up to 0.09 high at V = 256 and within 0.03 from V = 512 on (docs/theory/bound.md).
"""

import numpy as np
from scipy.special import gammaln, log_ndtr, xlogy

from mnemoscope.spec import Retrieval
from mnemoscope.theory.quadrature import normal_nodes

# Counts beyond this many standard deviations from their mean are left out.
FAR = 7.0
MOST_COUNTS = 200


def matched_filter_derived(spec: Retrieval) -> bool:
    """Whether (D4) is about this setting: overlaps, no MLP, and no trigger in the values."""
    random = spec.embedding in ("gaussian", "sphere")
    return not spec.width and spec.trigger == "keys" and random


def matched_filter_accuracy(spec: Retrieval) -> float:
    """The share of tokens that the matched filter names right."""
    V, d, L, N = spec.vocab, spec.dim, spec.length, spec.samples
    usual = N / V
    meetings = N * (L - 1) / V**2 * (1 + (V + 1) / d) ** 2
    others = (usual + usual**2) * ((V - 2) / d**2 + 1 / d)
    n, weight = _counts(usual)
    g, g_weight = normal_nodes(15)
    wrong = np.sqrt(meetings + others + n**2 / d)
    right = np.sqrt(meetings + others + 4 * n**2 / d)
    ahead = (n[:, None] + right[:, None] * g) / wrong[:, None]
    named = np.exp((V - 1) * log_ndtr(ahead)) @ g_weight
    return float(weight @ named)


def _counts(mean: float) -> tuple[np.ndarray, np.ndarray]:
    """Counts near their mean, with their chances; a spread of them where they are many."""
    reach = FAR * np.sqrt(mean + 1)
    n = np.unique(np.linspace(max(0.0, mean - reach), mean + reach, MOST_COUNTS).round())
    weight = np.exp(xlogy(n, mean) - mean - gammaln(n + 1))  # Poisson
    return n, weight / weight.sum()
