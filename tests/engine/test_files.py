"""Paths that cannot be: every option that takes one answers in one line, and writes nothing."""

import inspect
import os
import shutil
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, get_args, get_type_hints

import cyclopts
import pytest
from hang_guard import no_hang
from places import DATA

from mnemoscope.engine import files
from mnemoscope.ui.cli import COMMANDS, main
from mnemoscope.ui.cli.options import Work
from mnemoscope.ui.cli.setting import Setting

SIZES = ["--vocab", "16", "--dim", "8", "--length", "2", "--samples", "50"]
GRID = ["--axis", "vocab=16,32", "--axis", "dim=8,12", "--length", "2"]
LEDGER = ["--ledger", str(DATA / "quick.json")]
# How each command is called, but for the path itself.
WORDS: dict[str, list[str]] = {
    "bench": ["bench", *SIZES],
    "bound": ["bound", *SIZES],
    "capacity": [
        "capacity",
        "--model",
        "mnemoscope.studies.conformance:Constant",
        "--task",
        "mnemoscope.tasks.own:Lookup",
        "--along",
        "vocab",
    ],
    "critical": ["critical", *SIZES, "--along", "samples", "--range", "9:99"],
    "dynamics": ["dynamics", "--steps", "1"],
    "embeddings": ["embeddings", "MATRIX"],
    "explore": ["explore", "--no-browser", "--port", "0"],
    "facts": [
        "facts",
        "--subjects",
        "4",
        "--relations",
        "2",
        "--answers",
        "2",
        "--dim",
        "8",
        "--heads",
        "2",
        "--head-dim",
        "4",
    ],
    "fit": ["fit", *GRID, "--range", "9:99"],
    "laws": ["laws"],
    "memory": ["memory", "--dim", "8"],
    "phase": ["phase", "--vocab", "16", "--length", "2", "--x", "dim=8:12:2", "--y", "samples=50:90:2"],
    "plan": ["plan", "--facts", "100", "--length", "4"],
    "predict": ["predict", *SIZES],
    "report": ["report", *LEDGER],
    "reproduce": ["reproduce", "b-fig5", "--quick"],
    "run": ["run", *SIZES, "--seeds", "1"],
    "validate": ["validate", "accuracy", "--quick"],
    "store list": ["store", "list"],
    "store export": ["store", "export", "x.csv"],
    "store verify": ["store", "verify"],
    "store repair": ["store", "repair"],
    "store prune": ["store", "prune"],
}
ENDINGS = {
    "report --out": "html",
    "validate --out": "md",
    "store export OUT": "csv",
    "--ledger": "json",
    "--store": "db",
    "--spec": "toml",
}
# What is read, and so has to be there.
READ = (
    "--spec",
    "store list --store",
    "store export --store",
    "store verify --store",
    "store repair --store",
    "plan --store",
    "report --ledger",
)


def functions() -> Iterator[tuple[str, Any]]:
    for name in COMMANDS:
        command = getattr(import_module(f"mnemoscope.ui.cli.{name}"), name)
        if isinstance(command, cyclopts.App):
            for under in ("list", "export", "verify", "repair", "prune"):
                yield f"{name} {under}", command[under].default_command
        else:
            yield name, command


def path_options() -> Iterator[tuple[str, str]]:
    """Every (command, option) whose value is a path."""
    for name, function in functions():
        hints = get_type_hints(function, include_extras=True)
        for parameter in inspect.signature(function).parameters.values():
            kind = get_args(hints[parameter.name])[0]  # what Annotated is about
            kinds = (kind, *get_args(kind))
            if any(isinstance(one, type) and issubclass(one, Setting) and hasattr(one, "spec") for one in kinds):
                yield name, "--spec"
            if kind is Work:
                yield name, "--store"
            if Path not in kinds:
                continue
            extra = [one for part in get_args(hints[parameter.name])[1:] for one in part.name or ()]
            positional = parameter.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD
            yield name, extra[0] if extra else "OUT" if positional else f"--{parameter.name}"


OPTIONS = sorted(set(path_options()))


