"""The factual-recall task: facts, and sequences that ask for them.

Tokens are numbered: subjects 0..S-1, relations S..S+R-1, then noise, the end token last. With S = 2, R = 1, two noise
tokens and T = 5, the sequence (subject 1, relation 2, noise 4, noise 4, end 5) has the counts (0, 1, 1, 0, 2, 1).

Arrays may be padded beyond the tokens and answers of a setting; the padding never occurs.

Facts may be asked for with unequal frequency. From frequent to rare, fact k = 0, 1, ... S R - 1 is that of
the subject s = k mod S and the relation r = (s + floor(k / S)) mod R, so that neighbours differ in subject
and, with R > 1, mostly in relation (our choice). With S = 3 and R = 2: (0, 0), (1, 1), (2, 0), (0, 1), (1, 0), (2, 1).

The model has no positional encodings, so only the token counts of a sequence matter. Subject and
relation need no random positions: they come first.
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float, UInt32

from mnemoscope.engine.random import below, padded_words, random_words
from mnemoscope.spec.facts import Facts
from mnemoscope.spec.flow import Flow
from mnemoscope.tasks.alias import token_of


class Sizes(NamedTuple):
    """The numbers of subjects, relations, answers and noise tokens; arrays may be padded beyond them.

    `table` is the alias table of facts that are not uniform. Its length is S R, without padding.
    """

    subjects: UInt32[Array, "*n"]
    relations: UInt32[Array, "*n"]
    answers: UInt32[Array, "*n"]
    noise: UInt32[Array, "*n"]
    table: UInt32[Array, "*n F"] | None = None

    @classmethod
    def of(cls, spec: Facts | Flow, table: np.ndarray | None = None) -> "Sizes":
        """The sizes of a setting."""
        S, R, D, noise = map(jnp.uint32, (spec.subjects, spec.relations, spec.answers, spec.noise_tokens))
        return cls(S, R, D, noise, None if table is None else jnp.asarray(table))

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


def draw_sequences(
    program: Facts | Flow, sizes: Sizes, key: UInt32[Array, "2"], rows: UInt32[Array, "B"], *, by_fact: bool = False
) -> Asked:
    """The sequences of these row numbers: one subject, one relation, T - 3 noise tokens, the end.

    Every noise token is uniform. So are subject and relation, unless facts have frequencies of their own. `by_fact`
    asks for every fact equally often, whatever its frequency: row i for a fact drawn from the i-th of as many equal
    parts of all facts as there are rows.
    """
    S, R = sizes.subjects, sizes.relations
    words = random_words(key, rows, program.length - 1)
    if sizes.table is None:
        subject, relation = below(words[:, 0], S), below(words[:, 1], R)
    else:
        fact = token_of(words[:, 0], len(sizes.table), sizes.table)
        if by_fact:
            part = 2**32 // len(rows)
            place = lax.iota(jnp.uint32, len(rows)) * jnp.uint32(part) + below(words[:, 0], part)
            fact = below(place, len(sizes.table))
        subject = fact % S
        relation = (subject + fact // S) % R
    noise = below(words[:, 2:], sizes.noise) + S + R
    first = jnp.stack([subject, relation + S], axis=1)
    end = jnp.broadcast_to(sizes.end, (len(rows), 1))
    return Asked(jnp.concatenate([first, noise, end], axis=1), subject, relation)


def count_tokens(tokens: UInt32[Array, "B T"], V: int) -> Float[Array, "B {V}"]:
    """The count of each of V tokens in each sequence."""
    row = lax.iota(jnp.int32, len(tokens))
    return jnp.zeros((len(tokens), V)).at[row[:, None], tokens].add(1.0)
