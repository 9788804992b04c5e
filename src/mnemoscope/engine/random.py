"""Named random streams: every random number is a pure function of (spec, seed, name, index).

A stream is a Threefry-2x32 key. Word (i, j) of a row of given width is one hash of the counter
pair that belongs to (i, j). It depends on nothing else: not on the number of rows drawn, nor their
order, batch or chunk, nor on the device. The first N rows of a longer draw are the shorter draw.

Threefry is written out here (Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3", 2011; 20
rounds) rather than called through `jax.random`: the draws then stay the same across JAX versions, both output words are
used, and XLA fuses the rounds into whatever consumes the words.
"""

import hashlib
from functools import lru_cache

import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float32, UInt32

from mnemoscope.spec import Retrieval

# The fields of the spec that each stream depends on. Settings that differ only in other fields share
# their draws: a seed has the same sequences at every d, m and N, and the same directions under the
# gaussian and the sphere law, so curves along those axes are smooth and comparisons are paired.
STREAMS: dict[str, tuple[str, ...]] = {
    "input": ("vocab", "dim"),
    "output": ("vocab", "dim"),
    "trigger": ("vocab", "dim"),
    "query": ("vocab", "dim"),
    "hidden": ("dim",),
    "permutation": ("vocab",),
    "train": ("vocab", "length"),
    "test": ("vocab", "length"),
    "noise": ("vocab", "length"),
}

ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
PARITY = 0x1BD11BDA


def stream(spec: Retrieval, seed: int, name: str) -> np.ndarray:
    """The key, two 32-bit words, of the stream `name` for this spec and seed.

    The hashed text is, for example, `mnemoscope|7|train|vocab=256|length=8`.
    """
    return _stream(seed, name, tuple(getattr(spec, field) for field in STREAMS[name]))


@lru_cache(maxsize=2**16)
def _stream(seed: int, name: str, values: tuple[int, ...]) -> np.ndarray:
    """The key, cached: settings of a diagram share most of their streams."""
    key = named_key(seed, name, **dict(zip(STREAMS[name], values, strict=True)))
    key.setflags(write=False)
    return key


def named_key(seed: int, name: str, **facts: int) -> np.ndarray:
    """The key of a stream, from its name and the values it depends on."""
    parts = [f"{field}={value}" for field, value in facts.items()]
    text = "|".join(["mnemoscope", str(seed), name, *parts])
    return np.frombuffer(hashlib.sha256(text.encode()).digest()[:8], dtype="<u4").copy()


def streams(spec: Retrieval, seed: int) -> dict[str, UInt32[Array, "2"]]:
    """The keys of all streams, by name."""
    return {name: jnp.asarray(stream(spec, seed, name)) for name in STREAMS}


def threefry(
    key: UInt32[Array, "2"], high: UInt32[Array, "*n"], low: UInt32[Array, "*n"]
) -> tuple[UInt32[Array, "*n"], UInt32[Array, "*n"]]:
    """Threefry-2x32-20 of the counter (high, low).

    Twenty rounds of `x0 += x1; x1 = rotl(x1, r) ^ x0`; after every fourth round the next two of
    the three key words k0, k1, k0 ^ k1 ^ PARITY are added, and the number of the injection.
    """
    words = (key[0], key[1], key[0] ^ key[1] ^ jnp.uint32(PARITY))
    x0, x1 = high + words[0], low + words[1]
    for injection in range(1, 6):
        for r in ROTATIONS[(injection - 1) % 2]:
            x0 = x0 + x1
            x1 = ((x1 << jnp.uint32(r)) | (x1 >> jnp.uint32(32 - r))) ^ x0
        x0 = x0 + words[injection % 3]
        x1 = x1 + words[(injection + 1) % 3] + jnp.uint32(injection)
    return x0, x1


def random_words(key: UInt32[Array, "2"], rows: UInt32[Array, "n"], count: int) -> UInt32[Array, "n {count}"]:
    """Words (i, 0..count-1) of a stream for each row number i in `rows`.

    With h = ceil(count / 2), counter (i, b) gives word b and word h + b.
    """
    return jnp.concatenate(random_halves(key, rows, count), axis=1)[:, :count]


