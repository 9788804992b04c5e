"""Sequences of the transformer's tasks: each is what the task says, and a function of its number alone."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mnemoscope.spec import Facts, Transformer
from mnemoscope.tasks.facts import Sizes, draw_sequences
from mnemoscope.tasks.sequences import STRIDES, Counts, Which, ask, draw_tables, task_keys

SPECS = {
    "facts": Transformer(subjects=6, relations=4, answers=3, length=8),
    "relation": Transformer(subjects=6, relations=4, answers=3, length=8, query="relation", overlap=0.5),
    "zipf": Transformer(subjects=6, relations=4, answers=3, length=8, frequencies="zipf:1.1"),
    "mark": Transformer(task="retrieval", vocab=20, length=6),
    "query": Transformer(task="retrieval", vocab=20, length=6, cue="query", groups=4),
    "mqar": Transformer(task="mqar", vocab=16, pairs=5, queries=3),
    "induction": Transformer(task="induction", vocab=12, length=40, triggers=3),
    "strings": Transformer(task="random-strings", vocab=7, length=5, strings=90),
}
ROWS = 400


def drawn(spec: Transformer, rows: np.ndarray, seed: int = 3, **more) -> Any:
    """The questions and the tables, as NumPy arrays."""
    keys = {name: jnp.asarray(key) for name, key in task_keys(spec, seed).items()}
    counts = Counts.of(spec)
    tables = draw_tables(spec, counts, keys["table"])
    asked = ask(spec, counts, tables, keys, Which("train", jnp.asarray(rows, jnp.uint32), **more))
    return jax.tree.map(np.asarray, (asked, tables))


@pytest.mark.parametrize("name", SPECS)
def test_a_sequence_depends_on_its_number_alone(name):
    spec = SPECS[name]
    together, _ = drawn(spec, np.arange(64))
    picked, _ = drawn(spec, np.array([50, 7, 13]))
    for whole, few in zip(jax.tree.leaves(together), jax.tree.leaves(picked), strict=True):
        assert np.array_equal(whole[[50, 7, 13]], few)
    assert not np.array_equal(drawn(spec, np.arange(64), seed=4)[0].tokens, together.tokens)


@pytest.mark.parametrize("name", SPECS)
def test_what_decides_stands_where_it_is_sought(name):
    spec, (asked, tables) = SPECS[name], drawn(SPECS[name], np.arange(ROWS))
    sizes = spec.sizes
    assert asked.tokens.shape == (ROWS, sizes.positions)
    assert asked.answer.shape == asked.counted.shape == (ROWS, sizes.reads)
    assert asked.sought.shape == (ROWS, sizes.reads, sizes.positions)
    assert asked.tokens.max() < sizes.tokens
    assert asked.answer.max() < sizes.outputs
    if spec.task == "facts":
        _check_facts(spec, asked, tables)
    elif spec.task == "retrieval":
        token = asked.tokens[:, :-1][asked.sought[:, 0, :-1]]
        assert np.array_equal(tables.labels[token], asked.answer[:, 0])
        if spec.cue == "query":
            group = asked.tokens[:, -1] - spec.vocab
            assert np.array_equal(token % spec.groups, group)
            # No other token is of the group that is asked for.
            assert np.array_equal(asked.tokens[:, :-1] % spec.groups == group[:, None], asked.sought[:, 0, :-1])
    elif spec.task == "mqar":
        keys, values = asked.tokens[:, 0:10:2], asked.tokens[:, 1:10:2]
        assert all(len(set(row)) == 5 for row in keys)
        assert all(len(set(row)) == 3 for row in asked.tokens[:, 10:])
        for row in range(ROWS):
            value_of = dict(zip(keys[row], values[row], strict=True))
            assert [value_of[key] for key in asked.tokens[row, 10:]] == asked.answer[row].tolist()
        places = np.argmax(asked.sought, axis=2)
        assert np.array_equal(np.take_along_axis(asked.tokens, places, axis=1), asked.answer)


def _check_facts(spec, asked, tables):
    S, R = spec.subjects, spec.relations
    subject = asked.tokens < S
    assert np.array_equal(subject.sum(1), np.ones(ROWS))
    s = asked.tokens[subject]
    if spec.query == "end":
        r = asked.tokens[(asked.tokens >= S) & (asked.tokens < S + R)] - S
        assert (asked.tokens[:, -1] == S + R + spec.noise_tokens).all()
        assert np.array_equal(asked.sought[:, 0], asked.tokens < S + R)
    else:
        r = asked.tokens[:, -1] - S
        assert np.array_equal(asked.sought[:, 0], subject)
        share = ((asked.tokens[:, :-1] >= S) & (asked.tokens[:, :-1] < S + R)).sum() / (ROWS * 6)
        assert abs(share - spec.overlap) < 4 * 0.5 / (ROWS * 6) ** 0.5
    assert np.array_equal(r, asked.relation)
    assert np.array_equal(tables.answers[s, r], asked.answer[:, 0])
    assert np.array_equal(asked.answer[:, 0] // spec.answers, r)
    # The places of the subject are uniform: each of them within four standard errors.
    room = spec.length - 1
    counts = np.bincount(np.argmax(subject, axis=1), minlength=room)
    assert np.abs(counts - ROWS / room).max() < 4 * (ROWS / room * (1 - 1 / room)) ** 0.5


def test_facts_are_those_of_the_facts_kind():
    sizes: dict[str, Any] = dict(subjects=6, relations=4, answers=3, length=8, dim=16, heads=2)
    new = Transformer(**sizes, positions="none", mask="none")
    old = Facts(**sizes, head_dim=8)
    asked, _ = drawn(new, np.arange(50))
    key = jnp.asarray(task_keys(new, 3)["train"])
    known = draw_sequences(old, Sizes.of(old), key, jnp.arange(50, dtype=jnp.uint32))
    assert np.array_equal(asked.tokens, np.asarray(known.tokens))
    # With an order that the model can tell, they are the same tokens in another one.
    mixed, _ = drawn(new.replace(positions="learned"), np.arange(50))
    assert not np.array_equal(mixed.tokens, asked.tokens)
    assert np.array_equal(np.sort(mixed.tokens), np.sort(asked.tokens))


def test_every_fact_and_string_can_be_asked_for_once():
    for name in ("facts", "zipf"):
        spec = SPECS[name]
        asked, _ = drawn(spec, np.arange(spec.facts), item=jnp.arange(spec.facts, dtype=jnp.uint32))
        pairs = {(int(row[row < 6][0]), int(r)) for row, r in zip(asked.tokens, asked.relation, strict=True)}
        assert len(pairs) == 24
    strings = SPECS["strings"]
    once, _ = drawn(strings, np.arange(90), item=jnp.arange(90, dtype=jnp.uint32))
    for epoch in range(2 * STRIDES + 1):  # every epoch has each of them once
        asked, _ = drawn(strings, np.arange(90) + 90 * epoch)
        assert sorted(map(tuple, asked.answer)) == sorted(map(tuple, once.answer))
    assert (once.tokens[:, 0] == strings.vocab).all()
    assert np.array_equal(once.tokens[:, 1:], once.answer[:, :-1])


def test_a_second_batch_has_new_subjects_and_old_relations():
    spec = SPECS["facts"].replace(new_subjects=5, first_steps=10)
    end = 6 + 4 + spec.noise_tokens
    old, tables = drawn(spec, np.arange(ROWS), second=jnp.bool_(False))
    new, _ = drawn(spec, np.arange(ROWS), second=jnp.bool_(True))
    assert np.array_equal(old.tokens, drawn(SPECS["facts"], np.arange(ROWS))[0].tokens)
    named = new.tokens[new.tokens > end]
    assert len(named) == ROWS
    assert set(named - end - 1) == set(range(5))
    assert np.array_equal(tables.answers[named - end - 1 + 6, new.relation], new.answer[:, 0])


def test_a_chain_follows_its_thresholds_and_triggers_their_own_successor():
    spec = SPECS["induction"]
    asked, tables = drawn(spec, np.arange(ROWS))
    follows = [dict() for _ in range(ROWS)]
    for row, (tokens, answers) in enumerate(zip(asked.tokens, asked.answer, strict=True)):
        assert np.array_equal(tokens[1:], answers[:-1])
        for at, (token, answer) in enumerate(zip(tokens, answers, strict=True)):
            if token < 3:
                assert follows[row].setdefault(int(token), answer) == answer
            before = [k for k in range(1, at + 1) if tokens[k - 1] == token]
            assert np.flatnonzero(asked.sought[row, at]).tolist() == before
            assert asked.counted[row, at] == (token < 3 and bool(before))
    # How often 5 follows 4, against the chain's own share.
    share = np.diff(np.concatenate([[0], tables.chain[4].astype(float), [2.0**32]]))[5] / 2**32
    from_4 = asked.answer[asked.tokens == 4]
    error = (share * (1 - share) / len(from_4)) ** 0.5
    assert abs((from_4 == 5).mean() - share) < 4 * error
