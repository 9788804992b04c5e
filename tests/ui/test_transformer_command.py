"""`run` and `capacity` with the model that is ours: what they print, draw and refuse."""

import json
from pathlib import Path

import pytest

from mnemoscope.ui.cli import built_in_model, main

TINY = "--subjects 4 --relations 2 --answers 2 --length 5 --dim 8 --heads 2 --layers 2 --batch 16 --test-samples 64"
RUN = ["run", "--model", "transformer", *TINY.split(), "--max-steps", "32", "--seeds", "2"]


def test_a_built_in_model_is_named_without_a_colon():
    assert built_in_model(["run", "--model", "transformer", "--dim", "8"]) == (["run", "--dim", "8"], "transformer")
    assert built_in_model(["capacity", "--model=transformer"]) == (["capacity"], "transformer")
    for words in (["run", "--model", "mine:model"], ["predict", "--model", "transformer"], ["run"], []):
        assert built_in_model(words) == (words, "")


def test_a_run_is_told_drawn_and_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    store, out, maps = tmp_path / "s.db", tmp_path / "run.png", tmp_path / "maps.svg"
    assert main([*RUN, "--store", str(store), "--json", "--out", str(out), "--maps", str(maps)]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["spec"]["task"] == "facts"
    assert [trial["seed"] for trial in told["trials"]] == [0, 1]
    for trial in told["trials"]:
        assert {"accuracy", "attention_accuracy", "attention_2_1", "bits_stored", "bits_per_parameter"} <= trial.keys()
        assert {"recalled", "hallucination", "confidence", "seconds", "status", "curve"} <= trial.keys()
    assert told["accuracy"]["low"] <= told["accuracy"]["mean"] <= told["accuracy"]["high"]
    assert out.stat().st_size > 1000
    assert maps.stat().st_size > 1000
    assert main([*RUN, "--store", str(store)]) == 0
    shown = capsys.readouterr().out
    assert "2 of 2 seeds were in the store" in shown
    assert "facts: 13 tokens, 4 answers, sequences of 5, 8 to recall, 8 bits" in shown
    assert "Attention on what decides" in shown


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("run --heads 3", "--heads: expected a divisor of dim = 64, or a head_dim, got 3"),
        ("run --length 64 --context 32", "--length: expected a sequence of at most context = 32 positions, got 64"),
        ("run --task fact", "--task: expected one of facts, retrieval, mqar, induction, random-strings, got 'fact'"),
        ("run --max-steps 0", "--max-steps: expected a whole number of at least 1"),
        ("run --task mqar --subjects 8", "--subjects: expected it with the task facts, got it with mqar"),
        ("run --dim 65536 --heads 16 --layers 64", "--dim: expected a size that fits in the free memory, got 65,536"),
        ("run --out picture.txt", "--out: expected a file ending in"),
        ("capacity --along lr", "--along: expected one of facts, subjects, dim, layers, heads, width, steps"),
        ("capacity --along layers --range 1:100", "--layers: expected a whole number of at least 1 and at most 64"),
        ("capacity --rates 1e-2,x", "--rates: expected a number"),
    ],
)
def test_what_cannot_be_run_is_refused_in_one_line(words: str, says: str, tmp_path: Path, capsys):
    command, *rest = words.split()
    store = tmp_path / "s.db"
    assert main([command, "--model", "transformer", *rest, "--store", str(store)]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith(f"mnemoscope: {says}")
    assert captured.err.count("\n") == 1
    assert not store.exists()


def test_a_name_that_is_nearly_ours_is_pointed_out(capsys: pytest.CaptureFixture[str]):
    assert main(["run", "--model", "transformr"]) == 2
    assert (
        "expected MODULE:OBJECT or transformer, got 'transformr'; did you mean 'transformer'?"
        in capsys.readouterr().err
    )


@pytest.mark.long
def test_capacity_asks_for_the_most_facts_or_the_least_steps(capsys: pytest.CaptureFixture[str]):
    words = ["capacity", "--model", "transformer", *TINY.split(), "--lr", "0.01", "--store", "none"]
    words += ["--target", "0.4", "--seeds", "2", "--tolerance", "2", "--json"]
    assert main([*words, "--max-steps", "64", "--along", "facts", "--range", "4:64"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["along"], found["bound"]) == ("facts", "most")
    assert found["status"] in ("found", "unresolved", "below-range", "above-range")
    # Every training that was run says whether it reached the target, and the limit lies between them.
    for seed, limit in enumerate(found["each_seed"]):
        if limit is None:
            continue
        mine = [trial for trial in found["trials"] if trial["seed"] == seed]
        assert all((trial["status"] == "ok") == (trial["facts"] <= limit) for trial in mine)


def test_help_says_what_the_options_of_the_model_are(capsys: pytest.CaptureFixture[str]):
    main(["run", "--model", "transformer", "--help"])
    shown = capsys.readouterr().out
    assert all(part in shown for part in ("The task", "The model", "Its training", "--layers", "--positions"))
    main(["run", "--help"])
    assert "--model transformer" in " ".join(capsys.readouterr().out.split())
