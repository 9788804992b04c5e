r"""What a trained `Transformer` knows of every fact or string, each asked for exactly once.

    bits_of(f)    = max(0, h - c_f), h the entropy of one item, c_f = -log2 p(f) what the model takes to code it
    bits_stored   = sum_f bits_of(f): what the model stores, at most N h
    bits_coded    = max(0, N h - sum_f c_f): the same without the floor, what a code by this model alone would save

An item is the answer of a fact, log2 D bits, since its relation gives the D answers away; the label of a token, log2 V;
or a string of T uniform tokens, T log2 V. `bits_stored` leaves out items that the model is wrong about. Of a model that
knows nothing but guesses unevenly it is above 0, so `bits_coded`, which is a lower bound whatever the model, stands
beside it. Where facts have frequencies, recall is also taken by rank: 1 to 10, 11 to 100, and so on, from frequent to
rare.
"""

from itertools import pairwise

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from mnemoscope.models.transformer import Weights
from mnemoscope.spec.token_laws import UNIFORM
from mnemoscope.spec.transformer import Transformer
from mnemoscope.tasks.sequences import Counts, Which, ask
from mnemoscope.training.answering import World, read_answers, surprise

# The least sequences in one part of the items.
LEAST = 256
LN2 = 0.6931471805599453


def measure_items(program: Transformer, world: World, weights: Weights) -> dict[str, Float[Array, ""]]:
    """Recall and bits over all items; of facts, over those of the first batch."""
    counts = world.counts
    count, each = _count_and_bits(program, counts)
    most = program.sizes.items
    size = min(most, max(LEAST, program.batch))
    edges = rank_edges(program)

    def part(sums: tuple[Array, ...], number: Array) -> tuple[tuple[Array, ...], None]:
        item = number * jnp.uint32(size) + lax.iota(jnp.uint32, size)
        there = item < count
        which = Which("test", item, item=jnp.minimum(item, count - 1), second=jnp.bool_(False))
        asked = ask(program, counts, world.tables, world.keys, which)
        said = read_answers(program, world, weights, asked)
        right = jnp.all(jnp.argmax(said.logits, axis=-1).astype(jnp.uint32) == asked.answer, axis=1) & there
        code = jnp.where(there, jnp.sum(surprise(said.logits, asked.answer), axis=1) / LN2, 0.0)
        known = jnp.where(there, jnp.maximum(0.0, each - code), 0.0)
        saved = jnp.where(there, each - code, 0.0)
        by_rank = [jnp.sum(right & (item >= low) & (item < high), dtype=float) for low, high in pairwise(edges)]
        new = (jnp.sum(right, dtype=float), jnp.sum(known), jnp.sum(saved), *by_rank)
        return jax.tree.map(jnp.add, sums, new), None

    zero = tuple(jnp.zeros((), float) for _ in range(3 + max(0, len(edges) - 1)))
    numbers = lax.iota(jnp.uint32, -(-most // size))
    (right, known, saved, *by_rank), _ = lax.scan(part, zero, numbers)
    total = count.astype(float)
    bands = {
        f"recall_rank_{low + 1}": found / (min(high, most) - low)
        for found, (low, high) in zip(by_rank, pairwise(edges), strict=True)
    }
    bits = {"bits_stored": known, "bits_coded": jnp.maximum(0.0, saved)}
    # Nothing says which string is asked for, so that none is named from its first token on.
    return bits if program.task == "random-strings" else {"recalled": right / total, **bits, **bands}


def rank_edges(program: Transformer) -> list[int]:
    """The bands of facts with frequencies: ranks 1 to 10, 11 to 100, ... as 0, 10, 100, ..., and their number."""
    if program.task != "facts" or program.frequencies == UNIFORM:
        return []
    items = program.subjects * program.relations
    return [0, *(10**k for k in range(1, 10) if 10**k < items), items]


def _count_and_bits(program: Transformer, counts: Counts) -> tuple[Array, Array | float]:
    """How many items there are, and the bits of one; a program may have more of them than the setting."""
    if program.task == "facts":
        return counts.items, jnp.log2(counts.answers.astype(float))
    if program.task == "random-strings":
        return counts.strings, program.sizes.bits_each
    return jnp.uint32(program.sizes.items), program.sizes.bits_each
