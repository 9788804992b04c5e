"""The factual-recall task: facts, and sequences that ask for them.

Tokens are numbered: subjects 0..S-1, relations S..S+R-1, then noise, the end token last. With S = 2, R = 1, two noise
tokens and T = 5, the sequence (subject 1, relation 2, noise 4, noise 4, end 5) has the counts (0, 1, 1, 0, 2, 1).

Arrays may be padded beyond the tokens and answers of a setting; the padding never occurs.

The model has no positional encodings, so only the token counts of a sequence matter. Subject and
relation need no random positions: they come first.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, UInt32

from mnemoscope.engine.random import below, padded_words, random_words
from mnemoscope.spec.facts import Facts
from mnemoscope.spec.flow import Flow


class Sizes(NamedTuple):
    """The numbers of subjects, relations, answers and noise tokens; arrays may be padded beyond them."""

    subjects: UInt32[Array, "*n"]
    relations: UInt32[Array, "*n"]
    answers: UInt32[Array, "*n"]
    noise: UInt32[Array, "*n"]

    @classmethod
    def of(cls, spec: Facts | Flow) -> "Sizes":
        """The sizes of a setting."""
        return cls(*map(jnp.uint32, (spec.subjects, spec.relations, spec.answers, spec.noise_tokens)))

    @property
    def end(self) -> UInt32[Array, "*n"]:
        """The number of the end token."""
        return self.subjects + self.relations + self.noise

    @property
    def outputs(self) -> UInt32[Array, "*n"]:
        """R D, the number of all answers."""
        return self.relations * self.answers


class Asked(NamedTuple):
    """Sequences of tokens, and the fact that each one asks for."""

    tokens: UInt32[Array, "B T"]
    subject: UInt32[Array, "B"]
    relation: UInt32[Array, "B"]


def draw_facts(program: Facts, sizes: Sizes, key: UInt32[Array, "2"]) -> UInt32[Array, "S R"]:
    """a*(s, r): one of the D answers r D, ..., r D + D - 1 of its relation, uniformly."""
    S, R = program.subjects, program.relations
    words = padded_words(key, lax.iota(jnp.uint32, S), R, sizes.relations)
    return below(words, sizes.answers) + sizes.answers * lax.iota(jnp.uint32, R)[None, :]


def draw_sequences(program: Facts | Flow, sizes: Sizes, key: UInt32[Array, "2"], rows: UInt32[Array, "B"]) -> Asked:
    """The sequences of these row numbers: one subject, one relation, T - 3 noise tokens, the end.

    Subject, relation and every noise token are uniform over their kind.
    """
    S, R = sizes.subjects, sizes.relations
    words = random_words(key, rows, program.length - 1)
    subject, relation = below(words[:, 0], S), below(words[:, 1], R)
    noise = below(words[:, 2:], sizes.noise) + S + R
    first = jnp.stack([subject, relation + S], axis=1)
    end = jnp.broadcast_to(sizes.end, (len(rows), 1))
    return Asked(jnp.concatenate([first, noise, end], axis=1), subject, relation)


def count_tokens(tokens: UInt32[Array, "B T"], V: int) -> Float[Array, "B {V}"]:
    """The count of each of V tokens in each sequence."""
    row = lax.iota(jnp.int32, len(tokens))
    return jnp.zeros((len(tokens), V)).at[row[:, None], tokens].add(1.0)
