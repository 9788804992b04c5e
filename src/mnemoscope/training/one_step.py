"""One step of training from zero, and the items that it stores, by rank.

The step is in `models/one_step.py`. Here its samples are drawn, and the items are asked for, most frequent first.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, UInt32

from mnemoscope.engine.free_memory import SINGULAR, check_fits
from mnemoscope.models.memory import Full, Pairs, logits
from mnemoscope.models.one_step import ROWS, Terms, expected_terms, sampled_terms, step
from mnemoscope.spec.memory import Memory
from mnemoscope.tasks.alias import alias_table
from mnemoscope.tasks.items import draw_items

# Samples that are drawn at once.
DRAWN = 2**20
# Ranks are asked for in spans that double, the first of this length; the search ends with a span without a right item.
FIRST_SPAN = 32
# The most logits in a block of items.
LOGITS_AT_ONCE = 2**24


def one_step_matrix(spec: Memory, pairs: Pairs) -> Float[Array, "d d"]:
    """W after one step on a memory's own items and answers."""
    d = spec.dim
    check_fits("dim", f"{d:,}", 8 * ((SINGULAR + 4) * d**2 + 4 * ROWS * d), "a step from zero")
    E, U, label = (np.asarray(part) for part in (pairs.E, pairs.U, pairs.label))
    E, U, label = E[: spec.items], U[: spec.labels], label[: spec.items].astype(np.int64)
    terms = _sampled(spec, pairs) if spec.batch else expected_terms(spec.probabilities, label)
    return jnp.asarray(step(spec.optimiser, E, U, terms), float)


def _sampled(spec: Memory, pairs: Pairs) -> Terms:
    """The terms of a batch of samples, from the counters 0 to B - 1."""
    table = alias_table(spec.frequencies, spec.items)
    parts = []
    for first in range(0, spec.batch, DRAWN):
        rows = jnp.arange(first, min(first + DRAWN, spec.batch), dtype=jnp.uint32)
        parts.append(_draw(pairs, rows, jnp.uint32(spec.labels), table, spec.label_noise))
    item, label = (np.concatenate(part) for part in zip(*parts, strict=True))
    return sampled_terms(item, label, spec.labels)


def _draw(
    pairs: Pairs, rows: UInt32[Array, "B"], labels: UInt32[Array, ""], table: np.ndarray | None, noise: float
) -> tuple[np.ndarray, np.ndarray]:
    assert pairs.samples is not None
    entries = None if table is None else jnp.asarray(table)
    drawn = draw_items(pairs.samples, rows, pairs.items, pairs.label, labels, table=entries, noise=noise)
    return np.asarray(drawn.item), np.asarray(drawn.label)


def right_by_rank(program: Memory, items: int, pairs: Pairs, W: Float[Array, "d d"]) -> np.ndarray:
    """Which items are answered right, from the most frequent on.

    Ranks 0 to 31, 32 to 63, 64 to 127, and so on are asked for, up to the first such span in which no item is right.
    Those beyond count as wrong: among N answers chance names the right one once in N items.
    """
    size = max(1, min(items, LOGITS_AT_ONCE // program.labels))
    right = np.zeros(items, bool)
    begin, end = 0, FIRST_SPAN
    while begin < items:
        for first in range(begin, min(end, items), size):
            rows = jnp.minimum(jnp.arange(first, first + size), len(pairs.label) - 1)
            stop = min(first + size, end, items)
            right[first:stop] = np.asarray(_right(program, pairs, W, rows))[: stop - first]
        if not right[begin:end].any():
            break
        begin, end = end, 2 * end
    return right


@partial(jax.jit, static_argnames="program")
def _right(program: Memory, pairs: Pairs, W: Float[Array, "d d"], rows: Array) -> Bool[Array, "C"]:
    named = jnp.argmax(logits(program, pairs, Full(W), pairs.E[rows]), axis=1)
    return named.astype(jnp.uint32) == pairs.label[rows]
