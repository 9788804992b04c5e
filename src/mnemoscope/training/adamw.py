r"""AdamW's step, without weight decay (our choice).

    m <- 0.9 m + 0.1 g,  v <- 0.999 v + 0.001 g^2,  theta <- theta - lr mhat/(sqrt(vhat) + 1e-8)

with mhat = m / (1 - 0.9^t) and vhat = v / (1 - 0.999^t) after t steps.
"""

from typing import TypeVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

FIRST_MOMENT, SECOND_MOMENT, TINY = 0.9, 0.999, 1e-8

Tree = TypeVar("Tree")


def adamw(
    weights: Tree, first: Tree, second: Tree, gradient: Tree, t: Array, lr: Float[Array, ""]
) -> tuple[Tree, Tree, Tree]:
    """The weights and both moments after step t, counted from one."""
    first = jax.tree.map(lambda m, g: FIRST_MOMENT * m + (1 - FIRST_MOMENT) * g, first, gradient)
    second = jax.tree.map(lambda v, g: SECOND_MOMENT * v + (1 - SECOND_MOMENT) * g**2, second, gradient)
    unbias_first, unbias_second = 1 - FIRST_MOMENT**t, 1 - SECOND_MOMENT**t
    weights = jax.tree.map(
        lambda theta, m, v: theta - lr * (m / unbias_first) / (jnp.sqrt(v / unbias_second) + TINY),
        weights,
        first,
        second,
    )
    return weights, first, second
