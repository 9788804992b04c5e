"""`mnemoscope memory --items`: what it counts, and its refusals in one line."""

import json

import pytest

from mnemoscope.ui.cli import main

WORDS = ["memory", "--method", "one-step", "--dim", "16,24,32", "--seeds", "2", "--store", "none"]


def test_items_recalled_are_counted_with_the_power_of_d(capsys: pytest.CaptureFixture[str]):
    assert main([*WORDS, "--optimiser", "muon", "--items", "zipf:1.5", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["criterion"] == "recalled"
    assert told["predicted_slope"] == pytest.approx(1 + 1 / 3)
    assert told["slope"]["low"] < told["slope"]["value"] < told["slope"]["high"]
    point = told["points"][0]
    assert {"capacity", "low", "high", "status", "parameters", "items", "each_seed"} <= set(point)
    assert point["capacity"] == pytest.approx(sum(point["each_seed"]) / 2)
    assert 0 < point["accuracy_by_sequence"] < 1
    assert (
        main([*WORDS[:3], "--dim", "32", "--seeds", "2", "--store", "none", "--items", "zipf:1", "--number", "4"]) == 0
    )
    assert "above-range" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["--items", "zipf:-1"], "--items: expected a number from 0 to 10, got '-1' as zipf's exponent"),
        (["--items", "zipf:1", "--criterion", "all"], "--criterion: expected none with --items"),
        (["--number", "9"], "--number: expected --items with a law that is not uniform for it, got 9"),
        (["--items", "zipf:1", "--optimiser", "muno"], "--optimiser: expected one of gd, sgd"),
        (["--label-noise", "1"], "--label-noise: expected a share of at least 0 and below 1, got 1"),
        (["--schedule", "cosine"], "--schedule: expected the method trained for it, got 'cosine'"),
        (["--width", "8"], "--method: expected a linear memory of full rank for one-step"),
        (["--bits", "40"], "--bits: expected a whole number of at least 0 and at most 16, got '40'"),
    ],
)
def test_bad_options_are_refused_in_one_line(words: list[str], line: str, capsys: pytest.CaptureFixture[str]):
    assert main([*WORDS, *words]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.count("\n") == 1
    assert line in printed.err
