"""Trainings side by side in one compiled program.

XLA's CPU compiler turns batched matrix products into slow loops, even for a batch of one, so a single
training runs without a batch axis.
"""

from collections.abc import Callable
from typing import Any, TypeVar

import jax
from jaxtyping import Array, Float

World = TypeVar("World")
State = TypeVar("State")
# A step of one training: (world, state, learning rate) -> (next state, loss).
Step = Callable[[World, State, Float[Array, ""]], tuple[State, Float[Array, ""]]]


def take_steps(
    step: Step[World, State], count: int, world: World, state: State, lr: Float[Array, "n"]
) -> tuple[State, Float[Array, "n"]]:
    """Take `count` steps of every training; return the states and the last losses."""

    def steps_of_row(world: World, state: State, lr: Float[Array, ""]) -> tuple[State, Float[Array, ""]]:
        if count == 1:
            return step(world, state, lr)
        state, losses = jax.lax.scan(lambda state, _: step(world, state, lr), state, length=count)
        return state, losses[-1]

    return over_rows(steps_of_row, world, state, lr)


def over_rows(run: Callable[..., Any], *rows: Any) -> Any:
    """Apply `run` to every row of the arguments, inside a compiled program."""
    if len(jax.tree.leaves(rows)[0]) > 1:
        return jax.vmap(run)(*rows)
    only = jax.tree.map(lambda part: part[0], rows)
    return jax.tree.map(lambda part: part[None], run(*only))
