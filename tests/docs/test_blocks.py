"""Every command and every Python block of the README and the docs runs, at sizes that take seconds.

Commands keep their options; numbers are cut to `MOST`, axes to `AXES`. A command whose point is another machine is in
`ELSEWHERE`, with the place that tests it. The blocks of adding.md are run by tests/test_adding.py, and the notebooks
whenever the site is built.
"""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
from places import DATA, PROJECT

import mnemoscope as mn
from mnemoscope.experiments.collapse import settings
from mnemoscope.experiments.validation.parts import PARTS
from mnemoscope.ui.cli import COMMANDS, main

pytestmark = pytest.mark.long
# Those that the build writes are the program's own help.
WRITTEN = {"api", "commands", "_build"}
PAGES = [PROJECT / "README.md"] + [
    page
    for page in sorted((PROJECT / "docs").rglob("*.md"))
    if page.relative_to(PROJECT / "docs").parts[0] not in WRITTEN
]
COMMAND = re.compile(r"^ {4,}(?:uv run (?:--\S+ \S+ )*mnemoscope|sh start|\.venv/bin/mnemoscope|mnemoscope) (\w.*)$")
# What a command prints or says after two spaces, and what a comment says, is not part of it.
AFTER = re.compile(r"\s{3,}.*$|\s+#\s.*$")
MOST = {
    **{"vocab": 64, "dim": 40, "length": 8, "samples": 600, "width": 32, "steps": 60, "seeds": 2, "facts": 300},
    **{"subjects": 4, "relations": 4, "answers": 4, "max-steps": 64, "batch": 16},
    **{"first-steps": 32},
}
AXES = {"vocab": "48,64", "dim": "32,40", "length": "4,6,8", "samples": "100,400"}
# Options that keep a command short, unless it has them already.
SHORT = {
    "critical": ["--seeds", "3"],
    "fit": ["--seeds", "3"],
    "phase": ["--seeds", "2"],
    "memory": ["--seeds", "3", "--tolerance", "0.5"],
    "facts": ["--max-steps", "64"],
    "dynamics": ["--steps", "400"],
    "validate": ["--quick"],
}
ELSEWHERE = {
    r"--cluster": "tests/experiments/test_cluster.py starts workers, tests/slurm_daemon.py a Slurm daemon",
    r"\bmine\.": "it needs the files of docs/own.md: tests/test_own_docs.py",
    r"^explore": "it answers a browser until it is stopped: tests/ui/test_explorer_page.py",
}
STUDY = "a-three-steps"
# A search for how many facts fit: of the smallest model, to within a factor.
TINY = {"dim": 8, "heads": 2, "head-dim": 2, "width": 4, "seeds": 1}


def commands() -> Iterator[Any]:
    """The commands of each page, each distinct short form once."""
    seen = set()
    for page in PAGES:
        lines = page.read_text(encoding="utf-8").replace("\\\n", " ").splitlines()
        for line in lines:
            match = COMMAND.match(line)
            if match is None or match[1].split()[0] not in COMMANDS:
                continue
            text = AFTER.sub("", match[1])
            if any(re.search(pattern, text) for pattern in ELSEWHERE):
                continue
            words = shortened(shlex.split(text))
            if tuple(words) not in seen:
                seen.add(tuple(words))
                yield pytest.param(words, id=f"{page.stem}: {' '.join(words)}")


def shortened(words: list[str]) -> list[str]:
    """The same command at small sizes."""
    command, *rest = words
    words = [command]
    for at, word in enumerate(rest):
        option = rest[at - 1].removeprefix("--") if at else ""
        if option in ("x", "y", "axis"):
            field = word.split("=")[0]
            word = f"{field}={AXES[field]}"
        elif command == "memory" and option == "dim":
            word = "12,16" if "," in word else "16"
        elif option in TINY and "--capacity" in rest:
            word = str(min(int(word), TINY[option]))
        elif option in MOST and word.isdigit() and "constructed" not in rest:
            word = str(min(int(word), MOST[option]))
        elif option == "range":
            word = "20:2000"
        elif option == "tolerance":
            word = "10"
        words.append({"NAME": "relu", "FILE": "page.md", "data/full.json": str(DATA / "full.json")}.get(word, word))
    if command == "reproduce" and "--list" not in words:
        # One study stands for all; the others are run by tests/studies.
        options = [word for word in words[1:] if word.startswith("--") and word != "--full"]
        words = ["reproduce", STUDY, *options, *(["stages.svg"] if "--out" in options else [])]
    if "--capacity" in words:
        words += ["--tolerance", "10"]
    if command == "validate" and "--vocab" in words:
        return words
    for option, *value in [SHORT.get(command, [])[at : at + 2] for at in range(0, len(SHORT.get(command, [])), 2)]:
        words += [] if option in words else [option, *value]
    return words


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files that the docs speak of, and a store that commands share."""
    folder = tmp_path_factory.mktemp("docs")
    table = np.random.default_rng(0).normal(size=(64, 40)).astype(np.float32)
    np.save(folder / "table.npy", table)
    shape = b'{"dtype":"F32","shape":[64,40],"data_offsets":[0,%d]}' % table.nbytes
    header = b'{"embeddings.word_embeddings.weight":%s}' % shape
    (folder / "model.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + table.tobytes())
    (folder / "docs" / "theory").mkdir(parents=True)
    (folder / "figures").mkdir()
    return folder


@pytest.fixture(autouse=True)
def there(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.setenv("XDG_DATA_HOME", str(folder / "data"))
    monkeypatch.setenv("MPLBACKEND", "agg")
    mpl.use("agg")
    monkeypatch.setattr("mnemoscope.ui.cli.bound.settings", lambda: settings()[:1])
    for name, part in PARTS.items():
        monkeypatch.setitem(PARTS, name, part._replace(quick=1))


@pytest.mark.parametrize("words", [*commands()])
def test_a_command(words: list[str], capsys: pytest.CaptureFixture[str]):
    assert main(words) == 0, capsys.readouterr().err


EXAMPLES = re.findall(
    r"^## (\w+)\n.*?```python\n(.*?)```", (PROJECT / "docs/api_examples.md").read_text(), re.DOTALL | re.MULTILINE
)


def test_every_public_name_has_an_example():
    assert sorted(name for name, _ in EXAMPLES) == sorted(mn.__all__)


@pytest.mark.parametrize(("name", "code"), [pair for pair in EXAMPLES if pair[0] != "explore"])
def test_an_example_of_the_reference(name: str, code: str):
    exec(compile(code, f"api_examples.md: {name}", "exec"), {"mn": mn})


def test_the_example_of_the_readme():
    (code,) = re.findall(r"```python\n(.*?)```", (PROJECT / "README.md").read_text(), re.DOTALL)
    small = code.replace("vocab=512, dim=128, length=16, samples=16_000", "vocab=64, dim=40, length=4, samples=600")
    assert small != code
    exec(compile(small, "README.md", "exec"), {})


def test_queries_of_a_store():
    text = (PROJECT / "docs/experiments.md").read_text()
    lines = re.findall(r"^    (store\.\w+\(.*?\)) *(?:#.*)?$", text, re.MULTILINE)
    assert len(lines) == 5
    jobs = [(mn.Retrieval(vocab=64, dim=40, length=4, samples=600), 0)]
    with mn.Store("queries.db") as store:
        for line in lines:
            exec(line, {"store": store, "jobs": jobs})
