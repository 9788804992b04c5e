"""Tokens of unequal probability from one random word each: Walker's alias method in whole numbers.

A word w picks the bucket v = floor(w V / 2^32). What is left of w V, its lower 32 bits, says where in the bucket the
word fell: below the bucket's threshold the token is v, above it the bucket's other token. An entry of the table holds
both, the threshold in its upper bits and the other token in its lower `bits`; a look-up costs one read.

All probabilities are whole multiples of 1/(V 2^(32 - bits)), which is at most 2^-31: as fine as one word can be.
"""

from functools import lru_cache

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, UInt32

from mnemoscope.engine.random import below
from mnemoscope.spec.token_laws import UNIFORM, probabilities


def bits_of(vocab: int) -> int:
    """Bits that hold a token."""
    return (vocab - 1).bit_length()


@lru_cache(maxsize=16)
def alias_table(law: str, vocab: int) -> np.ndarray | None:
    """The table of a law; None for uniform tokens, which need none."""
    return None if law == UNIFORM else table_of(probabilities(law, vocab))


def table_of(p: np.ndarray) -> np.ndarray:
    """The entries for probabilities p."""
    V = len(p)
    bits = bits_of(V)
    full = 2 ** (32 - bits)
    left = _whole_shares(p, V * full)
    threshold, other = np.full(V, full - 1, np.int64), np.arange(V)
    poor = [v for v in range(V) if left[v] < full]
    rich = [v for v in range(V) if left[v] > full]
    while poor:
        v, donor = poor.pop(), rich[-1]
        threshold[v], other[v] = left[v], donor
        left[donor] -= full - left[v]
        if left[donor] <= full:
            rich.pop()
            if left[donor] < full:
                poor.append(donor)
    return (threshold << bits | other).astype(np.uint32)


def probabilities_in(table: UInt32[Array, "V"]) -> Float[Array, "V"]:
    """The probability with which the words name each token: its own bucket's part, and what other buckets give it."""
    V = table.shape[0]
    bits = bits_of(V)
    own = (table >> bits).astype(float) / 2 ** (32 - bits)
    return (own.at[table & jnp.uint32(2**bits - 1)].add(1 - own)) / V


def _whole_shares(p: np.ndarray, total: int) -> np.ndarray:
    """Whole numbers proportional to p that add up to `total`: rounded down, and the largest remainders up."""
    exact = p * total
    shares = np.floor(exact).astype(np.int64)
    missing = total - int(shares.sum())
    order = np.argsort(shares - exact, kind="stable")
    shares[order[:missing]] += 1
    return shares


def token_of(words: UInt32[Array, "*n"], vocab: int, table: UInt32[Array, "V"] | None) -> UInt32[Array, "*n"]:
    """The token that each random word names."""
    bucket = below(words, vocab)
    if table is None:
        return bucket
    entry = table.at[bucket].get(mode="promise_in_bounds")
    mask = jnp.uint32(2 ** bits_of(vocab) - 1)
    # Lower bits that are all set decide nothing, whatever those of the entry. So the entry is compared as it was read:
    # a CPU takes half as long as where the threshold is taken out of it first.
    place = (words * jnp.uint32(vocab)) | mask
    return jnp.where(place < entry, bucket, entry & mask)
