"""Several steps of several trainings, in one compiled program."""

from collections.abc import Callable
from typing import TypeVar

import jax
from jaxtyping import Array, Float

World = TypeVar("World")
State = TypeVar("State")
# One training's step: what is fixed, its state, its learning rate; the next state, and the loss.
Step = Callable[[World, State, Float[Array, ""]], tuple[State, Float[Array, ""]]]


def take_steps(
    step: Step[World, State], count: int, world: World, state: State, lr: Float[Array, "n"]
) -> tuple[State, Float[Array, "n"]]:
    """So many steps of every training, and the last one's loss; all have a row for each."""

    def one(world: World, state: State, lr: Float[Array, ""]) -> tuple[State, Float[Array, ""]]:
        if count == 1:
            return step(world, state, lr)
        state, losses = jax.lax.scan(lambda state, _: step(world, state, lr), state, length=count)
        return state, losses[-1]

    return jax.vmap(one)(world, state, lr)
