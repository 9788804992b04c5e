"""Folds over a stream of samples, chunk by chunk, so that memory does not grow with N.

Samples are drawn where they are used and then dropped: only the fold's running sums stay. The chunk
size changes the order of the sums, and so the last digits, but nothing else.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple, TypeVar

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, UInt32

from mnemoscope.engine.interrupts import stop_if_asked
from mnemoscope.engine.layout import Layout, Platform
from mnemoscope.spec import Retrieval
from mnemoscope.tasks.alias import alias_table
from mnemoscope.tasks.label_noise import replace_labels
from mnemoscope.tasks.retrieval import Batch, Drawn, draw, read

Carry = TypeVar("Carry")
Arrays = TypeVar("Arrays", Drawn, Batch)
Body = Callable[[Carry, Batch, Bool[Array, "B"]], Carry]
Progress = Callable[[float], None]


class Noise(NamedTuple):
    """Label noise: its stream, and the random word below which it replaces a label."""

    key: UInt32[Array, "*n 2"]
    below: UInt32[Array, "*n"]


class Source(NamedTuple):
    """A stream of samples: its key, the task's permutation, and the alias table of tokens that are not uniform.

    Training after the three steps may also take the samples over and over, N of them in all (`cycle`), and see labels
    through noise.
    """

    key: UInt32[Array, "2"]
    permutation: UInt32[Array, "V"]
    table: UInt32[Array, "V"] | None = None
    cycle: UInt32[Array, ""] | None = None
    noise: Noise | None = None

    @classmethod
    def of(cls, spec: Retrieval, key: UInt32[Array, "2"], permutation: UInt32[Array, "V"]) -> "Source":
        """The samples of a spec."""
        table = alias_table(spec.tokens, spec.vocab)
        return cls(key, permutation, None if table is None else jnp.asarray(table))


class Count(NamedTuple):
    """The number of samples, inside a compiled program.

    In a batch every trial has its own number of `samples`, while the loop over chunks is shared
    and runs to `most`, the largest of them.
    """

    samples: UInt32[Array, ""]
    most: UInt32[Array, ""]

    @classmethod
    def of(cls, samples: int) -> "Count":
        """The count of a trial that runs alone."""
        return cls(jnp.uint32(samples), jnp.uint32(samples))

    @property
    def total(self) -> Array:
        """N as a number to divide by."""
        return self.samples.astype(float)


class Segments(NamedTuple):
    """The number of samples, outside of compiled programs, and who is told after each segment."""

    samples: int
    progress: Progress | None = None

    @property
    def total(self) -> float:
        """N as a number to divide by."""
        return float(self.samples)


Samples = Count | Segments


class Span(NamedTuple):
    """Samples first..stop-1 of a stream, in a loop that runs to `most`."""

    first: UInt32[Array, ""]
    stop: UInt32[Array, ""]
    most: UInt32[Array, ""]


def fold(
    body: Body[Carry], carry: Carry, source: Source, span: Span, *, length: int, chunk: int, platform: Platform
) -> Carry:
    """Fold body(carry, batch, live) over the samples of a span; dead rows pad the last chunk."""
    once = _compute_once if platform == "cpu" else lambda compute, _: compute()

    def add_chunk(part: Array | int, carry: Carry) -> Carry:
        start = span.first + jnp.uint32(part) * jnp.uint32(chunk)
        index = start + lax.iota(jnp.uint32, chunk)
        # An index that wrapped past 2**32 is dead too.
        live = (index >= span.first) & (index < span.stop)
        number = index if source.cycle is None else index % source.cycle
        tokens = partial(draw, source.key, number, source.permutation, length, source.table)
        drawn = once(tokens, start < span.most)
        # In a branch of its own: the generator would be run again for the unpacked tokens.
        batch = once(lambda: read(drawn, length), span.first < span.most)
        if source.noise is not None:
            label = replace_labels(*source.noise, number, batch.label, source.permutation.shape[0])
            batch = batch._replace(label=label)
        return body(carry, batch, live)

    total = span.most - span.first
    # Rounded up without adding to the total, which may be near the end of 32 bits.
    chunks = total // jnp.uint32(chunk) + (total % jnp.uint32(chunk) != 0)
    return lax.fori_loop(0, chunks.astype(jnp.int32), add_chunk, carry)


def _compute_once(compute: Callable[[], Arrays], needed: Bool[Array, ""]) -> Arrays:
    """Return compute(), evaluated once and held in memory before anything reads it.

    Left to itself, XLA's CPU compiler repeats the random generator inside every loop that reads a
    token, and then no longer vectorises it. It does not look through a branch that it cannot
    decide, so the chunk is drawn in one. (Every chunk of the loop is needed; XLA cannot know.)
    """
    zeros = jax.tree.map(lambda array: jnp.zeros(array.shape, array.dtype), jax.eval_shape(compute))
    return lax.cond(needed, compute, lambda: zeros)


def over_samples(
    run: Callable[[Carry, Span], Carry],
    carry: Carry,
    samples: Samples,
    layout: Layout,
    work_per_sample: int,
    chunk: int,
) -> Carry:
    """Apply run(carry, span) to all samples.

    A `Count` is one span. `Segments` are one span each, with a progress report after it. A segment
    is a whole number of chunks, so cutting the samples up changes no sum.
    """
    if isinstance(samples, Count):
        return run(carry, Span(jnp.uint32(0), samples.samples, samples.most))
    size = max(1, layout.segment // (work_per_sample * chunk)) * chunk
    for first in range(0, samples.samples, size):
        stop = min(first + size, samples.samples)
        carry = run(carry, Span(jnp.uint32(first), jnp.uint32(stop), jnp.uint32(stop)))
        jax.block_until_ready(carry)
        stop_if_asked()
        if samples.progress is not None:
            samples.progress((stop - first) / samples.samples)
    return carry
