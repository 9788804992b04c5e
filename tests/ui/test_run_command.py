"""`mnemoscope run`: its outputs, its refusals, word for word, and its exit status."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import jax
import patience
import pytest
from patience import wait_until

from mnemoscope.engine.record import Trial
from mnemoscope.spec import Retrieval
from mnemoscope.store.trials import Store
from mnemoscope.training.three_step import records
from mnemoscope.ui.cli import main

SMALL = ["--vocab", "16", "--dim", "12", "--length", "4", "--samples", "1e3"]


def but(name: str, value: str) -> list[str]:
    """SMALL with one value changed."""
    words = list(SMALL)
    words[words.index(f"--{name}") + 1] = value
    return words


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["run", *words]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.count("\n") == 1
    return printed.err.removeprefix("mnemoscope: ").rstrip("\n")


def test_json_is_one_object_with_the_promised_keys(capsys: pytest.CaptureFixture[str]):
    assert main(["run", *SMALL, "--seeds", "2", "--seed", "5", "--json"]) == 0
    printed = capsys.readouterr()
    told = json.loads(printed.out)
    # A slow machine hears of progress there, and of nothing else.
    assert all(line.startswith("seeds:") for line in printed.err.splitlines())
    assert told["spec"]["samples"] == 1000
    assert [trial["seed"] for trial in told["trials"]] == [5, 6]
    for trial in told["trials"]:
        assert {"seed", "status", "accuracy", "attention_accuracy", "seconds"} <= set(trial)
        assert trial["status"] == "ok"
    mean = sum(trial["accuracy"] for trial in told["trials"]) / 2
    assert told["accuracy"]["mean"] == pytest.approx(mean)
    assert told["accuracy"]["low"] <= mean <= told["accuracy"]["high"]


def test_the_table_shows_the_steps_and_the_interval(capsys: pytest.CaptureFixture[str]):
    assert main(["run", *SMALL, "--seeds", "2"]) == 0
    text = capsys.readouterr().out
    for word in ("V=16 d=12 L=4 N=1,000", "after", "V1", "W1", "V2", "95 % interval", "chance"):
        assert word in text


def test_what_was_run_is_not_run_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    words = ["run", *SMALL, "--store", str(tmp_path / "s.db"), "--json"]
    assert main([*words, "--seeds", "2"]) == 0
    first = json.loads(capsys.readouterr().out)
    assert main([*words, "--seeds", "3"]) == 0
    more = json.loads(capsys.readouterr().out)
    assert more["trials"][:2] == first["trials"]  # to the second that they took
    assert main([*words[:-1], "--seeds", "3"]) == 0
    assert "3 of 3 seeds were in the store" in capsys.readouterr().out
    assert main(["run", *SMALL, "--store", "none", "--json", "--seeds", "2"]) == 0
    anew = json.loads(capsys.readouterr().out)
    assert [t["steps"] for t in anew["trials"]] == [t["steps"] for t in first["trials"]]
    assert [t["seconds"] for t in anew["trials"]] != [t["seconds"] for t in first["trials"]]


def test_few_modules_stand_between_the_command_and_the_record(monkeypatch: pytest.MonkeyPatch):
    """Those whose functions are being called, from `cli` to the trial's record: what a reader walks through."""
    on_the_way: set[str] = set()

    def record(*args: Any, **values: Any) -> Trial:
        frame = sys._getframe()
        while frame := frame.f_back:
            on_the_way.add(frame.f_globals["__name__"])
        return Trial(*args, **values)

    monkeypatch.setattr(records, "Trial", record)
    assert main(["run", *SMALL, "--seeds", "1", "--store", "none", "--json"]) == 0
    ours = {name for name in on_the_way if name.startswith("mnemoscope.")}
    assert {"mnemoscope.ui.cli.run", "mnemoscope.training.three_step.records"} < ours
    assert len(ours) <= 18, sorted(ours)


