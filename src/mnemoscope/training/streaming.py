"""Folds over a stream of samples, chunk by chunk, so that memory does not grow with N.

Samples are made where they are used and thrown away: only the fold's running sums stay. A chunk's
size changes the order in which sums are taken, and so the last digits, nothing else.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, UInt32

from mnemoscope.spec import Retrieval
from mnemoscope.tasks.retrieval import Batch, sample

Carry = TypeVar("Carry")
Body = Callable[[Carry, Batch, Bool[Array, "B"]], Carry]
Progress = Callable[[float], None]

# Tokens to a chunk where a token costs a few scalars: enough to hide a loop's overhead, and small
# enough for the caches.
TOKENS_PER_CHUNK = 2**17
# Bytes of the largest array of a chunk where every sample carries vectors.
BYTES_PER_CHUNK = 2**24
# Scalars handled between two reports of progress, which is also how soon Ctrl-C is heard.
WORK_PER_SEGMENT = 2**28


class Source(NamedTuple):
    """A stream of samples: its key and the task's permutation."""

    key: UInt32[Array, "2"]
    permutation: UInt32[Array, "V"]


def chunk_by_token(spec: Retrieval) -> int:
    """Samples to a chunk when each token is a table look-up."""
    return max(1, min(4096, TOKENS_PER_CHUNK // spec.length))


def chunk_by_sample(spec: Retrieval) -> int:
    """Samples to a chunk when each sample carries its values (L x d), hidden units and logits."""
    widest = max(spec.length * spec.dim, spec.width, spec.vocab)
    return int(np.clip(BYTES_PER_CHUNK // (4 * widest), 8, 4096))


def fold(
    body: Body[Carry], carry: Carry, source: Source, first: Array, stop: Array, *,
    length: int, chunk: int,
) -> Carry:  # fmt: skip
    """body(carry, batch, live) over samples first..stop-1; dead rows pad the last chunk."""

    def one(number: Array | int, carry: Carry) -> Carry:
        index = first + jnp.uint32(number) * jnp.uint32(chunk) + lax.iota(jnp.uint32, chunk)
        # An index that wrapped past 2**32 is dead too.
        live = (index >= first) & (index < stop)
        batch = _held(partial(sample, source.key, index, source.permutation, length), live[0])
        return body(carry, batch, live)

    chunks = (stop - first + jnp.uint32(chunk - 1)) // jnp.uint32(chunk)
    return lax.fori_loop(0, chunks.astype(jnp.int32), one, carry)


def _held(make: Callable[[], Batch], live: Bool[Array, ""]) -> Batch:
    """make(), computed once and kept in memory before anything reads it.

    Left to itself, XLA's CPU compiler repeats the random generator inside every loop that reads a
    token, and then no longer vectorises it: three times slower. It does not look through a branch
    that it cannot decide, so the chunk is drawn in one (the first row of a chunk is always live).
    """
    nothing = jax.tree.map(lambda made: jnp.zeros(made.shape, made.dtype), jax.eval_shape(make))
    return lax.platform_dependent(
        cpu=lambda: lax.cond(live, make, lambda: nothing), default=lambda: make()
    )


def in_segments(
    run: Callable[[Carry, Array, Array], Carry],
    carry: Carry,
    samples: int,
    work_per_sample: int,
    chunk: int,
    progress: Progress | None,
) -> Carry:
    """run(carry, first, stop) over segments of 0..samples-1, with word of progress between them.

    A segment is a whole number of chunks, so cutting the samples up changes no sum.
    """
    size = max(1, WORK_PER_SEGMENT // (work_per_sample * chunk)) * chunk
    for first in range(0, samples, size):
        stop = min(first + size, samples)
        carry = run(carry, jnp.uint32(first), jnp.uint32(stop))
        if progress is not None:
            jax.block_until_ready(carry)
            progress((stop - first) / samples)
    return carry
