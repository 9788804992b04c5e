"""Samples of a memory's items: an item by its frequency, and its label, which may be noise.

Sample i of a stream depends on nothing but i: a word of row i names the item, and `label_noise` may replace its label.
With N = 4 items, each with an answer of its own, and label noise 0.1, sample 7 may be
(item 2, label 2), or in a tenth of the cases (item 2, label 0), (item 2, label 1), ...
"""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, UInt32

from mnemoscope.engine.random import below, random_words
from mnemoscope.tasks.alias import token_of
from mnemoscope.tasks.label_noise import replace_labels, word_below


class Asked(NamedTuple):
    """Items that are asked for, and the answers to learn."""

    item: UInt32[Array, "B"]
    label: UInt32[Array, "B"]


class ItemStreams(NamedTuple):
    """The keys of the items of samples, and of their labels' noise."""

    item: UInt32[Array, "*n 2"]
    noise: UInt32[Array, "*n 2"]


def draw_items(
    streams: ItemStreams,
    rows: UInt32[Array, "B"],
    items: UInt32[Array, ""],
    answer: UInt32[Array, "N"],
    labels: UInt32[Array, ""],
    *,
    table: UInt32[Array, "N"] | None = None,
    noise: float = 0.0,
) -> Asked:
    """The samples with these row numbers. `table` is the alias table of items that are not uniform."""
    word = random_words(streams.item, rows, 1)[:, 0]
    item = below(word, items) if table is None else token_of(word, len(table), table)
    label = answer[item]
    if noise:
        label = replace_labels(streams.noise, jnp.uint32(word_below(noise)), rows, label, labels)
    return Asked(item, label)
