r"""The capacity of associative memories, in theory.

Take a Hebbian linear memory on the sphere, W = sum_x u_f(x) e_x^T, with N items and M answers, so
N/M items per answer. An item's right logit is 1 + a, that of a wrong answer y is b_y, and with
overlaps of variance 1/d

    Var a   = N/d^2 + (N/M - 1)/d                                                            (H1)
    Var b_y = N/d^2 + (N/M)/d + 1/d

from all other items (two overlaps), from the items that share the answer (one overlap), and in b
from the item itself (u_y^T u_f(x)). Take a as Gaussian, and b_y as a coordinate of a point on the
sphere of radius r = sqrt(d Var b), as u_y^T w is for a fixed w: its tails are lighter than Gaussian
ones. With all of them independent, an item is right with probability

    p = E_a P(b <= 1 + a)^(M - 1),   P(b > s) = I_{1 - s^2/r^2}((d - 1)/2, 1/2) / 2  (s >= 0)  (H2)

and all N are right half of the time where N (1 - p) = ln 2. With M = N and large d this becomes
d^2 = 8 N ln N (N^2 pairs with b - a below 1, of variance 2 N/d^2; the constant is from later work
on the paper's model). The best linear memory is conjectured to need d^2 = 2 N ln N. With M fixed,
the shared answers' term N/(M d) makes N grow only like d.

How d^2 / (N ln N) approaches 8: a pair is wrong where a Gaussian of variance s^2 = 2 N/d^2 + 1/d
exceeds 1, so of N^2 pairs about E = N^2 exp(-x^2/2) / (x sqrt(2 pi)) are wrong, x = 1/s. A seed has
no error with probability e^-E; at the first error ln E is -0.577 on average over seeds (minus
Euler's constant). With c = d^2 / (N ln N (1 + d/2N)), x^2 = c ln N / 2, and

    8 = c + (4/ln N) [ln(c ln N / 2)/2 + ln(2 pi)/2 - 0.577]                                 (H3)

up to terms of order ln N / d: the tails of a sphere are lighter.
"""

import math
from collections.abc import Callable

import numpy as np
from scipy.optimize import brentq
from scipy.special import betainc

# d^2 over N ln N: Hebbian with all items right, and the best linear memory (a conjecture).
HEBBIAN_ALL, BEST_LINEAR = 8.0, 2.0
# The authors' guide lines: d^2 and m d over N ln N for M = N, m d over N for M = 32, and the
# transformer's facts over parameters.
GUIDE_LINEAR, GUIDE_MLP, GUIDE_MLP_FEW, GUIDE_FACTS = 1.3, 0.35, 1.2, 0.15
LARGEST = 2.0**24


def hebbian_accuracy(items: float, dim: int, outputs: int = 0) -> float:
    """(H2): the share of items that a linear Hebbian memory gets right; `outputs` 0 means M = N."""
    M = outputs or items
    shared = items / M
    own = items / dim**2 + max(shared - 1, 0) / dim
    wrong = items / dim**2 + shared / dim + 1 / dim
    g = np.linspace(-8, 8, 801)
    weight = np.exp(-(g**2) / 2)
    height = (1 + math.sqrt(own) * g) / math.sqrt(dim * wrong)
    tail = betainc((dim - 1) / 2, 0.5, np.clip(1 - height**2, 0.0, 1.0)) / 2
    above = np.where(height >= 0, tail, 1 - tail)
    return float(weight @ (1 - above) ** (M - 1) / weight.sum())


def hebbian_capacity(dim: int, criterion: float, outputs: int = 0) -> float:
    """The N, up to LARGEST, at which (H2) meets the criterion: a share of items, or 1 for all.

    All items are right half of the time where N (1 - p) = ln 2.
    """

    def spare(log_items: float) -> float:
        items = math.exp(log_items)
        missed = 1 - hebbian_accuracy(items, dim, outputs)
        return math.log(2) - items * missed if criterion >= 1 else (1 - criterion) - missed

    low, high = math.log(2.0), math.log(LARGEST)
    if spare(high) >= 0:
        return LARGEST
    return math.exp(_root(spare, low, high)) if spare(low) > 0 else 2.0


def hebbian_constant(items: float, dim: int) -> float:
    """The right side of (H3) for a memory that gets this many items right: 8 in the limit."""
    log = math.log(items)
    c = dim**2 / (items * log * (1 + dim / (2 * items)))
    return c + (4 / log) * (math.log(c * log / 2) / 2 + math.log(2 * math.pi) / 2 - float(np.euler_gamma))


def items_by_law(scale: float, constant: float) -> float:
    """The N > 1 with constant N ln N = scale, where scale is d^2 or m d."""
    target = scale / constant
    return math.exp(_root(lambda log: log * math.exp(log) - target, 1e-9, math.log(target + 3)))


def _root(of: Callable[[float], float], low: float, high: float) -> float:
    return float(brentq(of, low, high))  # pyright: ignore[reportArgumentType]


def expected_items(dim: int, rows: int, outputs: int, *, trained: bool, linear: bool, criterion: float) -> float:
    """A guess at the items a memory holds, to start a search from; `rows` is m or the rank.

    Sharp only for the Hebbian matrix. For trained memories it follows the authors' guide lines.
    """
    if not trained and not rows:
        return hebbian_capacity(dim, criterion, outputs)
    scale = dim * (rows or dim)
    if not trained:
        return max(2.0, items_by_law(scale, HEBBIAN_ALL))
    if outputs and not linear:
        return scale / GUIDE_MLP_FEW
    return items_by_law(scale, GUIDE_LINEAR if linear else GUIDE_MLP)
