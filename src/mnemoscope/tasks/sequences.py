r"""Sequences of the tasks that a `Transformer` is trained on, and what is asked of them.

Every sequence is a function of the seed's streams and its own number. Worked examples, with the answer after the arrow:

    facts, S = 2, R = 2, two noise tokens     subject 1, noise 4, relation 3, noise 5, end 6   -> a*(1, 1)
      with the query relation                 noise 4, subject 1, noise 5, relation 3          -> a*(1, 1)
    retrieval, V = 4, mark on the second      2 3* 0 0, end 4                                  -> Pi(3)
      by the query, groups 2 (even, odd)      2 3 0 0, odd 5                                   -> Pi(3)
    mqar, V = 8, keys 0..3, values 4..7       2 5, 0 7, then 0                                 -> 7
    induction, trigger 0                      3 0 2 1 0                                        -> 2, as before
    random-strings, V = 4                     begin 4, 1 3 3                                   -> 1 3 3 0, the string

A second batch of facts has new subjects, numbered after all other tokens, and the same relations and answers.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, UInt32

from mnemoscope.engine.random import below, named_key, normal, padded_words, permutation, random_words
from mnemoscope.spec.transformer import Transformer
from mnemoscope.tasks.alias import alias_table, token_of
from mnemoscope.tasks.label_noise import word_below

# Strides by which an epoch goes through the strings: each of these many epochs in another order.
STRIDES = 32
Keys = dict[str, UInt32[Array, "*n 2"]]


class Counts(NamedTuple):
    """Numbers of a task that are arguments of its program: arrays may be padded beyond them.

    `facts` of the second batch begin after `first_steps`. `frequent` is the alias table of facts that are not uniform,
    without padding, and `strides` the orders of epochs of strings.
    """

    subjects: UInt32[Array, "*n"]
    new_subjects: UInt32[Array, "*n"]
    relations: UInt32[Array, "*n"]
    answers: UInt32[Array, "*n"]
    noise: UInt32[Array, "*n"]
    first_steps: UInt32[Array, "*n"]
    strings: UInt32[Array, "*n"]
    overlap: UInt32[Array, "*n"]
    strides: UInt32[Array, "*n E"]
    frequent: UInt32[Array, "*n F"] | None = None

    @classmethod
    def of(cls, spec: Transformer) -> "Counts":
        """The numbers of a setting."""
        table = alias_table(spec.frequencies, spec.subjects * spec.relations) if spec.task == "facts" else None
        batches = (spec.subjects, spec.new_subjects, spec.relations, spec.answers)
        S, new, R, D, noise, first, strings, overlap = map(
            jnp.uint32,
            (*batches, spec.noise_tokens, spec.first_steps, spec.strings, min(word_below(spec.overlap), 2**32 - 1)),
        )
        strides = jnp.asarray(_strides(spec.strings))
        frequent = None if table is None else jnp.asarray(table)
        return cls(S, new, R, D, noise, first, strings, overlap, strides, frequent)

    @property
    def end(self) -> UInt32[Array, "*n"]:
        """The number of the end token of facts."""
        return self.subjects + self.relations + self.noise

    @property
    def items(self) -> UInt32[Array, "*n"]:
        """How many facts of the first batch there are."""
        return self.subjects * self.relations


class Questions(NamedTuple):
    """Sequences, and for each of the Q positions at which an answer is read, the answer.

    `counted` says which of them make the accuracy (those in the loss are all), and `sought` at which positions stands
    what decides. `marked` is the position of a mark, `relation` that of the fact asked for.
    """

    tokens: UInt32[Array, "B T"]
    answer: UInt32[Array, "B Q"]
    counted: Bool[Array, "B Q"]
    sought: Bool[Array, "B Q T"]
    marked: UInt32[Array, "B"] | None = None
    relation: UInt32[Array, "B"] | None = None


class Tables(NamedTuple):
    """What a seed draws once: answers of facts, labels of tokens, or thresholds of a Markov chain."""

    answers: UInt32[Array, "*n S R"] | None = None
    labels: UInt32[Array, "*n V"] | None = None
    chain: UInt32[Array, "*n V V"] | None = None


class Which(NamedTuple):
    """Which sequences are wanted.

    Numbers of a stream; items, if each is to ask for a given fact, token or string; and whether the second batch of
    facts is asked for.
    """

    key: str
    rows: UInt32[Array, "B"]
    item: UInt32[Array, "B"] | None = None
    second: Bool[Array, ""] | None = None


def task_keys(spec: Transformer, seed: int) -> dict[str, np.ndarray]:
    """The streams of a task. Those of facts are those of `Facts`, so that both kinds see the same sequences."""
    names = ("train", "test", "final", "noise")
    if spec.task == "facts":
        task = {"subjects": spec.subjects, "relations": spec.relations}
        wide = {**task, "noise": spec.noise_tokens, "length": spec.length}
        keys = {"table": named_key(seed, "facts", **task, answers=spec.answers)}
        return keys | {name: named_key(seed, f"facts-{name}", **wide) for name in (*names, "overlap", "place")}
    sizes = {"vocab": spec.vocab} if spec.task != "mqar" else {"vocab": spec.vocab, "pairs": spec.pairs}
    return {name: named_key(seed, f"{spec.task}-{name}", **sizes) for name in ("table", *names)}


def draw_tables(program: Transformer, counts: Counts, key: UInt32[Array, "2"]) -> Tables:
    """What is drawn once for a seed."""
    V = program.vocab
    if program.task == "facts":
        S, R = program.subjects + program.new_subjects, program.relations
        words = padded_words(key, lax.iota(jnp.uint32, S), R, counts.relations)
        # a*(s, r): one of the D answers r D, ..., r D + D - 1 of its relation, uniformly.
        return Tables(answers=below(words, counts.answers) + counts.answers * lax.iota(jnp.uint32, R)[None, :])
    if program.task == "retrieval":
        return Tables(labels=permutation(key, V))
    if program.task == "induction":
        # p(w | v) proportional to exp(g), g ~ N(0, 1) (our choice), as thresholds of a random word.
        share = jnp.cumsum(jax.nn.softmax(normal(key, V, V), axis=1), axis=1)
        return Tables(chain=jnp.minimum(share[:, :-1] * 2.0**32, 2.0**32 - 256).astype(jnp.uint32))
    return Tables()


def ask(program: Transformer, counts: Counts, tables: Tables, keys: Keys, which: Which) -> Questions:
    """The sequences that are wanted."""
    return _ASK[program.task](program, counts, tables, keys, which)


def _ask_facts(program: Transformer, counts: Counts, tables: Tables, keys: Keys, which: Which) -> Questions:
    T, S, R = program.length, counts.subjects, counts.relations
    by_end = program.query == "end"
    fill = T - 3 if by_end else T - 2
    words = random_words(keys[which.key], which.rows, 2 + fill)
    subject, relation = _fact(program, counts, which, words)
    noise = below(words[:, 2:], counts.noise) + S + R
    if program.overlap:
        other = random_words(keys["overlap"], which.rows, 2 * fill)
        noise = jnp.where(other[:, :fill] < counts.overlap, below(other[:, fill:], R) + S, noise)
    named = jnp.where(subject < S, subject, subject - S + counts.end + 1)
    asked = relation + S
    last = jnp.broadcast_to(counts.end, subject.shape) if by_end else asked
    first = jnp.stack([named, asked] if by_end else [named], axis=1)
    tokens = jnp.concatenate([first, noise, last[:, None]], axis=1)
    places = [jnp.zeros_like(subject), *[jnp.ones_like(subject)] * by_end]
    if order_matters(program):
        tokens, places = _placed(tokens, _random_places(keys["place"], which.rows, T - 1, len(places)))
    assert tables.answers is not None
    position = lax.iota(jnp.uint32, T)
    sought = jnp.any(jnp.stack([place[:, None] == position for place in places]), axis=0)
    answer = tables.answers[subject, relation]
    return Questions(tokens, answer[:, None], jnp.ones((len(subject), 1), bool), sought[:, None], None, relation)


def _fact(
    program: Transformer, counts: Counts, which: Which, words: UInt32[Array, "B n"]
) -> tuple[UInt32[Array, "B"], UInt32[Array, "B"]]:
    """The subject and the relation that each sequence asks for.

    From frequent to rare, fact k is that of the subject s = k mod S and the relation r = (s + floor(k / S)) mod R, as
    in `tasks.facts`.
    """
    S, R = counts.subjects, counts.relations
    fact = which.item
    if fact is None and counts.frequent is not None:
        fact = token_of(words[:, 0], len(counts.frequent), counts.frequent)
    if fact is not None:
        subject = fact % S
        relation = (subject + fact // S) % R
    else:
        subject, relation = below(words[:, 0], S), below(words[:, 1], R)
    if program.new_subjects and which.second is not None:
        subject = jnp.where(which.second, S + below(words[:, 0], counts.new_subjects), subject)
    return subject, relation


def order_matters(program: Transformer) -> bool:
    """Whether the model can tell the order of tokens, so that it has to be random."""
    return program.positions != "none" or (program.mask == "causal" and program.layers > 1)


def _random_places(key: UInt32[Array, "2"], rows: UInt32[Array, "B"], room: int, count: int) -> list[Any]:
    """Swaps that bring the first `count` tokens to distinct random places: token k goes to place k, ..., room - 1."""
    words = random_words(key, rows, count)
    return [below(words[:, k], room - k) + jnp.uint32(k) for k in range(count)]


def _placed(tokens: UInt32[Array, "B T"], swaps: list[Any]) -> tuple[UInt32[Array, "B T"], list[Any]]:
    """The tokens after these swaps, the last one first, and where the first tokens have come to."""
    position = lax.iota(jnp.uint32, tokens.shape[1])
    places: list[Any] = [jnp.full(len(tokens), k, jnp.uint32) for k in range(len(swaps))]
    for k in reversed(range(len(swaps))):
        there = swaps[k][:, None]
        moved = jnp.take_along_axis(tokens, there, axis=1)
        tokens = jnp.where(position == k, moved, jnp.where(position == there, tokens[:, k : k + 1], tokens))
        places = [
            jnp.where(place == k, swaps[k], jnp.where(place == swaps[k], jnp.uint32(k), place)) for place in places
        ]
    return tokens, places


def _ask_retrieval(program: Transformer, counts: Counts, tables: Tables, keys: Keys, which: Which) -> Questions:
    V, L, G = program.vocab, program.length, program.groups
    words = random_words(keys[which.key], which.rows, L + 2)
    place = below(words[:, L], L)
    here = lax.iota(jnp.uint32, L) == place[:, None]
    asked = below(words[:, L + 1], V) if which.item is None else which.item
    if program.cue == "mark":
        tokens, query, marked = below(words[:, :L], V), jnp.full_like(asked, V), place
    else:
        # The group of token v is v mod G. The others are uniform over the V - V/G tokens of other groups.
        group, marked = asked % G, None
        drawn = below(words[:, :L], V - V // G)
        tokens = (group[:, None] + 1 + drawn % (G - 1)) % G + G * (drawn // (G - 1))
        query = V + group
    tokens = jnp.concatenate([jnp.where(here, asked[:, None], tokens), query[:, None]], axis=1)
    sought = jnp.pad(here, ((0, 0), (0, 1)))[:, None]
    assert tables.labels is not None
    answer = tables.labels[asked]
    return Questions(tokens, answer[:, None], jnp.ones((len(asked), 1), bool), sought, marked)


def _ask_mqar(program: Transformer, counts: Counts, tables: Tables, keys: Keys, which: Which) -> Questions:
    P, Q, half = program.pairs, program.queries, program.vocab // 2
    words = random_words(keys[which.key], which.rows, half + 2 * P)
    key = _distinct(words[:, :half], P)
    value = below(words[:, half : half + P], half) + half
    pair = _distinct(words[:, half + P :], Q)
    shown = jnp.stack([key, value], axis=2).reshape(len(key), 2 * P)
    tokens = jnp.concatenate([shown, jnp.take_along_axis(key, pair, axis=1)], axis=1)
    sought = lax.iota(jnp.uint32, 2 * P + Q) == (2 * pair + 1)[:, :, None]
    answer = jnp.take_along_axis(value, pair, axis=1)
    return Questions(tokens, answer, jnp.ones(answer.shape, bool), sought)


def _distinct(words: UInt32[Array, "B n"], count: int) -> UInt32[Array, "B {count}"]:
    """`count` different numbers below n, in random order: those with the smallest words."""
    return jnp.argsort(words, axis=1, stable=True)[:, :count].astype(jnp.uint32)


def _ask_induction(program: Transformer, counts: Counts, tables: Tables, keys: Keys, which: Which) -> Questions:
    V, T, K = program.vocab, program.length, program.triggers
    words = random_words(keys[which.key], which.rows, T + 1 + K)
    follows = below(words[:, T + 1 :], V)
    chain = tables.chain
    assert chain is not None

    def step(token: UInt32[Array, "B"], word: UInt32[Array, "B"]) -> tuple[UInt32[Array, "B"], UInt32[Array, "B"]]:
        drawn = jnp.sum(chain[token] <= word[:, None], axis=1, dtype=jnp.uint32)
        own = jnp.take_along_axis(follows, jnp.minimum(token, K - 1)[:, None], axis=1)[:, 0]
        token = jnp.where(token < K, own, drawn)
        return token, token

    first = below(words[:, 0], V)
    _, rest = lax.scan(step, first, words[:, 1 : T + 1].T, unroll=8)
    tokens = jnp.concatenate([first[None], rest]).T
    shown, answer = tokens[:, :T], tokens[:, 1:]
    # Position j <= t follows an earlier occurrence of token t.
    position = lax.iota(jnp.uint32, T)
    before = jnp.concatenate([jnp.full_like(shown[:, :1], V), shown[:, :-1]], axis=1)
    sought = (before[:, None, :] == shown[:, :, None]) & (position[None, :] <= position[:, None])
    counted = (shown < K) & jnp.any(sought, axis=2)
    return Questions(shown, answer, counted, sought)


def _ask_strings(program: Transformer, counts: Counts, tables: Tables, keys: Keys, which: Which) -> Questions:
    V, T = program.vocab, program.length
    string = _in_epochs(counts, keys[which.key], which.rows) if which.item is None else which.item
    answer = below(random_words(keys["table"], string, T), V)
    begin = jnp.full_like(answer[:, :1], V)
    tokens = jnp.concatenate([begin, answer[:, :-1]], axis=1)
    shape = answer.shape
    return Questions(tokens, answer, jnp.ones(shape, bool), jnp.zeros((*shape, T), bool))


def _in_epochs(counts: Counts, key: UInt32[Array, "2"], rows: UInt32[Array, "B"]) -> UInt32[Array, "B"]:
    """The strings of these numbers: each once in an epoch, in an order of the epoch's own.

    Number i is place j = i mod N of epoch e. Its string is (stride_e j + shift_e) mod N, and no stride divides N.
    """
    N = counts.strings
    place, epoch = rows % N, rows // N
    shift = below(random_words(key, epoch, 1)[:, 0], N)
    # With a stride below 2^11 and N at most 2^20 the product fits in 32 bits.
    return (counts.strides[epoch % STRIDES] * place + shift) % N


def _strides(strings: int) -> np.ndarray:
    """Primes of three or four digits that do not divide the number of strings: all orders are permutations."""
    primes = (p for p in range(101, 2048) if all(p % q for q in range(2, math.isqrt(p) + 1)) and strings % p)
    return np.asarray([prime for prime, _ in zip(primes, range(STRIDES), strict=False)], np.uint32)


_ASK: dict[str, Callable[..., Questions]] = {
    "facts": _ask_facts,
    "retrieval": _ask_retrieval,
    "mqar": _ask_mqar,
    "induction": _ask_induction,
    "random-strings": _ask_strings,
}
