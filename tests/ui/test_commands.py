"""What all commands share: how they are found, and what loading one costs."""

import inspect
import logging
import subprocess
import sys
from importlib import import_module
from importlib.metadata import version

import cyclopts
import pytest

import mnemoscope
from mnemoscope.spec import SpecError
from mnemoscope.ui.cli import COMMANDS, PURPOSES, main


@pytest.mark.parametrize("name", COMMANDS)
def test_a_commands_help_begins_with_its_line_in_the_list(name: str):
    command = getattr(import_module(f"mnemoscope.ui.cli.{name}"), name)
    help_text = command.help if isinstance(command, cyclopts.App) else inspect.getdoc(command)
    assert (help_text or "").splitlines()[0] == COMMANDS[name]


def test_every_command_has_a_purpose():
    assert sorted(name for names in PURPOSES.values() for name in names) == sorted(COMMANDS)


def test_the_list_and_a_commands_own_help(capsys: pytest.CaptureFixture[str]):
    assert main(["--help"]) == 0
    shown = capsys.readouterr().out
    assert all(name in shown for name in COMMANDS)
    assert all(purpose in shown for purpose in PURPOSES)
    assert main(["predict", "--help"]) == 0
    assert "mnemoscope predict --vocab 512" in capsys.readouterr().out


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_takes_verbose(name: str, capsys: pytest.CaptureFixture[str]):
    assert main([name, "-v", "--help"]) == 0
    assert "Every command takes -v" in capsys.readouterr().out


@pytest.mark.parametrize(("words", "said"), [([], []), (["-v"], ["info"]), (["-vv"], ["debug", "info"])])
def test_what_the_package_logs_goes_to_standard_error(
    words: list[str], said: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    log = logging.getLogger("mnemoscope.theory")

    def predict(*_: object, **__: object) -> None:
        log.debug("debug")
        log.info("info")
        log.warning("warning")
        raise SpecError("dim", "expected nothing")

    monkeypatch.setattr("mnemoscope.ui.cli.predict.predict_spec", predict)
    sizes = ["--vocab", "64", "--dim", "32", "--length", "4", "--samples", "500"]
    assert main(["predict", *sizes, *words]) == 2
    lines = [f"mnemoscope: {line}" for line in (*said, "warning", "--dim: expected nothing")]
    assert capsys.readouterr().err.splitlines() == lines


def test_theory_runs_without_the_simulator():
    code = (
        "import sys; from mnemoscope.ui.cli import main; import mnemoscope as mn; "
        "mn.predict(mn.Retrieval(vocab=64, dim=32, length=4, samples=500)); "
        "main(['predict', '--vocab', '64', '--dim', '32', '--length', '4', '--samples', '500']); "
        "sys.exit('jax' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True).returncode == 0


def test_every_public_name_is_there():
    for name in mnemoscope.__all__:
        assert callable(getattr(mnemoscope, name)), name
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        getattr(mnemoscope, "nothing")  # noqa: B009


def test_the_package_lists_its_public_names_and_its_version():
    assert set(dir(mnemoscope)) == {*mnemoscope.__all__, "__version__"}
    assert mnemoscope.__version__ == version("mnemoscope")
    # Listing them loads nothing: theory alone still starts in a moment.
    code = "import sys, mnemoscope as m; dir(m), m.__version__; sys.exit('jax' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


@pytest.mark.parametrize(
    ("command", "options"),
    [
        ("facts", ("--subjects", "--head-dim", "--mixing", "--method", "--max-steps")),
        ("memory", ("--dim", "--method", "--width", "--rank", "--outputs", "--embedding")),
        ("dynamics", ("--relations", "--steps", "--batch")),
        ("run", ("--vocab", "--samples", "--embedding")),
    ],
)
def test_help_shows_the_settings(command: str, options: tuple[str, ...], capsys: pytest.CaptureFixture[str]):
    assert main([command, "--help"]) == 0
    text = capsys.readouterr().out
    for option in options:
        assert f" {option} " in text


@pytest.mark.parametrize("name", COMMANDS)
def test_help_names_types_and_choices(name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("COLUMNS", "400")
    assert main([name, "--help"]) == 0
    lines = [line.strip("│ ") for line in capsys.readouterr().out.splitlines()]
    shown = {line.split()[0]: line for line in lines if line.startswith("--")}
    assert not {option for option, line in shown.items() if line.split()[1:2] == ["STR"]}
    for option, names in {
        "--device": "auto, cpu, gpu",
        "--trigger": "keys, additive",
        "--along": "vocab, dim,",
    }.items():
        assert option not in shown or f"[choices: {names}" in shown[option]
    for option in ("--vocab", "--seeds", "--subjects"):
        assert option not in shown or f"{option} INT" in shown[option]


def test_the_default_of_a_field_is_in_the_help(capsys: pytest.CaptureFixture[str]):
    assert main(["run", "--help"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "[choices: relu, gelu, tanh, linear, hermite2, hermite3] [default: relu]" in text.replace(" │ │ ", " ")


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["check", "nothing:at_all"], "OBJECT: expected a module that can be imported, got 'nothing': "),
        (["check"], "OBJECT: expected a value, got none"),
        (["validate", "nothing"], "PARTS: expected one of "),
        (["memory", "--dim", "0"], "--dim: expected a whole number of at least 1"),
        (["embeddings"], "--path: expected a value, got none"),  # an option, too
    ],
)
def test_an_argument_without_an_option_is_named_as_in_help(
    words: list[str], line: str, capsys: pytest.CaptureFixture[str]
):
    assert main(words) == 2
    assert capsys.readouterr().err.startswith(f"mnemoscope: {line}")