def test_the_mlp_is_introduced_by_its_hermite_parts(capsys: pytest.CaptureFixture[str]):
    assert main(["run", *SMALL, "--seeds", "1", "--width", "8"]) == 0
    assert "relu: constant 32%, linear 50%, higher Hermite parts 18%" in capsys.readouterr().out


def test_a_toml_file_gives_settings_and_options_win(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    file = tmp_path / "setting.toml"
    file.write_text('vocab = 16\ndim = 12\nlength = 4\nsamples = 1e3\ntrigger = "additive"\n')
    assert main(["run", "--spec", str(file), "--dim", "10", "--seeds", "1", "--json"]) == 0
    spec = json.loads(capsys.readouterr().out)["spec"]
    assert (spec["dim"], spec["trigger"]) == (10, "additive")


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (but("dim", "0"), "--dim: expected a whole number of at least 1 and at most 2,147,483,647, got '0'"),
        (but("samples", "-5"), "--samples: expected a whole number of at least 1 and at most 4,294,967,295, got '-5'"),
        (
            [*SMALL, "--embedding", "orthonormal"],
            "--dim: expected at least vocab = 16 for orthonormal embeddings, got 12",
        ),
        ([*SMALL, "--eta", "nan"], "--eta: expected 'limit' or a number from 1e-12 to 1e+12, got 'nan'"),
        (
            [*SMALL, "--eta", "1", "--gamma", "inf"],
            "--gamma: expected 'limit' or a number from 1e-12 to 1e+24, got 'inf'",
        ),
        (
            [*SMALL, "--width", "4", "--activation", "hermit3"],
            "--activation: expected one of relu, gelu, tanh, linear, hermite2, hermite3, "
            "got 'hermit3'; did you mean 'hermite3'?",
        ),
        (
            [*SMALL, "--test-samples", "0"],
            "--test-samples: expected a whole number of at least 1 and at most 4,294,967,295, got '0'",
        ),
        ([*SMALL, "--seeds", "0"], "--seeds: expected a whole number of at least 1 and at most 1,000,000, got '0'"),
        (
            [*SMALL, "--seed", "-1"],
            "--seed: expected a whole number of at least 0 and at most 9,223,372,036,854,775,807, got '-1'",
        ),
        ([*SMALL, "--device", "gpy"], "--device: expected one of auto, cpu, gpu, got 'gpy'; did you mean 'gpu'?"),
        ([*SMALL, "--vocb", "3"], "--vocb: expected a known option, got '--vocb'; did you mean --vocab?"),
        ([*SMALL, "--dim", "3"], "--dim: expected it once, got it several times"),
        ([*SMALL, "--eta"], "--eta: expected a value, got none"),
        ([*SMALL, "more"], "expected options, which start with --, got ['more']"),
        ([*SMALL, "--memory", "2 GBit"], "--memory: expected a size such as 2GB, 512MiB or 4e9, got '2 GBit'"),
        (SMALL[2:], "--vocab: expected a value, got none"),
    ],
)
def test_refusals(capsys: pytest.CaptureFixture[str], words: list[str], text: str):
    assert refused(capsys, *words) == text


def test_a_budget_that_is_too_small_is_said(capsys: pytest.CaptureFixture[str]):
    text = refused(capsys, *SMALL, "--memory", "2kB")
    assert text.startswith("--vocab: expected a size that fits in the 2 kB of the memory budget")


