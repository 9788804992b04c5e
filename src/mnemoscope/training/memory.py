"""Associative memories, many side by side in one compiled program: full-batch AdamW, and recall.

All N items are in every step, so that accuracy at a check is exact: the share of items whose own
answer is named. Seeds and numbers of items up to the program's own are arguments.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, UInt32

from mnemoscope.engine.device import loops_inside
from mnemoscope.models.memory import Pairs, Weights, construct, draw_pairs, draw_weights, logits
from mnemoscope.spec.memory import Memory
from mnemoscope.training.adamw import adamw
from mnemoscope.training.side_by_side import over_rows, take_steps

Keys = dict[str, UInt32[Array, "*n 2"]]
# Items are asked in blocks of at most so many logits.
LOGITS_AT_ONCE = 2**24


class State(NamedTuple):
    """The weights, AdamW's moments, and the number of steps taken."""

    weights: Weights
    first: Weights
    second: Weights
    taken: UInt32[Array, "*n"]


@partial(jax.jit, static_argnames="program")
def begin(program: Memory, keys: Keys, items: UInt32[Array, "n"]) -> tuple[Pairs, State]:
    """Pairs and first states; all arguments but the program have a row for each training."""

    def one(keys: Keys, items: UInt32[Array, ""]) -> tuple[Pairs, State]:
        weights = draw_weights(program, keys)
        zero = jax.tree.map(jnp.zeros_like, weights)
        return draw_pairs(program, keys, items), State(weights, zero, zero, jnp.uint32(0))

    return jax.vmap(one)(keys, items)


@partial(jax.jit, static_argnames="program")
def constructed_accuracy(program: Memory, keys: Keys, items: UInt32[Array, "n"]) -> Float[Array, "n"]:
    """The accuracy of a construction."""

    def one(row: tuple[Keys, UInt32[Array, ""]]) -> Float[Array, ""]:
        keys, items = row
        pairs = draw_pairs(program, keys, items)
        return share_right(program, pairs, construct(program, keys, pairs))

    return jax.lax.map(one, (keys, items))


def share_right(program: Memory, pairs: Pairs, weights: Weights) -> Float[Array, ""]:
    """The share of items whose own answer has the largest logit."""
    N, M = program.items, program.labels
    blocks = max(1, -(-N * M // LOGITS_AT_ONCE))
    size = -(-N // blocks)

    def right(E: Float[Array, "C d"], label: UInt32[Array, "C"]) -> Array:
        named = jnp.argmax(logits(program, pairs, weights, E), axis=1)
        return named.astype(jnp.uint32) == label

    pad = blocks * size - N
    E = jnp.pad(pairs.E, ((0, pad), (0, 0))).reshape(blocks, size, -1)
    label = jnp.pad(pairs.label, (0, pad)).reshape(blocks, size)
    told = right(E[0], label[0]) if blocks == 1 else jax.lax.map(lambda b: right(*b), (E, label))
    live = jnp.arange(blocks * size, dtype=jnp.uint32) < pairs.items
    hits = jnp.sum((told.reshape(-1) & live).astype(pairs.E.dtype))
    return hits / pairs.items.astype(pairs.E.dtype)


def advance(
    program: Memory, steps: int, pairs: Pairs, state: State, lr: Float[Array, "n"]
) -> tuple[State, Float[Array, "n"], Float[Array, "n"]]:
    """So many steps of every training, the last one's loss, and accuracy then."""
    if loops_inside(state, len(lr) * _products(program)):
        state, loss = _steps(program, steps, pairs, state, lr)
    else:
        loss = jnp.zeros_like(lr)
        for _ in range(steps):
            state, loss = _steps(program, 1, pairs, state, lr)
    return state, loss, accuracy_of(program, pairs, state.weights)


@partial(jax.jit, static_argnames=("program", "steps"), donate_argnames="state")
def _steps(
    program: Memory, steps: int, pairs: Pairs, state: State, lr: Float[Array, "n"]
) -> tuple[State, Float[Array, "n"]]:
    return take_steps(partial(_step, program), steps, pairs, state, lr)


def _products(program: Memory) -> int:
    return program.items * program.labels * program.dim


@partial(jax.jit, static_argnames="program")
def accuracy_of(program: Memory, pairs: Pairs, weights: Weights) -> Float[Array, "n"]:
    """The share of items that each memory names right."""
    return over_rows(lambda p, w: share_right(program, p, w), pairs, weights)


def _step(program: Memory, pairs: Pairs, state: State, lr: Float[Array, ""]) -> tuple[State, Float[Array, ""]]:
    loss, gradient = jax.value_and_grad(partial(cross_entropy, program, pairs))(state.weights)
    taken = state.taken + jnp.uint32(1)
    weights, first, second = adamw(state.weights, state.first, state.second, gradient, taken.astype(loss.dtype), lr)
    return State(weights, first, second, taken), loss


def cross_entropy(program: Memory, pairs: Pairs, weights: Weights) -> Float[Array, ""]:
    """-ln p(f(x)), averaged over the items."""
    told = jax.nn.log_softmax(logits(program, pairs, weights, pairs.E), axis=-1)
    own = jnp.take_along_axis(told, pairs.label[:, None], axis=1)[:, 0]
    live = jnp.arange(program.items, dtype=jnp.uint32) < pairs.items
    return -jnp.sum(jnp.where(live, own, 0.0)) / pairs.items.astype(own.dtype)
