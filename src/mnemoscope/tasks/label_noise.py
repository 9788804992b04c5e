"""Label noise: a share of the samples has a label that is uniform over all of them.

Whether label i is replaced, and by which, depends on i alone: words 0 and 1 of row i of a stream of its own. So noise
changes no other draw, and the labels that are replaced at noise 0.1 are replaced at 0.2, too. A new label may be the
right one.
"""

import jax.numpy as jnp
from jaxtyping import Array, UInt32

from mnemoscope.engine.random import below, random_words


def word_below(noise: float) -> int:
    """Words below this one, a share of `noise` of all, make a label noise."""
    return round(noise * 2**32)


def replace_labels(
    key: UInt32[Array, "2"],
    below_word: UInt32[Array, ""],
    rows: UInt32[Array, "B"],
    label: UInt32[Array, "B"],
    labels: int | UInt32[Array, ""],
) -> UInt32[Array, "B"]:
    """The labels of the samples with these row numbers, out of `labels` in all."""
    words = random_words(key, rows, 2)
    return jnp.where(words[:, 0] < below_word, below(words[:, 1], labels), label)
