"""What docs/own.md and the examples show, run as they stand there."""

import ast
import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from places import PROJECT

pytestmark = pytest.mark.long
EXAMPLES = PROJECT / "examples"
PACKAGE = EXAMPLES / "own_study"
# The most lines that a user writes.
MOST = {"law": 5, "tokens": 3, "model": 25, "script": 40}
DRIVER = '''
import contextlib, io, json

import mnemoscope as mn
from mine.facts import Facts, OneHead
from mine.laws import rademacher, zipf_like
from mine.noise import flips
from mnemoscope.ui.cli import main

seen = {}


def call(*words, status=0):
    """What a command prints."""
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as err:
        assert main([*words]) == status, (words, err.getvalue())
    return out.getvalue(), err.getvalue()


sizes = dict(vocab=16, dim=24, length=4, samples=400, test_samples=256)
words = [word for name, value in sizes.items() for word in (f"--{name.replace('_', '-')}", str(value))]
run = mn.run(mn.Retrieval(**sizes, embedding=rademacher, tokens=zipf_like), seeds=2)
out, _ = call("run", *words, "--embedding", "mine.laws:rademacher", "--tokens", "mine.laws:zipf_like", "--seeds", "2")
seen["law"] = [run.spec.embedding, "2 of 2 seeds were in the store" in out]
rademacher.moments = mn.Moments(unit_norm=True)
spec = mn.Retrieval(**sizes, embedding=rademacher)
sphere = mn.predict(spec.replace(embedding="sphere"))
told = mn.predict(spec)
seen["moments"] = [told.accuracy == sphere.accuracy, told.low == sphere.low, told.valid, told.notes[0]]
seen["critical"] = mn.critical_value(spec, "samples") == mn.critical_value(spec.replace(embedding="sphere"), "samples")
rademacher.moments = mn.Moments(spectrum=lambda d: [1.0] * (d // 2) + [0.0] * (d - d // 2))
half = mn.predict(mn.Retrieval(**sizes, embedding=rademacher))
seen["spectrum"] = half.accuracy == mn.predict(mn.Retrieval(**{**sizes, "dim": 12})).accuracy
rademacher.moments = mn.Moments(mean=0.5)
seen["mean"] = mn.predict(mn.Retrieval(**sizes, embedding=rademacher)).notes

model = ["--model", "mine.facts:OneHead", "--task", "mine.facts:Facts"]
small = ["--set", "batch=64", "--set", "max_steps=256", "--set", "lr=0.03", "--seeds", "2", "--json"]
seen["run"] = json.loads(call("run", *model, *small)[0])
seen["check"] = [json.loads(call("check", f"mine.facts:{name}", "--json")[0]) for name in ("Facts", "OneHead")]
found = mn.search(flips, 4, 400, target=0.5)
seen["search"] = [found.status, found.low, found.high]

help_, _ = call("run", "--help")
seen["help"] = " ".join(help_.replace("\\u2502", " ").split())
listed, seen["warned"] = call("reproduce", "--list", "--json")
seen["listed"] = json.loads(listed)["claims"]
seen["shown"], _ = call("reproduce", "--list")
seen["lazy"] = "own_study" in __import__("sys").modules
out, _ = call("run", *words, "--embedding", "rademacher", "--seeds", "1", "--json")
seen["named"] = json.loads(out)["spec"]["embedding"]
judged, _ = call("reproduce", "own-rademacher", "--jobs", "1", "--ledger", "l.db", "--json")
seen["judged"] = json.loads(judged)["claims"]
seen["broken"] = call("reproduce", "broken-study", status=2)[1]
print(json.dumps(seen))
'''


def environment(folder: Path, *more: Path) -> dict[str, str]:
    path = os.pathsep.join(map(str, (folder, *more)))
    return {**os.environ, "PYTHONPATH": path, "XDG_DATA_HOME": str(folder / "data"), "JAX_PLATFORMS": "cpu"}