@pytest.mark.parametrize(
    ("system", "data", "cache"),
    [
        ("unix.Unix", ".local/share/mnemoscope", ".cache/mnemoscope"),
        ("macos.MacOS", "Library/Application Support/mnemoscope", "Library/Caches/mnemoscope"),
    ],
)
def test_folders_are_where_they_were(monkeypatch: pytest.MonkeyPatch, system: str, data: str, cache: str):
    module, name = system.split(".")
    dirs = getattr(import_module(f"platformdirs.{module}"), name)
    for kind in ("data", "cache"):
        monkeypatch.delenv(f"XDG_{kind.upper()}_HOME", raising=False)
        folder = lambda *words, kind=kind, **more: getattr(dirs(*words, **more), f"user_{kind}_path")  # noqa: E731
        monkeypatch.setattr(files, f"user_{kind}_path", folder)
    assert files.data_home() == Path.home() / data
    assert files.cache_home() == Path.home() / cache
    monkeypatch.setenv("XDG_DATA_HOME", "/elsewhere")
    monkeypatch.setenv("XDG_CACHE_HOME", "/cache")
    assert (files.data_home(), files.cache_home()) == (Path("/elsewhere/mnemoscope"), Path("/cache/mnemoscope"))


def test_all_path_options_are_found():
    found = {option for _, option in OPTIONS}
    assert found == {"--spec", "--out", "--store", "--ledger", "--figures", "--collapse", "OUT"}
    assert {name for name, _ in OPTIONS} == set(WORDS)
    assert len(OPTIONS) >= 30


def bad_paths(folder: Path, name: str, option: str) -> Iterator[str]:
    """Paths of every wrong kind, with the ending that is asked for there."""
    ending = ENDINGS.get(f"{name} {option}") or ENDINGS.get(option, "svg")
    if option == "--figures":
        (folder / "file").write_text("a file")
        os.mkfifo(folder / "pipe")
        for one in ("file", "pipe", "x" * 400, "nul\0", "absent"):
            yield str(folder / one)
        yield "/proc/self"  # a folder in which no file can be made, whoever asks
        return
    (folder / f"folder.{ending}").mkdir()
    os.mkfifo(folder / f"pipe.{ending}")
    (folder / f"device.{ending}").symlink_to("/dev/full")
    (folder / f"loop.{ending}").symlink_to(f"loop.{ending}")
    (folder / "file").write_text("a file")
    for one in ("folder", "pipe", "device", "loop", "x" * 400, "file/below", "nul\0"):
        yield str(folder / f"{one}.{ending}")
    yield f"/proc/self/fd/file.{ending}"
    if f"{name} {option}" in READ or option in READ:
        yield str(folder / f"absent.{ending}")
    elif option not in ("--store", "--ledger"):  # whose folders are made
        yield str(folder / "absent" / f"file.{ending}")


@pytest.mark.parametrize(("name", "option"), OPTIONS)
def test_a_path_that_cannot_be_is_told_in_one_line(
    name: str, option: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    home = tmp_path / "home"
    monkeypatch.setenv("XDG_DATA_HOME", str(home))
    folder = tmp_path / "paths"
    folder.mkdir()
    monkeypatch.chdir(folder)
    if name.startswith("store") and option == "OUT":
        assert main(["run", *SIZES, "--seeds", "1"]) == 0  # a store to take from
    paths = list(bad_paths(folder, name, option))
    before = sorted(folder.rglob("*"))
    capsys.readouterr()
    for path in paths:
        words = [path if word == "x.csv" and option == "OUT" else word for word in WORDS[name]]
        if "MATRIX" in words:
            words[words.index("MATRIX")] = str(matrix(tmp_path))
        if name == "report" and option == "--ledger":
            words = ["report"]
        with no_hang((name, option, path)):
            status = main(words if option == "OUT" else [*words, option, path])
        told = capsys.readouterr()
        assert status == 2, (path, told)
        assert told.out == ""
        (line,) = told.err.splitlines()
        blamed = "mnemoscope: expected" if option == "OUT" else f"mnemoscope: {option}: expected"
        assert line.startswith(blamed), line
        assert sorted(folder.rglob("*")) == before, path
    shutil.rmtree(home, ignore_errors=True)


def matrix(folder: Path) -> Path:
    import numpy as np

    np.save(folder / "z.npy", np.random.default_rng(0).normal(size=(32, 8)))
    return folder / "z.npy"
