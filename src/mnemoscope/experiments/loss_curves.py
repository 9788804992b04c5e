"""The course of a memory's training: its loss, and each item's, step by step.

A trial keeps a check every 32 steps and stops at its target. Here training takes a given number of steps whatever it
has reached, by the same compiled step, and the loss is that over all items, without label noise or samples. Nothing is
kept in the store.
"""

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mnemoscope.engine.device import find_device, numerics
from mnemoscope.models.memory import Pairs, Weights, logits
from mnemoscope.spec import Memory
from mnemoscope.spec.validators import Device
from mnemoscope.training.memory import MEMORY, draw_streams
from mnemoscope.training.trained import State


class Course(NamedTuple):
    """Before each of the steps asked for: the training loss, and -ln p(f(x)) of every item."""

    loss: np.ndarray
    each: np.ndarray


def follow(spec: Memory, seed: int, steps: Sequence[int], *, one_hot: bool = False, device: Device = "auto") -> Course:
    """The losses of one training before these steps, which rise; with `one_hot`, items and answers are unit vectors.

    The embedding law of the spec does not matter then, and d must be N.
    """
    place = find_device(device)
    program = MEMORY.program(spec, "cpu").replace(items=spec.items)
    with numerics("float32", place):
        world, state = MEMORY.start(program, draw_streams([(spec, seed)]))
        world, state = jax.tree.map(lambda part: part[0], (world, state))
        if one_hot:
            world = world._replace(E=jnp.eye(spec.items), U=jnp.eye(spec.items))
        lr, taken = jnp.asarray(spec.rate, float), 0
        rows = []
        for step in steps:
            state = _take(program, world, state, lr, jnp.uint32(step - taken))
            taken = step
            rows.append(jax.device_get(_losses(program, world, state.weights, state.taken)))
    return Course(np.array([loss for loss, _ in rows]), np.stack([each for _, each in rows]))


@partial(jax.jit, static_argnames="program")
def _take(program: Memory, world: Pairs, state: State, lr: Array, count: Array) -> State:
    def one(_: Array, state: State) -> State:
        after, _ = MEMORY.step(program, world, state, lr)
        return after

    return jax.lax.fori_loop(jnp.uint32(0), count, one, state)


@partial(jax.jit, static_argnames="program")
def _losses(
    program: Memory, world: Pairs, weights: Weights, taken: Array
) -> tuple[Float[Array, ""], Float[Array, "N"]]:
    log_p = jax.nn.log_softmax(logits(program, world, weights, world.E), axis=-1)
    own = jnp.take_along_axis(log_p, world.label[:, None], axis=1)[:, 0]
    return MEMORY.loss(program, world, weights, taken), -own