def installed(folder: Path) -> None:
    """The example's package as an installer leaves it, and another whose names are taken or lead nowhere."""
    project = tomllib.loads((PACKAGE / "pyproject.toml").read_text())["project"]
    points = {group: dict(names) for group, names in project["entry-points"].items()}
    taken = {
        "mnemoscope.laws": {"gaussian": "nowhere:law"},
        "mnemoscope.studies": {"broken-study": "nowhere:STUDY", "b-fig5": "nowhere:STUDY"},
    }
    for name, version, groups in ((project["name"], project["version"], points), ("rude", "2", taken)):
        info = folder / f"{name.replace('-', '_')}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        lines = [
            f"[{group}]\n" + "".join(f"{n} = {place}\n" for n, place in names.items())
            for group, names in groups.items()
        ]
        (info / "entry_points.txt").write_text("\n".join(lines))


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("own")
    text = (PROJECT / "docs" / "own.md").read_text()
    for name, code in re.findall(r"```python\n# mine/(\w+\.py)\n(.*?)```", text, re.DOTALL):
        file = folder / "mine" / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(code)
    (folder / "driver.py").write_text(DRIVER)
    installed(folder)
    env = environment(folder, PACKAGE / "src")
    run = subprocess.run([sys.executable, "driver.py"], cwd=folder, env=env, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


def test_laws_of_the_page_run_and_are_found_again(seen: dict[str, Any]):
    name, kept = seen["law"]
    assert re.fullmatch(r"mine\.laws:rademacher@[0-9a-f]{16}", name)
    assert kept


def test_moments_that_a_law_states_are_predicted_from(seen: dict[str, Any]):
    *same, valid, note = seen["moments"]
    assert same == [True, True]
    assert not valid
    assert note.startswith(
        "from the moments that mine.laws:rademacher states, as for sphere embeddings in 24 dimensions"
    )
    assert seen["critical"]
    assert seen["spectrum"]
    assert seen["mean"] == ["mine.laws:rademacher states a mean of 0.5: embeddings with a common mean are not derived"]


def test_the_model_of_the_page_learns_and_conforms(seen: dict[str, Any]):
    trials = seen["run"]["trials"]
    assert [trial["status"] for trial in trials] == ["ok", "ok"]
    assert all(trial["accuracy"] >= 0.9 and trial["path"] == "autodiff" for trial in trials)
    assert all(0 <= trial["attention_accuracy"] <= 1 for trial in trials)
    for told, kind in zip(seen["check"], ("task", "model"), strict=True):
        assert told["kind"] == kind
        assert [check for check in told["checks"] if not check["passed"]] == []


def test_the_search_of_the_page_finds(seen: dict[str, Any]):
    status, low, high = seen["search"]
    assert status == "found"
    assert low < 40 < high


def test_an_installed_package_adds_names(seen: dict[str, Any]):
    assert "gaussian, sphere, orthonormal, rademacher, of which" in seen["help"]
    assert seen["named"].startswith("own_study.study:rademacher@")
    listed = {claim["id"]: claim for claim in seen["listed"]}
    assert listed["own-rademacher"]["package"] == "own-study 0.1"
    assert listed["b-fig5"]["package"] is None
    assert "own-rademacher own: by" not in seen["shown"]
    assert "own, by own-study 0.1" in seen["shown"]
    (claim,) = seen["judged"]
    assert (claim["source"], claim["verdict"] in ("supported", "inconclusive", "refuted")) == ("own", True)
    assert claim["measured"].startswith("accuracy differs by")


def test_a_name_that_is_taken_or_leads_nowhere_is_one_line(seen: dict[str, Any]):
    lines = seen["warned"].splitlines()
    assert any(
        "rude 2: expected a name for one of its studies that is not taken, got 'b-fig5'" in line for line in lines
    )
    assert any("the study broken-study of rude 2 is left out: expected a module that can be" in line for line in lines)
    assert seen["broken"].count("\n") == 1
    assert "expected a module that can be imported, got 'nowhere'" in seen["broken"]


@pytest.mark.parametrize("name", ["rademacher", "two_heads", "parity"])
def test_an_example_runs(name: str, tmp_path: Path):
    file = EXAMPLES / f"{name}.py"
    assert len(file.read_text().splitlines()) <= MOST["script"]
    run = subprocess.run(
        [sys.executable, str(file)], cwd=tmp_path, env=environment(tmp_path), capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
    assert re.search(r"0\.\d\d|\d+\.\d{3} \[", run.stdout), run.stdout


def test_what_a_user_writes_is_short():
    def lines(source: str, name: str) -> int:
        (node,) = [node for node in ast.walk(ast.parse(source)) if getattr(node, "name", "") == name]
        return len(ast.unparse(node).splitlines())

    page = re.findall(r"```python\n(.*?)```", (PROJECT / "docs" / "own.md").read_text(), re.DOTALL)
    assert lines(page[0], "rademacher") <= MOST["law"]
    assert lines(page[0], "zipf_like") <= MOST["tokens"]
    assert lines(page[1], "OneHead") <= MOST["model"]
    two_heads = (EXAMPLES / "two_heads.py").read_text()
    assert lines(two_heads, "TwoHeads") + lines(two_heads, "make") <= MOST["model"]
    study = PACKAGE / "src" / "own_study" / "study.py"
    assert len(study.read_text().splitlines()) <= MOST["script"]