def test_a_gpu_that_is_asked_for_and_absent_is_said(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    def devices(name: str) -> list[object]:
        raise RuntimeError(f"Unknown backend: '{name}' requested")

    monkeypatch.setattr(jax, "devices", devices)
    text = refused(capsys, *SMALL, "--device", "gpu")
    assert text == "--device: expected a device that JAX sees (cpu), got 'gpu'"


def test_a_typo_in_a_toml_key_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    file = tmp_path / "typo.toml"
    file.write_text("vocab = 16\nlenght = 4\n")
    assert refused(capsys, "--spec", str(file)) == (
        f"--spec: expected known settings, got 'lenght' in '{file}'; did you mean 'length'?"
    )


def test_a_wrong_value_in_a_toml_file_names_the_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    file = tmp_path / "wrong.toml"
    file.write_text("vocab = 16\ndim = [1]\nlength = 4\nsamples = 100\n")
    assert refused(capsys, "--spec", str(file)) == (
        f"--dim: expected a whole number of at least 1 and at most 2,147,483,647, got [1] (in '{file}')"
    )


def test_an_unknown_command_is_told_the_known_ones(capsys: pytest.CaptureFixture[str]):
    assert main(["rnu"]) == 2
    text = capsys.readouterr().err
    assert text.startswith("mnemoscope: expected a command out of run, predict, ")
    assert "got 'rnu'; did you mean" in text


def test_large_seeds_are_kept_to_the_last_digit(capsys: pytest.CaptureFixture[str]):
    assert main(["run", *SMALL, "--seeds", "1", "--seed", "9007199254740993", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["trials"][0]["seed"] == 9007199254740993


def test_output_survives_a_reader_that_leaves_and_a_terminal_without_our_letters():
    words = [sys.executable, "-m", "mnemoscope", "run", *SMALL, "--seeds", "1"]
    plain = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(words, capture_output=True, text=True, env=plain, check=False)
    # A slow machine says first how long it will take, so standard error need not be empty.
    assert done.returncode == 0
    assert "Traceback" not in done.stderr
    assert done.stdout.isascii()
    assert done.stderr.isascii()
    with subprocess.Popen([*words, "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as job:
        assert job.stdout is not None
        assert job.stderr is not None
        job.stdout.close()
        assert "Traceback" not in job.stderr.read()


def test_a_size_that_cannot_fit_says_how_much_it_needs(capsys: pytest.CaptureFixture[str]):
    text = refused(capsys, *but("vocab", "2e9"))
    assert text.startswith("--vocab: expected a size that fits in the ")
    assert "which needs 712 GB (480 GB for sums by label)" in text


@pytest.mark.long
def test_ctrl_c_keeps_what_was_finished(tmp_path: Path):
    # Whoever runs the tests in the background may have had the interrupt ignored.
    script = (
        "import signal, sys; from mnemoscope.ui.cli import main; "
        "signal.signal(signal.SIGINT, signal.default_int_handler); sys.exit(main(sys.argv[1:]))"
    )
    store = tmp_path / "s.db"
    words = [sys.executable, "-u", "-c", script, "run", *SMALL, "--seeds", "1e6"]
    words += ["--store", str(store), "--yes"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as job:
        try:
            with Store(store) as kept:
                wait_until(kept.count, "a trial is kept")
            job.send_signal(signal.SIGINT)
            out, err = job.communicate(timeout=patience.SECONDS)
        finally:
            job.kill()
    assert job.returncode == 1
    assert "accuracy" in out
    assert "of 1000000 seeds are done" in err
    assert "Traceback" not in err


def test_help_names_every_option(capsys: pytest.CaptureFixture[str]):
    assert main(["run", "--help"]) == 0
    text = capsys.readouterr().out
    for name in (*Retrieval.model_fields, "seeds", "seed", "device", "memory", "spec", "json"):
        assert f"--{name.replace('_', '-')}" in text


ZIPF = [*SMALL, "--tokens", "zipf:1.5"]


def test_with_frequencies_accuracy_is_by_sequence_by_fact_and_by_band(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    assert main(["run", *ZIPF, "--seeds", "3", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    by_fact = [trial["accuracy_by_fact"] for trial in told["trials"]]
    assert told["accuracy_by_fact"]["mean"] == pytest.approx(sum(by_fact) / 3)
    assert told["accuracy_by_fact"]["low"] <= min(by_fact) + 1 / 16
    assert sum(band["tokens"] for band in told["bands"]) == 16
    assert [band["least"] for band in told["bands"]] == sorted(band["least"] for band in told["bands"])
    weighted = sum(band["tokens"] * band["accuracy"]["mean"] for band in told["bands"]) / 16
    assert weighted == pytest.approx(told["accuracy_by_fact"]["mean"])
    picture = tmp_path / "bands.svg"
    assert main(["run", *ZIPF, "--seeds", "3", "--out", str(picture)]) == 0
    text = capsys.readouterr().out
    assert str(picture) in text.replace("\n", "")  # a long path is broken
    for word in ("tokens by zipf:1.5", "accuracy by fact", "with the most frequent label", "100-1000"):
        assert word in text
    drawn = picture.read_text()
    assert "<svg" in drawn


def test_without_frequencies_nothing_is_told_by_fact(capsys: pytest.CaptureFixture[str]):
    assert main(["run", *SMALL, "--seeds", "2", "--json"]) == 0
    assert not {"accuracy_by_fact", "bands", "calibration"} & json.loads(capsys.readouterr().out).keys()


def test_calibration_is_told_where_it_is_asked_for(capsys: pytest.CaptureFixture[str]):
    few = but("samples", "12")
    assert main(["run", *few, "--seeds", "2", "--calibration", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)["calibration"]
    assert {"auc", "share_seen", "confidence", "predicted"} == told.keys()
    assert 0 < told["share_seen"] < 1
    assert max(told["confidence"].values()) == 1
    assert main(["run", *few, "--seeds", "2", "--calibration"]) == 0
    assert "of telling them apart" in capsys.readouterr().out
    line = refused(capsys, *few, "--calibration", "--then", "gd", "--steps", "2")
    assert line == "--then: expected none for calibration, which is of the three steps, got 'gd'"


def test_wrong_frequencies_are_refused_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    def line_of(*numbers: str) -> str:
        path = tmp_path / "p.txt"
        path.write_text("\n".join(numbers))
        return refused(capsys, *SMALL, "--tokens", f"file:{path}")

    others = ["0.06"] * 15
    assert line_of(*others, "0.100002") == "--tokens: expected probabilities that sum to 1 within 1e-06, got 1.000002"
    assert line_of(*others, "-0.1") == "--tokens: expected probabilities of at least 0, got -0.1 for token 15"
    assert line_of(*others, "nan") == "--tokens: expected probabilities of at least 0, got nan for token 15"
    assert line_of("0.5", "0.5") == "--tokens: expected vocab = 16 probabilities, got 2"
    assert line_of("0.5", "x").startswith("--tokens: expected numbers, as .npy or as text, got ")
    missing = refused(capsys, *SMALL, "--tokens", "file:missing.txt")
    assert missing == "--tokens: expected a readable file, got 'missing.txt' (No such file or directory)"
    zipf = refused(capsys, *SMALL, "--tokens", "zipf:-0.5")
    assert zipf == "--tokens: expected a number from 0 to 10, got '-0.5' as zipf's exponent"
    assert refused(capsys, *SMALL, "--tokens", "zipf:nan").startswith("--tokens: expected a number from 0 to 10")
    near = refused(capsys, *SMALL, "--tokens", "zip:1")
    assert near == "--tokens: expected uniform, zipf:EXPONENT or file:PATH, got 'zip:1'; did you mean 'zipf'?"


def test_probabilities_of_ones_own_are_kept_by_content(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = tmp_path / "p.txt"
    path.write_text(" ".join(["0.06"] * 15 + ["0.1"]))
    sizes = SMALL[2:]  # the file says how many tokens there are
    ids = []
    for _ in range(2):
        assert main(["run", *sizes, "--tokens", f"file:{path}", "--seeds", "1", "--json"]) == 0
        told = json.loads(capsys.readouterr().out)
        ids.append(told["id"])
        assert told["spec"]["vocab"] == 16
        assert told["spec"]["tokens"].startswith("file:")
        path = path.rename(tmp_path / "q.txt")
    assert ids[0] == ids[1]
