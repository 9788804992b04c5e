"""The token-retrieval task: find the one informative token among L and name its label.

    x_1 .. x_L  i.i.d. over V tokens, uniform or by the law of `tokens`    (our choice)
    l           uniform on the L positions                                 (our choice)
    y           = Pi*(x_l), Pi* a fixed permutation                        (paper A)

A worked example with V = 5, L = 4 and Pi* = (2, 0, 4, 1, 3), that is Pi*(0) = 2, Pi*(1) = 0, ...:

    tokens    3 1 4 1
    position  2                 the third token, a 4, is the informative one
    label     Pi*(4) = 3

The model does not see the position, only a trigger vector added to the key there (see `models.retrieval`). The other
three tokens, including the two 1s, are noise. A noise token may equal the informative one.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, UInt32

from mnemoscope.engine.random import below, random_halves, random_word
from mnemoscope.tasks.alias import token_of


class Batch(NamedTuple):
    """Sequences, the positions of their informative tokens, and their labels.

    The integers are unsigned, so that indexing need not handle negative ones.
    """

    tokens: UInt32[Array, "B L"]
    position: UInt32[Array, "B"]
    label: UInt32[Array, "B"]

    @property
    def informative(self) -> UInt32[Array, "B"]:
        """x_l: the token at the informative position."""
        return jnp.take_along_axis(self.tokens, self.position[:, None], axis=1)[:, 0]

    def asking(self, token: UInt32[Array, "B"], permutation: UInt32[Array, "V"]) -> "Batch":
        """The same sequences with another informative token each, and its label."""
        tokens = jnp.where(self.at_position, token[:, None], self.tokens)
        return Batch(tokens, self.position, permutation[token])

    @property
    def at_position(self) -> Bool[Array, "B L"]:
        """1{j = l}."""
        return lax.iota(jnp.uint32, self.tokens.shape[1])[None, :] == self.position[:, None]


class Drawn(NamedTuple):
    """Samples as the generator returns them, two words at a time.

    If a token fits in 16 bits, `tokens` is one array with tokens b and h + b in the halves of a word;
    otherwise it is two arrays. In this form the generator runs once for both: XLA's CPU compiler
    would run it again for every array computed from its output.
    """

    tokens: tuple[UInt32[Array, "B h"], ...]
    position: UInt32[Array, "B"]
    label: UInt32[Array, "B"]


def draw(
    key: UInt32[Array, "2"],
    index: UInt32[Array, "B"],
    permutation: UInt32[Array, "V"],
    length: int,
    table: UInt32[Array, "V"] | None = None,
) -> Drawn:
    """Draw the samples numbered `index` of a stream; each depends only on its own number.

    Words 0..L-1 of row i give the tokens of sample i, word L gives its position. `table` is the alias table of tokens
    that are not uniform.
    """
    vocab, words = permutation.shape[0], length + 1
    first, second = (token_of(half, vocab, table) for half in random_halves(key, index, words))
    last = jnp.full_like(index, length)
    position = below(random_word(key, index, last, words), length)
    informative = token_of(random_word(key, index, position, words), vocab, table)
    packed = (first | (second << jnp.uint32(16)),) if vocab <= 2**16 else (first, second)
    return Drawn(packed, position, permutation[informative])


def read(drawn: Drawn, length: int) -> Batch:
    """Unpack the samples, one token per position."""
    if len(drawn.tokens) == 1:
        (packed,) = drawn.tokens
        halves = (packed & jnp.uint32(0xFFFF), packed >> jnp.uint32(16))
    else:
        halves = drawn.tokens
    tokens = jnp.concatenate(halves, axis=1)[:, :length]
    return Batch(tokens, drawn.position, drawn.label)


def sample(
    key: UInt32[Array, "2"],
    index: UInt32[Array, "B"],
    permutation: UInt32[Array, "V"],
    length: int,
    table: UInt32[Array, "V"] | None = None,
) -> Batch:
    """Draw and unpack the samples numbered `index` of a stream."""
    return read(draw(key, index, permutation, length, table), length)
