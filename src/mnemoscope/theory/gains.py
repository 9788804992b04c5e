r"""What an MLP makes of the first two steps.

There its input is a mean of L tokens, of squared norm s = 1/L, so pre-activations are small, and
the kernel between sequences may be expanded in their overlap (docs/theory/mlp.md). With mu_k the
mean of phi's k-th derivative at s, the gradient sees

    r_ij = sum_i' A[y_i, y_i'] ( mu_1^2 xbar_i'.v_ij                 linear, as without an MLP
                               + mu_2^2 (xbar_i'.xbar_i) xbar_i'.v_ij    pair
                               + mu_0 mu_2 xbar_i.v_ij               constant
                               + mu_0 mu_1 wbar.v_ij )               drift, for finite m
                                                                                             (F1)
"""

import math
from dataclasses import dataclass

import numpy as np

from mnemoscope.spec import Retrieval
from mnemoscope.theory.activation import coefficients, mean_derivatives, power


@dataclass(frozen=True)
class Gains:
    """How strongly each part of (F1) enters. Without an MLP: linear 1, all others 0."""

    linear: float = 1.0
    pair: float = 0.0
    constant: float = 0.0
    # A sequence's overlap with itself, beyond the linear and the constant part.
    own: float = 0.0
    drift: float = 0.0
    # The rest of the features' variance over the linear one, which 1/m lets through.
    rest: float = 0.0
    # 1/m, or 0 without an MLP.
    inverse_width: float = 0.0


def gains(spec: Retrieval) -> Gains:
    """The gains of a spec's first two steps."""
    if not spec.width:
        return Gains()
    s = 1 / spec.length
    zero, one, two = mean_derivatives(spec.activation, s)
    step = 1e-3
    above, below = power(spec.activation, np.array([s * (1 + step), s * (1 - step)])).tolist()
    slope = (above - below) / (2 * step * s)  # d/ds E phi^2
    total = float(power(spec.activation, np.array([s]))[0])
    first = coefficients(spec.activation, np.array([s]), 2)[0]
    beyond = max(0.0, total - float(first @ first))
    return Gains(
        linear=one**2,
        pair=two**2,
        constant=zero * two,
        own=slope - one**2 - zero * two,
        drift=zero * one,
        rest=math.sqrt(beyond / s) * abs(one),
        inverse_width=1 / spec.width,
    )
