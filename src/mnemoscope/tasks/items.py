"""Samples of a memory's items: an item by its frequency, and its label, which may be noise.

Sample i of a stream depends on nothing but i: word 0 of row i names the item, word 1 says whether the label is noise,
and word 2 is the label if it is. With N = 4 items, each with an answer of its own, and label noise 0.1, sample 7 may be
(item 2, label 2), or in a tenth of the cases (item 2, label 0), (item 2, label 1), ...
"""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, UInt32

from mnemoscope.engine.random import below, random_words
from mnemoscope.tasks.alias import token_of


class Asked(NamedTuple):
    """Items that are asked for, and the answers to learn."""

    item: UInt32[Array, "B"]
    label: UInt32[Array, "B"]


def draw_items(
    key: UInt32[Array, "2"],
    rows: UInt32[Array, "B"],
    items: UInt32[Array, ""],
    answer: UInt32[Array, "N"],
    labels: UInt32[Array, ""],
    *,
    table: UInt32[Array, "N"] | None = None,
    noise: float = 0.0,
) -> Asked:
    """The samples with these row numbers. `table` is the alias table of items that are not uniform."""
    words = random_words(key, rows, 3)
    item = below(words[:, 0], items) if table is None else token_of(words[:, 0], len(table), table)
    label = answer[item]
    if noise:
        # A word below noise * 2^32 makes the label noise.
        label = jnp.where(words[:, 1] < jnp.uint32(round(noise * 2**32)), below(words[:, 2], labels), label)
    return Asked(item, label)
