"""Plans for facts that are not equally frequent: what is kept, and what a budget loses."""

import json

import pytest

from mnemoscope.experiments.plan_frequencies import FrequencyPlan, plan_frequencies
from mnemoscope.ui.cli import main

WORDS = ["plan", "--facts", "400", "--frequencies", "zipf:1", "--length", "4", "--training", "three-steps"]
BUDGET = ["--parameters", "2e4", "--tokens", "1e5"]


def plan(parameters: float) -> FrequencyPlan:
    return plan_frequencies("zipf:1", 4, 0.8, facts=400, parameters=parameters, tokens=1e5, training="three-steps")


def test_a_larger_budget_keeps_rarer_facts():
    small, large = plan(2e4), plan(2e5)
    assert 0 < small.facts < large.facts < 400
    assert small.asked < large.asked < 1
    for one in (small, large):
        ranks = one.prediction.ranks
        assert all(rank.recall >= 0.8 for rank in one.kept)
        assert ranks[len(one.kept)].recall < 0.8


def test_the_command_says_what_is_lost(capsys: pytest.CaptureFixture[str]):
    assert main([*WORDS, *BUDGET, "--target", "0.8", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["kept"] + told["lost"] == 400
    assert told["spec"]["dim"] == 100
    assert told["samples_of_rarest"] == pytest.approx(25_000 * told["rarest_kept"])
    assert main([*WORDS, *BUDGET, "--target", "0.8"]) == 0
    assert f"lost       {told['lost']:,} facts: those rarer than 1 in" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([*WORDS, "--tokens", "1e5"], "--parameters: expected a budget"),
        ([*WORDS, "--parameters", "2e4"], "--tokens: expected a budget"),
        ([*WORDS[:-1], "trained", *BUDGET], "--training: expected three-steps"),
        ([*WORDS, "--parameters", "3", "--tokens", "1e5"], "--parameters: expected at least 8"),
        ([*WORDS, "--parameters", "2e4", "--tokens", "3"], "--tokens: expected at least one sequence"),
        ([*WORDS[:4], "zipf:0", *WORDS[5:], *BUDGET], "--frequencies: expected zipf:A above 0"),
        ([*WORDS[:4], "zpf:1", *WORDS[5:], *BUDGET], "--frequencies: expected uniform, zipf:EXPONENT"),
        (["plan", *WORDS[3:], *BUDGET], "--facts: expected how many facts"),
        ([*WORDS, *BUDGET, "--out", "plan.png"], "--out: expected no file"),
    ],
)
def test_refusals_are_one_line(words: list[str], message: str, capsys: pytest.CaptureFixture[str]):
    assert main(words) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert message in told.err
    assert told.err.count("\n") == 1
