r"""AdamW on fresh sequences, many trainings side by side in one compiled program.

Step t draws rows t B, ..., t B + B - 1 of the training stream on
the device: nothing is drawn beforehand. Seeds, learning rates, and all sizes up to the program's
own, d and d_h apart, are arguments, so that trainings which differ in them share the program.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int32, UInt32

from mnemoscope.engine.device import loops_inside
from mnemoscope.models.facts import Frozen, Weights, draw_frozen, draw_weights, logits, scores_per_head
from mnemoscope.spec.facts import Facts
from mnemoscope.tasks.facts import Asked, Sizes, draw_facts, draw_sequences
from mnemoscope.training.adamw import adamw
from mnemoscope.training.side_by_side import over_rows, take_steps

Keys = dict[str, UInt32[Array, "*n 2"]]
# A training takes thousands of steps, of many small products: on a GPU, trying out kernels for them
# takes ten seconds, and halves the time of a step. Said for this program alone, it goes before
# XLA_FLAGS, by which a caller with many other programs says that nothing be tried.
TRY_KERNELS = {"xla_gpu_autotune_level": 1, "xla_gpu_enable_triton_gemm": True}


class State(NamedTuple):
    """The weights, AdamW's moments, and the number of steps taken."""

    weights: Weights
    first: Weights
    second: Weights
    taken: UInt32[Array, "*n"]


class Info(NamedTuple):
    """The last step's loss; on fresh sequences, how often answer and relation are right."""

    loss: Float[Array, "n"]
    accuracy: Float[Array, "n"]
    relation_accuracy: Float[Array, "n"]


class World(NamedTuple):
    """What is fixed in a training: sizes, embeddings, facts, and streams."""

    sizes: Sizes
    frozen: Frozen
    facts: UInt32[Array, "*n S R"]
    keys: Keys


class Extent(NamedTuple):
    """How much of the program's heads and hidden units a training has."""

    heads: Int32[Array, "*n"]
    width: Int32[Array, "*n"]


@partial(jax.jit, static_argnames="program")
def begin(program: Facts, keys: Keys, sizes: Sizes, extent: Extent) -> tuple[World, State]:
    """The trainings' worlds and first states; all arguments but the program have a row for each."""

    def one(keys: Keys, sizes: Sizes, extent: Extent) -> tuple[World, State]:
        weights = draw_weights(program, keys, extent.heads, extent.width)
        zero = jax.tree.map(jnp.zeros_like, weights)
        facts = draw_facts(program, sizes, keys["facts"])
        world = World(sizes, draw_frozen(program, keys), facts, keys)
        return world, State(weights, zero, zero, jnp.uint32(0))

    return jax.vmap(one)(keys, sizes, extent)


def advance(program: Facts, steps: int, world: World, state: State, lr: Float[Array, "n"]) -> tuple[State, Info]:
    """So many steps of every training, and how it stands then."""
    if loops_inside(state, len(lr) * _size(program)):
        state, loss = _steps(program, steps, world, state, lr)
    else:
        loss = jnp.zeros_like(lr)
        for _ in range(steps):
            state, loss = _steps(program, 1, world, state, lr)
    accuracy, relation = _check(program, world, state, "test")
    return state, Info(loss, accuracy, relation)


@partial(jax.jit, static_argnames=("program", "steps"), donate_argnames="state", compiler_options=TRY_KERNELS)
def _steps(
    program: Facts, steps: int, world: World, state: State, lr: Float[Array, "n"]
) -> tuple[State, Float[Array, "n"]]:
    return take_steps(partial(_step, program), steps, world, state, lr)


def final_accuracy(program: Facts, world: World, state: State) -> Float[Array, "n"]:
    """Accuracy on sequences that no stopping rule has seen."""
    return _check(program, world, state, "final")[0]


def _check(program: Facts, world: World, state: State, stream: str) -> tuple[Float[Array, "n"], Float[Array, "n"]]:
    return measure(program, world, state.weights, world.keys[stream])


def _size(program: Facts) -> int:
    """How large a step is: what heads weigh, by dimension. Where steps are large that is most."""
    return program.batch * program.heads * scores_per_head(program) * program.dim


def _step(program: Facts, world: World, state: State, lr: Float[Array, ""]) -> tuple[State, Float[Array, ""]]:
    rows = state.taken * jnp.uint32(program.batch) + jnp.arange(program.batch, dtype=jnp.uint32)
    asked = draw_sequences(program, world.sizes, world.keys["train"], rows)
    loss, gradient = jax.value_and_grad(partial(cross_entropy, program, world))(state.weights, asked)
    taken = state.taken + jnp.uint32(1)
    weights, first, second = adamw(state.weights, state.first, state.second, gradient, taken.astype(loss.dtype), lr)
    return State(weights, first, second, taken), loss


def cross_entropy(program: Facts, world: World, weights: Weights, asked: Asked) -> Float[Array, ""]:
    """-ln p(a*(s, r)), averaged over the sequences."""
    told = jax.nn.log_softmax(logits(program, world.sizes, world.frozen, weights, asked.tokens), axis=-1)
    answer = world.facts[asked.subject, asked.relation]
    return -jnp.mean(jnp.take_along_axis(told, answer[:, None], axis=1))


@partial(jax.jit, static_argnames="program")
def measure(
    program: Facts, world: World, weights: Weights, key: UInt32[Array, "n 2"]
) -> tuple[Float[Array, "n"], Float[Array, "n"]]:
    """How often the answer is right on a stream, and how often it is of the right relation."""

    def one(world: World, weights: Weights, key: UInt32[Array, "2"]) -> tuple[Float[Array, ""], Float[Array, ""]]:
        rows = jnp.arange(program.test_samples, dtype=jnp.uint32)
        asked = draw_sequences(program, world.sizes, key, rows)
        told = logits(program, world.sizes, world.frozen, weights, asked.tokens)
        named = jnp.argmax(told, axis=1).astype(jnp.uint32)
        answer = world.facts[asked.subject, asked.relation]
        own = named // world.sizes.answers == asked.relation
        kind = world.frozen.E.dtype
        return jnp.mean((named == answer).astype(kind)), jnp.mean(own.astype(kind))

    return over_rows(one, world, weights, key)
