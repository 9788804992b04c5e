"""Facts that are asked for with unequal frequency."""

import json
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

from mnemoscope.experiments.facts import learn_facts
from mnemoscope.spec import Facts, SpecError
from mnemoscope.spec.token_laws import probabilities
from mnemoscope.tasks.alias import alias_table
from mnemoscope.tasks.facts import Asked, Sizes, draw_sequences
from mnemoscope.ui.cli import main

SPEC = Facts(subjects=3, relations=2, answers=2, dim=8, heads=1, head_dim=4, length=5, frequencies="zipf:1.5")
SIZES = ["--subjects", "3", "--relations", "2", "--answers", "2", "--dim", "8", "--heads", "1", "--head-dim", "4"]
COMMAND = ["facts", *SIZES, "--max-steps", "32", "--batch", "16", "--seeds", "2", "--store", "none"]
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
    assert main([*COMMAND, "--frequencies", "zipf:2", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    shares = [trial["accuracy_by_fact"] for trial in told["trials"]]
    assert told["accuracy_by_fact"]["mean"] == pytest.approx(sum(shares) / 2)
    assert all(0 <= share <= 1 for share in shares)


def write(folder: Path, *shares: object) -> str:
    path = folder / "p.txt"
    path.write_text("\n".join(map(str, shares)))
    return f"file:{path}"


def test_facts_take_probabilities_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """From a file, an array or a function; a law's own probabilities in a file are that law."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "home"))
    small = dict(max_steps=32, batch=16, test_samples=64)
    zipf = SPEC.replace(**small)
    p = probabilities(SPEC.frequencies, 6)
    named = zipf.replace(frequencies=write(tmp_path, *p))
    assert named.frequencies.startswith("file:")
    assert (
        named == zipf.replace(frequencies=p) == zipf.replace(frequencies=lambda count: probabilities("zipf:1.5", count))
    )
    law, own = (learn_facts(spec, [0, 1], store=None) for spec in (zipf, named))
    assert [one.metrics for one in law.outcomes] == [one.metrics for one in own.outcomes]
    other = learn_facts(zipf.replace(frequencies=p[::-1]), [0, 1], store=None)
    assert [one.metrics for one in other.outcomes] != [one.metrics for one in own.outcomes]


@pytest.mark.parametrize(
    ("shares", "expected"),
    [
        ((0.5, 0.5), "subjects x relations = 6 probabilities, got 2"),
        ((0.5, 0.5, 0.1, 0, 0, 0), "probabilities that sum to 1 within 1e-06, got 1.1"),
        ((1.5, -0.5, 0, 0, 0, 0), "probabilities of at least 0, got -0.5 for token 1"),
        (("nan", 1, 0, 0, 0, 0), "probabilities of at least 0, got nan for token 0"),
        (("half",), "numbers, as .npy or as text"),
    ],
)
def test_wrong_probabilities_are_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], shares: Any, expected: str
):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "home"))
    law = write(tmp_path, *shares)
    assert main([*COMMAND, "--frequencies", law]) == 2
    line = capsys.readouterr().err
    assert line.startswith(f"mnemoscope: --frequencies: expected {expected}")
    assert line.count("\n") == 1


def test_a_law_that_is_none_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    for law, expected in (
        (f"file:{tmp_path}/none.txt", "a readable file, got "),
        ("zip:1", "uniform, zipf:EXPONENT or file:PATH, got 'zip:1'; did you mean 'zipf'?"),
        ("zip:law", "a module that can be imported"),
    ):
        assert main([*COMMAND, "--frequencies", law]) == 2
        line = capsys.readouterr().err
        assert line.startswith(f"mnemoscope: --frequencies: expected {expected}")
        assert line.count("\n") == 1
    words = [*COMMAND[:1], *COMMAND[7:], "--capacity", "equal", "--frequencies", write(tmp_path, 0.5, 0.5)]
    assert main(words) == 2
    assert "expected uniform or zipf:EXPONENT with --capacity" in capsys.readouterr().err


def test_only_facts_that_fit_a_table_have_frequencies_of_their_own():
    with pytest.raises(SpecError, match="expected uniform with more than 4,194,304 facts"):
        SPEC.replace(subjects=2**12, relations=2**11)
