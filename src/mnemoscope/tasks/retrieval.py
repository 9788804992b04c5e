"""The token-retrieval task: find the one informative token among L and name its label.

    x_1 .. x_L  i.i.d. uniform on V tokens           (our choice)
    l           uniform on the L positions           (our choice)
    y           = Pi*(x_l), Pi* a fixed permutation  (paper A)

A worked example with V = 5, L = 4 and Pi* = (2, 0, 4, 1, 3), that is Pi*(0) = 2, Pi*(1) = 0, ...:

    tokens    3 1 4 1
    position  2                 the third token, a 4, is the informative one
    label     Pi*(4) = 3

The model is not told the position: it sees a trigger vector added to the key there (see
`models.transformer`). The other three tokens, among them the two 1s, are noise. A noise token may
equal the informative one.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, UInt32

from mnemoscope.keys import below, random_words


class Batch(NamedTuple):
    """Sequences, where their informative token stands, and their labels.

    The numbers are unsigned, so that indexing with them need not look for negative ones.
    """

    tokens: UInt32[Array, "B L"]
    position: UInt32[Array, "B"]
    label: UInt32[Array, "B"]

    @property
    def informative(self) -> UInt32[Array, "B"]:
        """x_l: the token at the informative position."""
        return jnp.take_along_axis(self.tokens, self.position[:, None], axis=1)[:, 0]

    @property
    def at_position(self) -> Bool[Array, "B L"]:
        """1{j = l}."""
        return lax.iota(jnp.uint32, self.tokens.shape[1])[None, :] == self.position[:, None]


def sample(
    key: UInt32[Array, "2"],
    index: UInt32[Array, "B"],
    permutation: UInt32[Array, "V"],
    length: int,
) -> Batch:
    """The samples numbered `index` of a stream; each depends on its own number alone.

    Words 0..L-1 of row i give the tokens of sample i, word L gives its position.
    """
    words = random_words(key, index, length + 1)
    tokens = below(words[:, :length], permutation.shape[0])
    position = below(words[:, length], length)
    informative = jnp.take_along_axis(tokens, position[:, None], axis=1)[:, 0]
    return Batch(tokens, position, permutation[informative])
