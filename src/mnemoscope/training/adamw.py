r"""AdamW without weight decay (our choice), as an optax transformation.

    m <- 0.9 m + 0.1 g,  v <- 0.999 v + 0.001 g^2,  theta <- theta - lr mhat/(sqrt(vhat) + 1e-8)

with mhat = m / (1 - 0.9^t) and vhat = v / (1 - 0.999^t) after t steps.

`optax.adam` takes the same step but rounds in another order, lr (mhat / ...) instead of (lr mhat) / .... Paper B
trains a full matrix with a learning rate of 1000, at which rounding errors grow until accuracy changes. So this order
stays, and stored trials remain valid; the tests compare the step with optax's.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float

FIRST_MOMENT, SECOND_MOMENT, TINY = 0.9, 0.999, 1e-8


class Moments(NamedTuple):
    """Running means of the gradient and of its square, and the number of steps taken."""

    first: Any
    second: Any
    taken: Float[Array, ""]


def adamw(lr: Float[Array, ""] | float) -> optax.GradientTransformation:
    """The transformation for this learning rate, which may be traced."""

    def init(weights: Any) -> Moments:
        zero = jax.tree.map(jnp.zeros_like, weights)
        return Moments(zero, zero, jnp.zeros((), jnp.result_type(float)))

    def update(gradient: Any, state: Moments, weights: Any = None) -> tuple[Any, Moments]:
        first = jax.tree.map(lambda m, g: FIRST_MOMENT * m + (1 - FIRST_MOMENT) * g, state.first, gradient)
        second = jax.tree.map(lambda v, g: SECOND_MOMENT * v + (1 - SECOND_MOMENT) * g**2, state.second, gradient)
        taken = state.taken + 1
        unbias_first, unbias_second = 1 - FIRST_MOMENT**taken, 1 - SECOND_MOMENT**taken
        updates = jax.tree.map(
            lambda m, v: -(lr * (m / unbias_first) / (jnp.sqrt(v / unbias_second) + TINY)), first, second
        )
        return updates, Moments(first, second, taken)

    return optax.GradientTransformation(init, update)  # pyright: ignore[reportArgumentType]
