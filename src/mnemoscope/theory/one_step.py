r"""How many items one step from zero stores where their frequencies fall as a power: p_i ~ i^-alpha.

Gradient descent (ours). After one step on Gaussian or spherical pairs the logit of answer y for item x is

    p_x [y = f(x)] + sum_j p_j (e_j . e_x) (u_f(j) . u_y)                                    (Z1)

up to the mean of the answers. For the answer of the most frequent item, y = f(1), the sum has the term p_1 e_1 . e_x,
which is of size p_1 / sqrt(d). Item x is recalled where its own p_x is larger: p_x > p_1 / sqrt(d), or

    ranks up to about d^(1/(2 alpha)).                                                       (Z2)

Muon. The paper on which `opt-one-step` rests has ranks up to about

    d^(1 + 1/(2 alpha))                                                                      (Z3)

after one step: its d^(2 - (1 - 1/(2 alpha))^t) after t steps, at t = 1. Newton's step is not derived here.
"""

import math

from mnemoscope.spec.optimisers import OneStep


def recalled_power(optimiser: OneStep, exponent: float) -> float | None:
    """The power of d in the number of items that one step stores; None where it is not derived."""
    if exponent <= 0:
        return None
    if optimiser in ("gd", "sgd"):
        return 1 / (2 * exponent)
    return 1 + 1 / (2 * exponent) if optimiser == "muon" else None


def ample_items(dim: int, exponent: float) -> int:
    """So many items that their number does not limit one step, which stores a small share of those of (Z3)."""
    return math.ceil(dim ** (1 + 1 / (2 * max(exponent, 0.5))))
