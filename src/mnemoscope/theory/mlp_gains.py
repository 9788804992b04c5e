r"""How an MLP changes the first two steps.

Its input there is a mean of L tokens, of squared norm s = 1/L. Pre-activations are then small, and
the kernel between sequences is expanded in their overlap (docs/theory/mlp.md). With mu_k the mean
of phi's k-th derivative at s, the gradient sees

    r_ij = sum_i' A[y_i, y_i'] ( mu_1^2 xbar_i'.v_ij                 linear, as without an MLP
                               + mu_2^2 (xbar_i'.xbar_i) xbar_i'.v_ij    pair
                               + mu_0 mu_2 xbar_i.v_ij               constant
                               + mu_0 mu_1 wbar.v_ij )               drift, for finite m
                                                                                             (F1)
"""

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from mnemoscope.theory.activation import coefficients, mean_derivatives, mean_square_slope, power
from mnemoscope.theory.spec_grid import Number, Sizes


@dataclass(frozen=True)
class Gains:
    """The strength of each part of (F1). Without an MLP: linear 1, all others 0."""

    linear: Number = 1.0
    pair: Number = 0.0
    constant: Number = 0.0
    # A sequence's overlap with itself, beyond the linear and constant parts.
    own: Number = 0.0
    drift: Number = 0.0
    # Variances that a finite width lets through: of features beyond the linear part, by the mean
    # slope, and of all features, by the spread of the slope.
    rest: Number = 0.0
    slopes: Number = 0.0
    # 1/m, or 0 without an MLP.
    inverse_width: Number = 0.0


def gains(spec: Sizes) -> Gains:
    """The gains of a spec's first two steps."""
    if not spec.hidden:
        return Gains()
    lengths, at = np.unique(spec.length, return_inverse=True)
    parts = np.array([_parts(spec.activation, length) for length in lengths.tolist()])
    gain = Gains(*parts.T[:, at], inverse_width=1 / spec.width)
    # All sequences share the tokens' mean, of squared norm 1/V, and a trigger in the values. Along
    # these the pair part acts as a linear one (F9).
    shared = 1 / spec.vocab + (1 / spec.length**2 if spec.trigger == "additive" else 0.0)
    return replace(gain, linear=gain.linear + gain.pair * shared)


@lru_cache(maxsize=4096)
def _parts(activation: str, length: float) -> tuple[float, ...]:
    """All gains but 1/m, in their order."""
    s = 1 / length
    mean, slope_mean, curvature = mean_derivatives(activation, s)
    step = 1e-3
    above, below = power(activation, np.array([s * (1 + step), s * (1 - step)])).tolist()
    slope = (above - below) / (2 * step * s)  # d/ds E phi^2
    total = float(power(activation, np.array([s]))[0])
    first = coefficients(activation, np.array([s]), 2)[0]
    beyond = max(0.0, total - float(first @ first))
    uneven = max(0.0, mean_square_slope(activation, s) - slope_mean**2)
    return (
        slope_mean**2,  # linear
        curvature**2,  # pair
        mean * curvature,  # constant
        slope - slope_mean**2 - mean * curvature,  # own
        mean * slope_mean,  # drift
        length**2 * slope_mean**2 * beyond,  # rest (F6)
        length**2 * uneven * max(0.0, total - float(first[0]) ** 2),  # slopes (F6)
    )
