r"""How much of the permutation the matched filter reads off the first gradient.

The filter scores label y for token x by u_y . w, with w = V_1 z_x. In units of one stored pair, w is
a sum over labels of c_y u_y, where c_y counts the tokens that label y met, weighted by their overlap
with x. Tokens are named after their labels; n = N/V, a = (L - 1)/V, t = |z_x|^2.

    a wrong label, seen j ~ Poisson(n) times, with x itself k ~ Poisson(j a) times           (D4a)
        c_y = (k - n a) t + (j - n) (L/V) S + normal of variance (j^2 + j (L - 1)) t/d
    the right label, seen j times
        c_x = (j + k - n a) t + (j - n) (L/V) S + normal of variance j (L - 1) t/d
    S, the sum of x's overlaps with other tokens, is the same for all labels: variance (V - 1) t/d

    C = sum of c_y^2 over the wrong labels                                                   (D4b)
      = (V - 1) (n a t^2 + n (a t + (L/V) S)^2 + (n + n^2 + n (L - 1)) t/d)

    right score = |u_x|^2 c_x + |u_x| sqrt(C/d) g,                                           (D4c)
        g normal; |w|^2 = (right/|u_x|)^2 + C f, f ~ chi^2_{d-1}/d
    wrong score = h c_y + normal of variance |w|^2/d, given w                                (D4d)
        h = w . (w - c_x u_x) / C = f + g right / (|u_x| sqrt(C d))

The accuracy is the chance that V - 1 wrong scores, independent given w, stay below the right one.
The derivation is in docs/theory/bound.md. Nothing is fitted.
"""

import math

import numpy as np
from scipy.special import ndtr

from mnemoscope.spec import Retrieval
from mnemoscope.theory.domain import doubts
from mnemoscope.theory.quadrature import chi_square_nodes, normal_nodes, poisson_nodes
from mnemoscope.theory.recall import normal_quantile
from mnemoscope.theory.registry import derived_laws, embedding_law

# Nodes for the squared norms of z_x and u_x, for f, S, the right label's count and its noise, and
# for the counts of a wrong label. More nodes change the accuracy by less than 0.005.
TOKEN, LABEL, SIZE, SHARED, SEEN, NOISE, WRONG = 2, 3, 3, 5, 16, 9, 5
# Up to this mean, the right label's count is summed count by count.
COUNTED = 8.0


def matched_filter_doubt(spec: Retrieval) -> str:
    """Why (D4) is unreliable for a setting; empty inside its validated domain.

    >>> matched_filter_doubt(Retrieval(vocab=64, dim=4, length=8, samples=100))
    'fewer than 5 dimensions: overlaps are far from normal'
    """
    return next(iter(doubts(spec, "first_gradient")), "")


def matched_filter_accuracy(spec: Retrieval) -> float:
    """The share of tokens that the matched filter names correctly; NaN where not derived."""
    if spec.embedding not in derived_laws():
        return math.nan
    law = embedding_law(spec.embedding)
    V, d, L = spec.vocab, spec.dim, spec.length
    n, a, b = spec.samples / V, (L - 1) / V, L / V
    # Axes: t = |z_x|^2, |u_x|^2, f, S, count of the right label, its noise.
    t, t_weight = law.squared_norm_nodes(d, TOKEN)
    u, u_weight = law.squared_norm_nodes(d, LABEL)
    # C is a sum of V squares and varies, too: relative variances 2/(d - 1) and 2/V add up.
    f, f_weight = chi_square_nodes(1 / (1 / max(d - 1, 1) + 1 / V), SIZE)
    S, S_weight = normal_nodes(SHARED)
    seen, seen_weight = poisson_nodes(np.array(n), SEEN, COUNTED)
    e, e_weight = normal_nodes(NOISE)
    t, u, f, S, seen, e = np.ix_(t, u, f * (1 - 1 / d), S, seen, e)

    S = S * np.sqrt((V - 1) * t / d)
    C = (V - 1) * (n * a * t**2 + n * (a * t + b * S) ** 2 + (n + n**2 + n * (L - 1)) * t / d)
    # The right score (D4c). Its own meetings and g form one normal noise, in which g has a share.
    own = (seen * (1 + a) - n * a) * t + (seen - n) * b * S  # (D4a)
    through = u * C / d
    variance = through + u**2 * seen * (a * t**2 + (L - 1) * t / d)
    right = u * own + np.sqrt(variance) * e
    g = np.sqrt(through / variance) * e
    square = np.maximum(right**2 / u + C * f, 1e-300)  # |w|^2, which may vanish in one dimension
    h = f + g * right / np.sqrt(u * C * d)
    bar, lost = right, 1.0
    if law.bounded:
        # u_y . w is at most |w|: take the score that a normal u_y would exceed as rarely (B7).
        length = np.sqrt(square / d)
        bar, lost = length * normal_quantile(right / length, max(d, 2)), 3.0

    # A wrong score (D4d), over the times its label was seen and met x.
    below = np.zeros(np.broadcast_shapes(h.shape, right.shape))
    counts, chances = poisson_nodes(np.array(n), WRONG)
    for j, chance, met, met_chance in zip(counts, chances, *poisson_nodes(counts * a, WRONG), strict=True):
        variance = (h**2 * max(0.0, 1 - lost / d) * (j**2 + j * (L - 1)) * t + square) / d
        level = (bar - h * ((j - n) * b * S - n * a * t)) / np.sqrt(variance)
        step = h * t / np.sqrt(variance)
        below += chance * sum(p * ndtr(level - k * step) for k, p in zip(met, met_chance, strict=True))
    named = np.minimum(below, 1.0) ** (V - 1)
    for weight in (e_weight, seen_weight, S_weight, f_weight, u_weight, t_weight):
        named = named @ weight
    return float(named)
