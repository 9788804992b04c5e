"""Facts that are asked for with unequal frequency."""

import json

import jax.numpy as jnp
import numpy as np
import pytest

from mnemoscope.spec import Facts, SpecError
from mnemoscope.spec.token_laws import probabilities
from mnemoscope.tasks.alias import alias_table
from mnemoscope.tasks.facts import Asked, Sizes, draw_sequences
from mnemoscope.ui.cli import main

SPEC = Facts(subjects=3, relations=2, answers=2, dim=8, heads=1, head_dim=4, length=5, frequencies="zipf:1.5")
KEY = jnp.asarray(np.array([3, 4], np.uint32))


def asked(first: int, stop: int, *, by_fact: bool = False) -> Asked:
    sizes = Sizes.of(SPEC, alias_table(SPEC.frequencies, SPEC.facts))
    return draw_sequences(SPEC, sizes, KEY, jnp.arange(first, stop, dtype=jnp.uint32), by_fact=by_fact)


def test_facts_by_rank_are_those_of_the_docstring():
    drawn = asked(0, 6, by_fact=True)  # as many rows as facts: each once
    pairs = [*zip(drawn.subject.tolist(), drawn.relation.tolist(), strict=True)]
    assert pairs == [(0, 0), (1, 1), (2, 0), (0, 1), (1, 0), (2, 1)]
    np.testing.assert_array_equal(drawn.tokens[:, :2], [[s, 3 + r] for s, r in pairs])


def test_facts_are_asked_for_as_often_as_their_law_says_and_by_their_number_alone():
    drawn = asked(0, 2**15)
    p = probabilities(SPEC.frequencies, 6)
    order = [(0, 0), (1, 1), (2, 0), (0, 1), (1, 0), (2, 1)]
    shares = np.array([np.mean((drawn.subject == s) & (drawn.relation == r)) for s, r in order])
    # The largest of six normal deviations is above 4.5 once in 25,000 times.
    assert (np.abs(shares - p) < 4.5 * np.sqrt(p * (1 - p) / 2**15)).all()
    for whole, part in zip(drawn, asked(700, 800), strict=True):
        np.testing.assert_array_equal(whole[700:800], part)
    even = asked(0, 2**15, by_fact=True)
    counts = np.bincount(np.asarray(even.subject) * 2 + np.asarray(even.relation))
    # Strata: a fact gains or loses a row at each end.
    assert np.abs(counts - 2**15 / 6).max() <= 2


def test_facts_command_tells_accuracy_by_sequence_and_by_fact(capsys: pytest.CaptureFixture[str]):
    words = ["--subjects", "3", "--relations", "2", "--answers", "2", "--dim", "8", "--heads", "1", "--head-dim", "4"]
    words = ["facts", *words, "--max-steps", "32", "--batch", "16", "--seeds", "2", "--store", "none"]
    assert main([*words, "--frequencies", "zipf:2", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    shares = [trial["accuracy_by_fact"] for trial in told["trials"]]
    assert told["accuracy_by_fact"]["mean"] == pytest.approx(sum(shares) / 2)
    assert all(0 <= share <= 1 for share in shares)
    for law in ("file:p.txt", "zip:1"):
        assert main([*words, "--frequencies", law]) == 2
        line = capsys.readouterr().err
        assert line.startswith("mnemoscope: --frequencies: expected uniform or zipf:EXPONENT, got ")
        assert line.count("\n") == 1


def test_only_facts_that_fit_a_table_have_frequencies_of_their_own():
    with pytest.raises(SpecError, match="expected uniform with more than 4,194,304 facts"):
        SPEC.replace(subjects=2**12, relations=2**11)
