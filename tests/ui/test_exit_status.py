"""One rule for all commands.

0: the work was done, and the answer is in the output, also where it is that nothing was found.
2: the request is wrong. 1: anything else, such as a trial that crashed.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mnemoscope import Retrieval
from mnemoscope.experiments.forecast import of_settings
from mnemoscope.experiments.validation import parts as validate
from mnemoscope.experiments.validation.validate import compare_accuracy
from mnemoscope.ui.bench.compare import run_cases
from mnemoscope.ui.cli import COMMANDS, main

# The sizes of tests/training, whose programs serve here too.
SIZES = ["--vocab", "32", "--dim", "20", "--length", "4"]
TESTS = ["--test-samples", "64"]
MODEL = ["--dim", "4", "--heads", "1", "--head-dim", "2", "--max-steps", "32", "--batch", "8"]
OWN = ["--model", "own_models:Bag", "--task", "mnemoscope.tasks.own:Lookup"]
FEW = ["--set", "batch=8", "--set", "max_steps=8", "--set", "test_samples=64"]
AXES = ["--vocab", "32", "--length", "4", "--range", "1:2", *TESTS]
# Where nothing is found, or there is nothing to do: words, what the table says, and what JSON does.
NOTHING: list[tuple[list[str], str, dict[str, Any]]] = [
    (
        ["run", *SIZES, *TESTS, "--samples", "9", "--seeds", "1", "--then", "gd", "--steps", "2", "--lr", "1e38"],
        "diverged",
        {},
    ),
    (["predict", *SIZES, "--samples", "9", "--eta", "1"], "outside the derivation", {"accuracy": None}),
    (["critical", *SIZES, *TESTS, "--range", "1:2"], "above-range", {"status": "above-range", "estimate": None}),
    (
        ["phase", "--vocab", "32", "--length", "4", "--x", "dim=20,24", "--y", "samples=1,2", "--seeds", "1", *TESTS],
        "measured accuracy",
        {"contour": [None, None]},
    ),
    (
        ["fit", *AXES, "--axis", "dim=18,20,24"],
        "no exponents: too few points",
        {
            "status": "too-few-points",
            "exponents": [{"axis": "dim", "value": None, "low": None, "high": None, "error": None}],
        },
    ),
    (
        ["capacity", *OWN, *FEW, "--along", "vocab", "--range", "200:400", "--seeds", "2"],
        "below-range",
        {"status": "below-range", "capacity": None},
    ),
    (["check", "own_models:Bag"], "travels", {}),
    (
        ["memory", "--dim", "6", "--range", "2000:4000", "--seeds", "2"],
        "below-range",
        {"status": "below-range", "capacity": None},
    ),
    (["facts", "--subjects", "4", "--relations", "4", "--answers", "4", *MODEL], "unreached", {}),
    (["dynamics", "--lr", "1000", "--steps", "64"], "diverged", {"status": "diverged"}),
    (["reproduce", "b-fig5", "--list"], "b-fig5", {}),
    (["report"], "nothing to show", {"claims": [], "path": None}),
    (
        ["plan", "--facts", "1e6", "--length", "64", "--tokens", "10", "--out", "none.svg"],
        "",
        {"recommended": None, "path": None},
    ),
    (["laws"], "", {}),
    (["store", "list"], "0 trials in all", {"settings": [], "trials": 0}),
    (["store", "export", "none.csv"], "0 trials", {"trials": 0}),
    (["store", "verify"], "0 trials, 0 faults", {"trials": 0, "faults": []}),
    (["store", "repair"], "0 sound trials", {"trials": 0, "faults": []}),
    (["store", "prune", "--where", "status=crashed"], "0 trials", {"trials": 0}),
    (["bound", *SIZES, "--samples", "9", "--seeds", "1"], "", {}),
    (["validate", "accuracy", "--seeds", "2"], "", {"seeds": 2}),
    (["embeddings", "own.npy", "--samples", "9", "--seeds", "1"], "Recall", {}),
    (["bench", *SIZES, "--samples", "500", "--quick", "--no-growth", "--no-autodiff"], "ratio", {"growth": None}),
]
# Those that compile for seconds.
COMPILES = ("capacity", "embeddings", "bench")
# A request of each command that is wrong.
WRONG = {
    "run": ["--vocab", "16"],
    "predict": ["--vocab", "16"],
    "critical": [*SIZES, "--range", "9:2"],
    "phase": ["--x", "dim=1,2", "--y", "nothing=1,2"],
    "fit": ["--axis", "dim=8,12", "--vocab", "16", "--length", "4"],
    "capacity": [*OWN, "--along", "nothing"],
    "check": ["nothing:at_all"],
    "memory": ["--dim", "0"],
    "facts": ["--subjects", "0"],
    "dynamics": ["--answers", "7"],
    "reproduce": ["nothing"],
    "report": ["--ledger", "nothing.json"],
    "plan": ["--facts", "1", "--length", "64"],
    "explore": ["--port", "-1"],
    "embeddings": ["nothing.npy"],
    "laws": ["--length-power", "2"],
    "bound": ["--vocab", "16"],
    "validate": ["nothing"],
    "store": ["list", "--store", "nothing.db"],
    "bench": ["--device", "abacus"],
}


@pytest.fixture(autouse=True)
def an_empty_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing was ever run here; files of a command's own are in a folder of the test's."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)
    np.save("own.npy", np.random.default_rng(0).normal(size=(32, 20)))
    small = validate.Part(
        lambda count: [Retrieval(vocab=32, dim=20, length=4, samples=9)], 1, 1, compare_accuracy, of_settings
    )
    monkeypatch.setitem(validate.PARTS, "accuracy", small)


@pytest.mark.parametrize(
    ("words", "said", "told"),
    [
        pytest.param(*each, marks=[pytest.mark.long] * (each[0][0] in COMPILES), id=" ".join(each[0][:2]))
        for each in NOTHING
    ],
)
def test_nothing_found_is_an_answer(
    words: list[str],
    said: str,
    told: dict[str, Any],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
):
    if words[0] == "bench":  # timed once, and told twice
        found_before: list[Any] = []

        def once(*given: Any, **more: Any) -> Any:
            if not found_before:
                found_before.append(run_cases(*given, **more))
            return found_before[0]

        monkeypatch.setattr("mnemoscope.ui.cli.bench.run_cases", once)
    assert main([*words, "--json"]) == 0
    printed = capsys.readouterr().out
    found = json.loads(printed)
    assert {name: found[name] for name in told} == told
    assert main(words) == 0
    assert said in " ".join(capsys.readouterr().out.split())


def test_all_commands_are_held_to_it():
    assert {words[0] for words, *_ in NOTHING} == set(COMMANDS) - {"explore"}  # which goes on
    assert set(WRONG) == set(COMMANDS)


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_request(name: str, capsys: pytest.CaptureFixture[str]):
    assert main([name, *WRONG[name]]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    (line,) = printed.err.splitlines()
    assert line.startswith("mnemoscope: ")


@pytest.mark.parametrize(
    ("words", "where"),
    [
        (["run", *SIZES, "--samples", "9", "--seeds", "2"], "mnemoscope.experiments.workers.batches.simulate"),
        (["critical", *SIZES, "--range", "10:90"], "mnemoscope.training.three_step.kind.simulate_many"),
        (
            ["phase", *SIZES[:2], *SIZES[4:], "--x", "dim=20,24", "--y", "samples=10,20"],
            "mnemoscope.training.three_step.kind.simulate_many",
        ),
        (
            ["fit", *SIZES[:2], *SIZES[4:], "--range", "10:90", "--axis", "dim=18,20,24"],
            "mnemoscope.training.three_step.kind.simulate_many",
        ),
        (["embeddings", "own.npy", "--samples", "9"], "mnemoscope.training.three_step.kind.simulate_many"),
        (["memory", "--dim", "6", "--seeds", "2"], "mnemoscope.training.memory.MEMORY.run"),
        (
            ["facts", "--subjects", "4", "--relations", "4", "--answers", "4", *MODEL],
            "mnemoscope.training.facts.FACTS.run",
        ),
        (["facts", "--capacity", "equal", *MODEL, "--seeds", "2"], "mnemoscope.training.facts.FACTS.run"),
    ],
    ids=lambda one: one[0] if isinstance(one, list) else "",
)
def test_a_crash_is_neither(
    words: list[str], where: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    """The output still says what there is to say."""

    def fail(*_: object, **more: object) -> None:
        raise RuntimeError("no such thing")

    monkeypatch.setattr(where, fail)
    assert main([*words, "--json"]) == 1
    printed = capsys.readouterr()
    assert isinstance(json.loads(printed.out), dict)
    assert "crashed" in printed.err
    assert "Traceback" not in printed.err
