"""Matrix products on a GPU's tensor cores, nearly as exact as float32 ones and several times as fast.

A float32 matrix is split into two of float16, x = high + low, which together hold 22 of its 24 bits; sums are taken in
float32. Powers of two scale each matrix into float16's range and leave its digits alone.
"""

from functools import partial

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Float16, Float32, Int32

# Scaled numbers are below 2^LARGEST, where float16 ends at 65504. It holds integers up to EXACT.
LARGEST, EXACT = 14, 2**11

_multiply = partial(lax.dot_general, precision=lax.Precision.DEFAULT, preferred_element_type=jnp.float32)


def power_of_two(largest: Float[Array, ""]) -> Float[Array, ""]:
    """What to multiply numbers with that are at most `largest`, so that they are below 2^LARGEST."""
    _, exponent = jnp.frexp(jnp.where(largest > 0, largest, 1))  # largest < 2^exponent
    return jnp.ldexp(jnp.ones_like(largest), LARGEST - exponent)  # exp2 would round


def split(x: Float32[Array, "*n"]) -> tuple[Float16[Array, "*n"], Float16[Array, "*n"]]:
    """x as the sum of two float16 arrays."""
    # Not a cast and back, which XLA may take for nothing.
    high = lax.reduce_precision(x, exponent_bits=5, mantissa_bits=10)
    return high.astype(jnp.float16), (x - high).astype(jnp.float16)


def product_with_counts(counts: Int32[Array, "n k"], x: Float32[Array, "k h"]) -> Float32[Array, "n h"]:
    """counts @ x, for counts of at most EXACT in size."""
    scale = power_of_two(jnp.max(jnp.abs(x)))
    both = jnp.concatenate(split(scale * x), axis=1)
    high, low = jnp.split(_multiply(counts.astype(jnp.float16), both, (((1,), (0,)), ((), ()))), 2, axis=1)
    return (high + low) / scale


def product_of_pairs(x: Float32[Array, "n k"], y: Float32[Array, "k h"], most: Array) -> Float32[Array, "n h"]:
    """x @ y as high high + high low + low high, where no |x| is above `most`; what is left out is 2^-22 of it."""
    scale_x, scale_y = power_of_two(most), power_of_two(jnp.max(jnp.abs(y)))
    high, low = split(scale_x * x)
    y_high, y_low = split(scale_y * y)
    times = partial(_multiply, dimension_numbers=(((1,), (0,)), ((), ())))
    of_high, between = jnp.split(times(high, jnp.concatenate([y_high, y_low], axis=1)), 2, axis=1)
    return (of_high + (between + times(low, y_high))) / scale_x / scale_y


def product_with_table(
    counts: Int32[Array, "n k"], x: Float32[Array, "k h"], rows: Array | None = None
) -> Float32[Array, "n h"]:
    """counts @ x, for counts of any size.

    A tensor core rounds its sums towards zero: once a sum is large, every addition to it leaves a little out. So what
    rows and columns have in common, r c^T / sum(r), is taken from the counts and multiplied by itself. `rows` are the
    sums r of rows, where they are known.
    """
    counts = counts.astype(jnp.float32)
    r, c = counts.sum(axis=1) if rows is None else rows.astype(jnp.float32), counts.sum(axis=0)
    c = c / jnp.maximum(c.sum(), 1)
    # No count, and nothing that is taken from one, is above its row's sum.
    return product_of_pairs(counts - r[:, None] * c, x, jnp.max(r)) + r[:, None] * (c @ x)


def product_over_rows(x: Float[Array, "V d"], y: Float[Array, "V h"]) -> Float[Array, "d h"]:
    """x.T @ y in full precision, over parts of the long axis side by side: the result alone would not fill a GPU."""
    V = x.shape[0]
    parts = max(1, min(16, V // 64))
    x, y = (jnp.pad(part, ((0, -V % parts), (0, 0))).reshape(parts, -1, part.shape[1]) for part in (x, y))
    return jnp.einsum("pvd,pvh->pdh", x, y).sum(axis=0)


def product_with_transpose(
    x: Float32[Array, "n k"], y: Float32[Array, "m k"]
) -> tuple[Float32[Array, "n m"], Float32[Array, ""]]:
    """x @ y.T times a power of two, and that power.

    The product is high high + high low + low high; what is left out is 2^-22 of it.
    """
    scale_x, scale_y = (power_of_two(jnp.max(jnp.abs(part))) for part in (x, y))
    (x_high, x_low), (y_high, y_low) = split(scale_x * x), split(scale_y * y)
    left = jnp.concatenate([x_low, x_high, x_high], axis=1)
    right = jnp.concatenate([y_high, y_low, y_high], axis=1)
    return _multiply(left, right, (((1,), (1,)), ((), ()))), scale_x * scale_y
