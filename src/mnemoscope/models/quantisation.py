r"""Weights rounded to b bits: 2^b levels, symmetric and evenly spaced over [-c, c], for each matrix its own c.

    +-D/2, +-3D/2, ..., +-(2^b - 1) D/2,     D = 2 c / 2^b                                   (Q1)

At b = 1 these are two numbers of opposite sign. c is the largest weight, or one of several multiples of the weights'
root mean square, whichever moves them least in mean square. A vector counts as a matrix of one row. A weight that is
exactly zero is padding, and stays zero.
"""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

# The values of c to try, in units of the weights' root mean square.
ENDS = (0.75, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0)


def quantise(W: Float[Array, "*n"], bits: int, end: Float[Array, ""]) -> Float[Array, "*n"]:
    """(Q1): each weight at the middle of its cell, those beyond the ends in the last one."""
    half = 2 ** (bits - 1)
    step = end / half
    return (jnp.clip(jnp.floor(W / step), -half, half - 1) + 0.5) * step


def round_matrix(W: Float[Array, "*n"], bits: int) -> Float[Array, "*n"]:
    """One matrix on the levels that move it least."""
    live = W != 0
    count = jnp.maximum(jnp.sum(live), 1).astype(W.dtype)
    scale = jnp.sqrt(jnp.sum(W**2) / count)
    # A matrix of zeros has no scale, and nothing to round.
    scale = jnp.where(scale > 0, scale, 1)
    largest = jnp.maximum(jnp.max(jnp.abs(W), initial=0), scale)
    ends = [*(end * scale for end in ENDS), largest]
    tried = jnp.stack([jnp.where(live, quantise(W, bits, end), 0) for end in ends])
    error = jnp.sum((tried - W) ** 2, axis=tuple(range(1, tried.ndim)))
    return tried[jnp.argmin(error)]


def round_weights(weights: Any, bits: int) -> Any:
    """Every matrix of a tree of weights; an array with more axes is a stack of matrices, such as one for each head."""

    def round_array(W: Float[Array, "*n"]) -> Float[Array, "*n"]:
        if W.ndim <= 2:
            return round_matrix(W, bits)
        return jax.vmap(round_array)(W)

    return jax.tree.map(round_array, weights)
