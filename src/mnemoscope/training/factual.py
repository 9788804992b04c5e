r"""AdamW on fresh sequences, many trainings side by side in one compiled program.

Step t draws rows t B, ..., t B + B - 1 of the training stream on
the device: nothing is drawn beforehand. Seeds, learning rates, and heads and widths up to the
program's own are arguments, so that trainings which differ in them share the program.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, UInt32

from mnemoscope.models.factual import Frozen, Weights, draw_frozen, draw_weights, logits
from mnemoscope.spec.facts import Facts
from mnemoscope.tasks.facts import Asked, draw_facts, draw_sequences
from mnemoscope.training.adamw import adamw

Keys = dict[str, UInt32[Array, "*n 2"]]


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
    """What is fixed in a training: embeddings, facts, and streams."""

    frozen: Frozen
    facts: UInt32[Array, "*n S R"]
    keys: Keys


@partial(jax.jit, static_argnames="program")
def begin(program: Facts, keys: Keys, heads: Array, width: Array) -> tuple[World, State]:
    """The trainings' worlds and first states; all arguments but the program have a row for each."""

    def one(keys: Keys, heads: Array, width: Array) -> tuple[World, State]:
        weights = draw_weights(program, keys, heads, width)
        zero = jax.tree.map(jnp.zeros_like, weights)
        world = World(draw_frozen(program, keys), draw_facts(program, keys["facts"]), keys)
        return world, State(weights, zero, zero, jnp.uint32(0))

    return jax.vmap(one)(keys, heads, width)


def advance(
    program: Facts, steps: int, world: World, state: State, lr: Float[Array, "n"]
) -> tuple[State, Info]:
    """So many steps of every training, and how it stands then.

    On a CPU one call a step, since XLA uses one core inside its loops; elsewhere one call for all.
    """
    if jax.tree.leaves(state)[0].devices().pop().platform != "cpu":
        state, loss = _steps(program, steps, world, state, lr)
    else:
        loss = jnp.zeros_like(lr)
        for _ in range(steps):
            state, loss = _steps(program, 1, world, state, lr)
    accuracy, relation = _check(program, world, state)
    return state, Info(loss, accuracy, relation)


@partial(jax.jit, static_argnames=("program", "steps"), donate_argnames="state")
def _steps(
    program: Facts, steps: int, world: World, state: State, lr: Float[Array, "n"]
) -> tuple[State, Float[Array, "n"]]:
    def one(world: World, state: State, lr: Float[Array, ""]) -> tuple[State, Float[Array, ""]]:
        if steps == 1:
            return _step(program, world, state, lr)
        state, losses = jax.lax.scan(
            lambda state, _: _step(program, world, state, lr), state, length=steps
        )
        return state, losses[-1]

    return jax.vmap(one)(world, state, lr)


@partial(jax.jit, static_argnames="program")
def _check(
    program: Facts, world: World, state: State
) -> tuple[Float[Array, "n"], Float[Array, "n"]]:
    return jax.vmap(lambda w, s: _measure(program, w, s.weights, "test"))(world, state)


@partial(jax.jit, static_argnames="program")
def final_accuracy(program: Facts, world: World, state: State) -> Float[Array, "n"]:
    """Accuracy on sequences that no stopping rule has seen."""
    return jax.vmap(lambda w, s: _measure(program, w, s.weights, "final")[0])(world, state)


def _step(
    program: Facts, world: World, state: State, lr: Float[Array, ""]
) -> tuple[State, Float[Array, ""]]:
    rows = state.taken * jnp.uint32(program.batch) + jnp.arange(program.batch, dtype=jnp.uint32)
    asked = draw_sequences(program, world.keys["train"], rows)
    loss, gradient = jax.value_and_grad(partial(cross_entropy, program, world))(
        state.weights, asked
    )
    taken = state.taken + jnp.uint32(1)
    weights, first, second = adamw(
        state.weights, state.first, state.second, gradient, taken.astype(loss.dtype), lr
    )
    return State(weights, first, second, taken), loss


def cross_entropy(program: Facts, world: World, weights: Weights, asked: Asked) -> Float[Array, ""]:
    """-ln p(a*(s, r)), averaged over the sequences."""
    told = jax.nn.log_softmax(logits(program, world.frozen, weights, asked.counts), axis=-1)
    answer = world.facts[asked.subject, asked.relation]
    return -jnp.mean(jnp.take_along_axis(told, answer[:, None], axis=1))


def _measure(
    program: Facts, world: World, weights: Weights, stream: str
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """How often the answer is right, and how often it is at least one of its relation's."""
    rows = jnp.arange(program.test_samples, dtype=jnp.uint32)
    asked = draw_sequences(program, world.keys[stream], rows)
    named = jnp.argmax(logits(program, world.frozen, weights, asked.counts), axis=1)
    answer = world.facts[asked.subject, asked.relation]
    own = named // program.answers == asked.relation
    kind = world.frozen.E.dtype
    return jnp.mean((named == answer).astype(kind)), jnp.mean(own.astype(kind))
