"""Random words for laws and tasks: streams whose every number depends on its index alone.

A law or a task of the user's own is handed a stream, and draws from it with the functions below:

    normal(words, rows, dim)         a matrix of standard normal numbers; row i is the same however many rows are drawn
    below(words, index, bounds)      whole numbers in 0..bound-1 for sample `index`, one for each bound
    uniform(words, index, count)     numbers in [0, 1) for sample `index`
    words.named("facts")             another stream, independent of this one

So a task draws a table that never changes, such as the answer to every question, as `below(words.named("answers"),
question, [answers])[0]`: nothing is stored.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int32, UInt32

from mnemoscope.engine import random


@partial(jax.tree_util.register_dataclass, data_fields=["key", "last"], meta_fields=["columns", "before"])
@dataclass(frozen=True)
class Words:
    """A stream of random words.

    Where a program serves many dimensions, `columns` is the width of its matrices, whose surplus stays zero. With
    `last`, row `before` comes from that stream: a frame draws the trigger among the tokens.
    """

    key: UInt32[Array, "*n 2"]
    columns: int = 0
    last: UInt32[Array, "*n 2"] | None = None
    before: int = 0

    def named(self, name: str) -> "Words":
        """A further stream, independent of this one and of those of other names."""
        high, low = (jnp.uint32(word) for word in np.frombuffer(hashlib.sha256(name.encode()).digest()[:8], "<u4"))
        return replace(self, key=jnp.stack(random.threefry(self.key, high, low)), last=None, before=0)


def normal(words: Words, rows: int, dim: Any) -> Float[Array, "{rows} D"]:
    """A matrix of standard normal numbers; `dim` may be known only when the program runs."""
    if words.last is not None and rows > words.before:
        head = normal(replace(words, last=None), words.before, dim)
        return jnp.concatenate([head, normal(Words(words.last, words.columns), rows - words.before, dim)])
    if isinstance(dim, int | np.integer):
        return random.normal(words.key, rows, int(dim)).astype(float)
    return random.normal(words.key, rows, words.columns, jnp.asarray(dim, jnp.uint32)).astype(float)


def below(words: Words, index: Any, bounds: Sequence[Any]) -> Int32[Array, "{len(bounds)}"]:
    """Whole numbers from 0 up to each bound, for the sample of this index."""
    drawn = _row(words, index, len(bounds))
    return random.below(drawn, jnp.asarray(bounds, jnp.uint32)).astype(jnp.int32)


def uniform(words: Words, index: Any, count: int) -> Float[Array, "{count}"]:
    """`count` numbers in [0, 1) for the sample of this index, in steps of 2**-24."""
    return ((_row(words, index, count) >> jnp.uint32(8)).astype(jnp.float32) * jnp.float32(2.0**-24)).astype(float)


def _row(words: Words, index: Any, count: int) -> UInt32[Array, "{count}"]:
    return random.random_words(words.key, jnp.asarray(index).astype(jnp.uint32)[None], count)[0]
