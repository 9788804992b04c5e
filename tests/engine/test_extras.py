"""Without the optional parts: one line that says how to install what is missing."""

import sys
import tomllib
from pathlib import Path
from typing import Any

import places
import pytest

from mnemoscope.engine.extras import EXTRAS
from mnemoscope.experiments.fit import Scaling
from mnemoscope.experiments.phase import PhaseDiagram, predicted_diagram
from mnemoscope.spec import Retrieval, SpecError
from mnemoscope.store.query import open_array, open_frame
from mnemoscope.store.trials import Store
from mnemoscope.ui.cli import main

PYPROJECT = places.PROJECT / "pyproject.toml"
SIZES = ["--vocab", "16", "--dim", "8", "--length", "2", "--samples", "50"]
LEDGER = str(PYPROJECT.parent / "data" / "quick.json")
COMMANDS: dict[str, list[list[str]]] = {
    "cluster": [
        ["critical", *SIZES, "--along", "samples", "--range", "9:99", "--cluster", "local"],
        ["memory", "--dim", "8", "--cluster", "local:1"],
    ],
    "figures": [
        ["laws", "--out", "x.svg"],
        ["dynamics", "--steps", "1", "--out", "x.png"],
        ["report", "--ledger", LEDGER, "--figures", "."],
        ["bound", "--collapse", "x.svg"],
        ["report", "--ledger", LEDGER],
    ],
    "pages": [
        [
            "phase",
            "--vocab",
            "16",
            "--length",
            "2",
            "--x",
            "dim=8:12:2",
            "--y",
            "samples=50:90:2",
            "--theory",
            "--out",
            "x.html",
        ],
        ["report", "--ledger", LEDGER],
    ],
    "tables": [["store", "export", "x.csv"], ["store", "export", "x.parquet"]],
    "web": [["explore", "--no-browser"]],
}


@pytest.fixture
def hidden(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """An extra whose modules cannot be imported."""
    for module in EXTRAS[request.param][1]:
        for name in [one for one in sys.modules if one.split(".")[0] == module]:
            monkeypatch.delitem(sys.modules, name)
        monkeypatch.setitem(sys.modules, module, None)
    return request.param


def test_every_extra_is_known():
    told = tomllib.loads(PYPROJECT.read_text())["project"]["optional-dependencies"]
    assert set(EXTRAS) == set(told) - {"cuda"}  # which only makes it faster
    assert set(COMMANDS) == set(EXTRAS)
    for name, (_, modules) in EXTRAS.items():
        assert {module.replace("_", "-") for module in modules} == {one.partition(">")[0] for one in told[name]}


@pytest.mark.parametrize("hidden", EXTRAS, indirect=True)
def test_commands_say_how_to_install_what_is_missing(
    hidden: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    Store().close()
    for words in COMMANDS[hidden]:
        assert main(words) == 2, words
        told = capsys.readouterr()
        assert told.out == ""
        (line,) = told.err.splitlines()
        assert f'needed for this: pip install "mnemoscope[{hidden}]"' in line
        assert f"uv run --extra {hidden}" in line
        assert "--out:" not in line
        assert not list(tmp_path.glob("*x.*"))


def diagram() -> PhaseDiagram:
    base = Retrieval(vocab=16, dim=8, length=2, samples=50)
    return predicted_diagram(base, ("dim", [8, 12]), ("samples", [50, 90]))


def kept(take: Any) -> Any:
    with Store(Path("none")) as store:
        return take(store)


@pytest.mark.parametrize(
    ("hidden", "call"),
    [
        ("tables", lambda: diagram().to_xarray()),
        ("tables", lambda: Scaling.to_frame(None)),  # type: ignore[arg-type]
        ("tables", lambda: kept(open_frame)),
        ("tables", lambda: kept(lambda store: open_array(store, ["dim"]))),
        ("figures", lambda: diagram().plot()),
        ("figures", lambda: diagram().plot("x.svg")),
        ("pages", lambda: diagram().plot("x.html")),
    ],
    indirect=["hidden"],
)
def test_python_says_so_too(hidden: str, call: Any, tmp_path: Path, monkeypatch: Any):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SpecError, match=rf'pip install "mnemoscope\[{hidden}\]"') as caught:
        call()
    assert caught.value.field == ""
    assert not list(tmp_path.iterdir())


def test_with_them_it_works():
    assert diagram().to_xarray()["predicted"].shape == (2, 2)
