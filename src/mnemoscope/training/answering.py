"""What a `Transformer` answers, how sure it is, and where it looks."""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, UInt32

from mnemoscope.models.transformer import Read, Weights, read
from mnemoscope.spec.transformer import Transformer
from mnemoscope.tasks.sequences import Counts, Keys, Questions, Tables, Which, ask


class World(NamedTuple):
    """What stays fixed in a training: numbers of the task, what is drawn once, weights that are not trained."""

    counts: Counts
    tables: Tables
    fixed: Weights
    keys: Keys


def outputs_of(program: Transformer, world: World) -> UInt32[Array, ""] | int:
    """The number of answers, of which a program may have more than the setting."""
    return world.counts.relations * world.counts.answers if program.task == "facts" else program.sizes.outputs


def read_answers(program: Transformer, world: World, weights: Weights, asked: Questions) -> Read:
    """What the model says."""
    return read(program, {**world.fixed, **weights}, asked, outputs_of(program, world))


def surprise(logits: Float[Array, "B Q A"], answer: UInt32[Array, "B Q"]) -> Float[Array, "B Q"]:
    """-ln p(answer)."""
    log_p = jax.nn.log_softmax(logits.astype(float), axis=-1)
    return -jnp.take_along_axis(log_p, answer[..., None], axis=-1)[..., 0]


def measured(program: Transformer, world: World, weights: Weights, which: Which) -> dict[str, Float[Array, ""]]:
    asked = ask(program, world.counts, world.tables, world.keys, which)
    said = read_answers(program, world, weights, asked)
    named = jnp.argmax(said.logits, axis=-1).astype(jnp.uint32)
    share = partial(_share, asked.counted)
    confidence = jnp.max(jax.nn.softmax(said.logits.astype(float), axis=-1), axis=-1)
    found = {"accuracy": share(named == asked.answer), "confidence": share(confidence)}
    if asked.relation is not None:
        # An answer of the right relation that belongs to another subject.
        right = share(named // world.counts.answers == asked.relation[:, None])
        found |= {"relation_accuracy": right, "hallucination": right - found["accuracy"]}
    if program.task != "random-strings":
        weight = [_on_sought(asked, look) for look in said.looks]
        found["attention_best"] = jnp.max(jnp.stack([jnp.max(part) for part in weight]))
    return found


class Looks(NamedTuple):
    """Sequences, their right answers and those of the model, and by layer where each head looks when it answers."""

    tokens: UInt32[Array, "B T"]
    answer: UInt32[Array, "B Q"]
    named: UInt32[Array, "B Q"]
    weights: list[Float[Array, "B H Q T"]]


@partial(jax.jit, static_argnames=("program", "count"))
def look(program: Transformer, world: World, weights: Weights, count: int) -> Looks:
    """The first sequences of the test stream."""
    rows = jnp.arange(count, dtype=jnp.uint32)
    second = jnp.bool_(True) if program.new_subjects else None
    asked = ask(program, world.counts, world.tables, world.keys, Which("test", rows, second=second))
    said = read_answers(program, world, weights, asked)
    return Looks(asked.tokens, asked.answer, jnp.argmax(said.logits, axis=-1).astype(jnp.uint32), said.looks)


def _share(counted: Array, what: Array) -> Float[Array, ""]:
    """The mean over what counts."""
    total = jnp.sum(counted, dtype=float)
    return jnp.sum(jnp.where(counted, what.astype(float), 0.0)) / jnp.maximum(total, 1.0)


def _on_sought(asked: Questions, look: Float[Array, "B H Q T"]) -> Float[Array, "H"]:
    """The mean weight of each head on the positions that decide."""
    there = jnp.sum(jnp.where(asked.sought[:, None], look.astype(float), 0.0), axis=-1)
    counted = jnp.broadcast_to(asked.counted[:, None], there.shape)
    return jnp.sum(jnp.where(counted, there, 0.0), axis=(0, 2)) / jnp.maximum(jnp.sum(asked.counted, dtype=float), 1.0)


def heads(program: Transformer, world: World, weights: Weights, which: Which) -> dict[str, Float[Array, ""]]:
    """The weight that each head of each layer puts on the positions that decide, and how sure right answers are."""
    asked = ask(program, world.counts, world.tables, world.keys, which)
    said = read_answers(program, world, weights, asked)
    right = asked.counted & (jnp.argmax(said.logits, axis=-1).astype(jnp.uint32) == asked.answer)
    sure = jnp.max(jax.nn.softmax(said.logits.astype(float), axis=-1), axis=-1)
    found = {
        "confidence_when_right": _share(right, sure) / jnp.any(right),
        "confidence_when_wrong": _share(asked.counted & ~right, sure) / jnp.any(asked.counted & ~right),
    }
    if program.task == "random-strings":
        return found
    best = jnp.zeros(())
    for layer, look in enumerate(said.looks):
        weight = _on_sought(asked, look)
        top = jnp.argmax(jnp.abs(look), axis=-1)
        sought = jnp.broadcast_to(asked.sought[:, None], look.shape)
        there = jnp.take_along_axis(sought, top[..., None], axis=-1)[..., 0]
        counted = jnp.broadcast_to(asked.counted[:, None], there.shape)
        for head in range(program.heads):
            found[f"attention_{layer + 1}_{head + 1}"] = weight[head]
            best = jnp.maximum(best, _share(counted[:, head], there[:, head]))
    return {**found, "attention_accuracy": best}
