"""The examples of docs/adding.md, written to files as they stand there, imported and run."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from places import PROJECT

from mnemoscope.store.maintenance import repair, verify
from mnemoscope.store.query import list_settings, open_frame
from mnemoscope.store.tables import SETTING_VALUES
from mnemoscope.store.trials import Store

pytestmark = pytest.mark.long

FILES = {"signs.py", "signs_theory.py", "cube.py", "lookup.py", "study.py"}
# Run in one process of its own, so that nothing stays registered here and JAX starts once.
DRIVER = '''
import contextlib, io, json

import mnemoscope as mn
from mnemoscope.spec import Retrieval, SpecError
from mnemoscope.ui.cli import main

SIZES = dict(vocab=64, dim=24, length=4, samples=600)
WORDS = [word for name, value in SIZES.items() for word in (f"--{name}", str(value))]
seen = {}


def call(*words):
    """What a command prints."""
    with contextlib.redirect_stdout(io.StringIO()) as out:
        assert main([*words]) == 0, words
    return out.getvalue()


def as_predicted(spec):
    prediction = mn.predict(spec)
    return [prediction.accuracy, prediction.valid, list(prediction.notes)]


def refusal(**more):
    try:
        Retrieval(**SIZES, **more)
    except SpecError as error:
        return str(error)


# Studies run in processes that import this file: they find all else by themselves.
if __name__ == "__main__":
    seen["before"] = [refusal(embedding="signs"), refusal(width=64, activation="cube")]

    import recipes.cube
    import recipes.signs
    from mnemoscope.experiments.workers.batches import run_batch

    signs, cube = Retrieval(**SIZES, embedding="signs"), Retrieval(**SIZES, width=32, activation="cube")
    seen["run"] = [[mn.simulate(spec, seed).accuracy for seed in range(3)] for spec in (signs, cube)]
    seen["commands"] = [
        json.loads(call("run", *WORDS, *more, "--seeds", "1", "--store", "none", "--json"))["trials"][0]["status"]
        for more in (("--embedding", "signs"), ("--width", "32", "--activation", "cube"))
    ]
    seen["memory"] = run_batch([(mn.Memory(items=8, dim=16, embedding="signs"), 0)])[0].status
    seen["help"] = [" ".join(call(name, "--help").replace("\\u2502", " ").split()) for name in ("run", "memory")]
    seen["underived"] = [as_predicted(spec) for spec in (signs, cube)]
    seen["predict"] = json.loads(call("predict", *WORDS, "--embedding", "signs", "--json"))

    from mnemoscope.ui.explorer import diagram, fragments, pages, state

    now = state.read_state({"embedding": "signs"})
    seen["map"] = json.loads(diagram.as_json(now, moving=True))
    seen["fragment"] = fragments.prediction(now)
    seen["page"] = pages.explorer(now, "", "")

    import recipes.signs_theory
    from mnemoscope.theory.activation import FORMULAS

    FORMULAS["cube"] = lambda a: a**3
    seen["derived"] = [as_predicted(spec) for spec in (signs, cube)]

    from mnemoscope.experiments.sweep import ThisProcess, sweep
    from recipes.lookup import Lookup

    spec = Lookup(vocab=64, dim=16)
    with mn.Store("trials.db") as store:
        tally = sweep([(spec, seed) for seed in range(8)], store, ThisProcess("cpu"))
        sweep([(signs, 0)], store, ThisProcess("cpu"))
        seen["sweep"] = [tally.done, tally.failed]
    with mn.Store("trials.db") as store:
        trials = store.get([(spec, seed) for seed in range(8)]).values()
        seen["kept"] = [trial.accuracy for trial in trials]
        seen["same"] = all(trial.spec == spec and type(trial.spec) is Lookup for trial in trials)
        seen["again"] = sweep([(spec, seed) for seed in range(8)], store, ThisProcess("cpu")).found
        seen["columns"] = store.count("kind = 'lookup' AND noise = 1.0")

    import recipes.study

    seen["listed"] = json.loads(call("reproduce", "--list", "--json"))["claims"]
    seen["shown"] = call("reproduce", "--list")
    # Two base seeds: each is run in a process that finds the study by itself.
    judged = call("reproduce", "own-lookup", "--bases", "2", "--store", "studies.db", "--ledger", "ledger.db", "--json")
    seen["judged"] = json.loads(judged)["claims"]
    call("report", "own-lookup", "--ledger", "ledger.db", "--out", "claims.html")
    print(json.dumps(seen))
'''


def written(folder: Path) -> Path:
    """The files of the page, in a package."""
    text = (PROJECT / "docs" / "adding.md").read_text()
    for name, code in re.findall(r"```python\n# recipes/(\w+\.py)\n(.*?)```", text, re.DOTALL):
        file = folder / "recipes" / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(code)
    assert {file.name for file in (folder / "recipes").iterdir()} == FILES
    (folder / "driver.py").write_text(DRIVER)
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("adding"))


@pytest.fixture(scope="module")
def seen(folder: Path) -> dict[str, Any]:
    env = {**os.environ, "PYTHONPATH": str(folder), "XDG_DATA_HOME": str(folder / "data"), "JAX_PLATFORMS": "cpu"}
    run = subprocess.run([sys.executable, "driver.py"], cwd=folder, env=env, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


def test_a_law_and_an_activation_run(seen: dict[str, Any]):
    assert "expected one of gaussian, sphere, orthonormal, got 'signs'" in seen["before"][0]
    assert "hermite3, got 'cube'" in seen["before"][1]
    assert all(0.05 < accuracy <= 1 for accuracies in seen["run"] for accuracy in accuracies)  # chance is 0.016
    assert seen["commands"] == ["ok", "ok"]
    assert seen["memory"] == "ok"


def test_they_are_listed_in_help_and_in_the_explorer(seen: dict[str, Any]):
    run, memory = seen["help"]
    assert "gaussian, sphere, orthonormal, signs, of which" in run
    assert "hermite3, cube" in run
    assert "gaussian, sphere, orthonormal, signs" in memory
    assert '<option value="signs" selected>' in seen["page"]
    assert '<option value="cube"' in seen["page"]


def test_theory_says_not_derived_until_moments_are_registered(seen: dict[str, Any]):
    for name, (accuracy, valid, notes) in zip(("signs embeddings", "cube"), seen["underived"], strict=True):
        assert accuracy is None
        assert valid is False
        assert name in notes[0]
        assert "not derived" in notes[0]
    assert seen["predict"]["accuracy"] is None
    assert seen["predict"]["valid"] is False
    assert set(seen["predict"]["critical"].values()) == {None}
    assert "not derived" in json.dumps(seen["map"])
    assert "signs embeddings are not derived" in seen["fragment"]
    for (accuracy, valid, notes), simulated in zip(seen["derived"], seen["run"], strict=True):
        assert abs(accuracy - sum(simulated) / len(simulated)) < 0.1
        assert valid is False  # a number, but no row of the domains: nobody has held it against simulation
        assert "not held against simulation" in notes[0]


def test_a_kind_runs_in_a_sweep_and_is_read_back(seen: dict[str, Any], folder: Path):
    assert seen["sweep"] == [8, 0]
    assert all(0.2 < accuracy <= 1 for accuracy in seen["kept"])
    assert len(set(seen["kept"])) > 1
    assert seen["same"]
    assert seen["again"] == 8
    assert seen["columns"] == 8
    # Here neither the kind nor the law is registered: their rows are sound all the same.
    path = folder / "trials.db"
    with Store(path) as store:
        assert verify(store) == (9, [])
        assert {row["trials"] for row in list_settings(store)} == {8, 1}
        assert [row["trials"] for row in list_settings(store, ["kind=lookup"])] == [8]
        assert sorted(open_frame(store)["kind"]) == ["lookup"] * 8 + ["retrieval"]
    assert repair(path).faults == []
    with Store(path) as store:
        store.connection.execute("UPDATE settings SET id = 'another' WHERE kind = 'lookup'")
        store.connection.execute(f"UPDATE settings SET setting_checksum = row_checksum({SETTING_VALUES})")
        assert "the setting another: cannot be read ('lookup')" in verify(store)[1]


def test_a_study_is_in_the_catalogue_and_is_judged(seen: dict[str, Any], folder: Path):
    listed = {claim["id"]: claim for claim in seen["listed"]}
    assert len(listed) > 30
    assert listed["own-lookup"]["source"] == "own"
    assert listed["own-lookup"]["minutes"] == {"quick": 0.1, "full": 0.1}
    assert "own-lookup" in seen["shown"]
    (claim,) = seen["judged"]
    assert claim["verdict"] == "supported"
    assert claim["measured"].startswith("accuracy rises by 0.")
    assert [base["base"] for base in claim["bases"]] == [0, 1]
    assert "more accurate in more dimensions" in (folder / "claims.html").read_text()