def random_halves(
    key: UInt32[Array, "2"], rows: UInt32[Array, "n"], count: int
) -> tuple[UInt32[Array, "n half"], UInt32[Array, "n half"]]:
    """The same words as two arrays: 0..h-1, and h..2h-1, whose last word may be surplus."""
    half = -(-count // 2)
    high, low = jnp.broadcast_arrays(rows[:, None], lax.iota(jnp.uint32, half)[None, :])
    return threefry(key, high, low)


def random_word(
    key: UInt32[Array, "2"], rows: UInt32[Array, "n"], column: UInt32[Array, "n"], count: int
) -> UInt32[Array, "n"]:
    """One word of each row: word (rows[k], column[k])."""
    half = jnp.uint32(-(-count // 2))
    second = column >= half
    first, other = threefry(key, rows, column - jnp.where(second, half, jnp.uint32(0)))
    return jnp.where(second, other, first)


def below(words: UInt32[Array, "*n"], bound: int | UInt32[Array, "*#n"]) -> UInt32[Array, "*n"]:
    """Words mapped to 0..bound-1: floor(word * bound / 2**32).

    The probability of a value differs from 1/bound by at most 2**-32. The product's upper half is
    assembled from 16-bit pieces, since JAX disables 64-bit integers by default.
    """
    low16 = jnp.uint32(0xFFFF)
    sixteen = jnp.uint32(16)
    word_high, word_low = words >> sixteen, words & low16
    limit = jnp.asarray(bound, jnp.uint32)
    bound_high, bound_low = limit >> sixteen, limit & low16
    middle = word_high * bound_low + ((word_low * bound_low) >> sixteen)
    carry = ((middle & low16) + word_low * bound_high) >> sixteen
    return word_high * bound_high + (middle >> sixteen) + carry


def padded_words(
    key: UInt32[Array, "2"], rows: UInt32[Array, "n"], columns: int, count: UInt32[Array, ""]
) -> UInt32[Array, "n {columns}"]:
    """`random_words` of `count` columns, in an array of `columns`; the rest is meaningless.

    The count may be known only when the program runs, so both words of a counter are computed for
    every column and one is used: twice the work, for one program that serves many counts.
    """
    half = (count + jnp.uint32(1)) // jnp.uint32(2)
    column = lax.iota(jnp.uint32, columns)
    second = column >= half
    high, low = jnp.broadcast_arrays(rows[:, None], (column - jnp.where(second, half, 0))[None, :])
    return jnp.where(second[None, :], *reversed(threefry(key, high, low)))


def normal(
    key: UInt32[Array, "2"], rows: int, columns: int, count: UInt32[Array, ""] | None = None
) -> Float32[Array, "{rows} {columns}"]:
    """Standard normal numbers by the inverse distribution function, always drawn in float32.

    x = sqrt(2) erfinv(u), with u the middle of one of 2**24 equal cells of (-1, 1). Drawing in one
    precision keeps the draw independent of the precision of training. With a `count`, the draw has
    `count` columns, and zeros fill the others.
    """
    numbers = lax.iota(jnp.uint32, rows)
    if count is None:
        return _normal_of(random_words(key, numbers, columns))
    drawn = _normal_of(padded_words(key, numbers, columns, count))
    return jnp.where(lax.iota(jnp.uint32, columns)[None, :] < count, drawn, 0)


def _normal_of(words: UInt32[Array, "*n"]) -> Float32[Array, "*n"]:
    cell = (words >> jnp.uint32(8)).astype(jnp.float32)
    # (2 cell + 1) / 2**24 - 1, arranged so that float32 holds both ends exactly.
    uniform = (cell - jnp.float32(2**23) + jnp.float32(0.5)) * jnp.float32(2.0**-23)
    return jnp.float32(np.sqrt(2.0)) * lax.erf_inv(uniform)


def permutation(key: UInt32[Array, "2"], size: int) -> UInt32[Array, "{size}"]:
    """A uniformly random permutation: the argsort of one random word per element."""
    words = random_words(key, lax.iota(jnp.uint32, size), 1)[:, 0]
    return jnp.argsort(words, stable=True).astype(jnp.uint32)
