"""Stores of older formats: brought up whole, or left as they were."""

import json
import shutil
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from places import FILES

from mnemoscope.spec import KINDS, Retrieval, SpecError
from mnemoscope.store import migrations
from mnemoscope.store.maintenance import verify
from mnemoscope.store.query import list_settings, open_frame
from mnemoscope.store.salvage import salvage
from mnemoscope.store.tables import FORMAT
from mnemoscope.store.trials import Store
from mnemoscope.ui.cli import main

# What the code of FORMAT 2 said of its own file, one of whose trials is damaged.
SAID = json.loads((FILES / "store_format_2.json").read_text())


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return Path(shutil.copy(FILES / "store_format_2.db", tmp_path / "trials.db"))


def read_format(path: Path) -> int:
    raw = sqlite3.connect(path)
    try:
        return raw.execute("PRAGMA user_version").fetchone()[0]
    finally:
        raw.close()


# Columns that all kinds but some had when the file was made.
NEW = {"batch"}


@pytest.mark.parametrize("writing", [False, True])
def test_everything_in_a_store_of_format_2_is_said_as_before(path: Path, writing: bool):
    before = path.read_bytes()
    with Store(path, writing=writing) as store:
        assert store.count(checked=False) == SAID["rows"]
        count, faults = verify(store)
        assert count == SAID["sound"]
        assert [fault.partition(": ")[2] for fault in faults] == ["damaged"]
        for words, rows in SAID["listed"].items():
            found = list_settings(store, [words] if " H200" in words else words.split())
            assert sorted(found, key=str) == sorted(rows, key=str), words
        frame = open_frame(store).drop(columns=["written", "code"])
        for row, said in zip(json.loads(str(frame.to_json(orient="records"))), SAID["frame"], strict=True):
            # A field that a kind got since has its default there, and none was said before.
            known = {name: value for name, value in said.items() if value is not None or name not in NEW}
            assert {name: row[name] for name in known} == known
        said = {(record["spec"], record["seed"]): record for record in SAID["records"]}
        records = {(trial.spec.canonical(), trial.seed): trial.as_dict() for trial in store.find()}
        for key, record in records.items():
            assert {**record, "spec": key[0]} == {**said[key], "code": None, "path": record["path"]}
        assert records.keys() == said.keys()
    assert read_format(path) == (FORMAT if writing else 2)
    assert writing or path.read_bytes() == before


@pytest.mark.parametrize("number", [1, 2])
def test_a_step_that_fails_leaves_the_store_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int):
    path = Path(shutil.copy(FILES / f"store_format_{number}.db", tmp_path / "trials.db"))
    before = "\n".join(sqlite3.connect(path).iterdump())
    step = migrations.STEPS[number + 1]

    def fails(connection: sqlite3.Connection) -> None:
        step(connection)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setitem(migrations.STEPS, number + 1, fails)
        with pytest.raises(KeyboardInterrupt):
            Store(path)
    assert read_format(path) == (0 if number == 1 else 2)
    assert "\n".join(sqlite3.connect(path).iterdump()) == before
    Store(path).close()
    assert read_format(path) == FORMAT


def test_a_kill_in_the_middle_leaves_the_store_as_it_was(path: Path):
    before = "\n".join(sqlite3.connect(path).iterdump())
    code = (
        "import os, signal, sys; from mnemoscope.store import migrations; from mnemoscope.store.trials import Store\n"
        "convert, rows = migrations.trial_from_2, []\n"
        "def killed(*row, **more):\n"
        "    rows.append(row)\n"
        "    if len(rows) == 10: os.kill(os.getpid(), signal.SIGKILL)\n"
        "    return convert(*row, **more)\n"
        "migrations.trial_from_2 = killed; Store(sys.argv[1])"
    )
    done = subprocess.run([sys.executable, "-c", code, str(path)])
    assert done.returncode == -signal.SIGKILL
    assert "\n".join(sqlite3.connect(path).iterdump()) == before
    with Store(path) as store:
        assert store.count() == SAID["sound"]


def test_a_store_of_the_future_is_refused_in_one_line(path: Path, capsys: pytest.CaptureFixture[str]):
    raw = sqlite3.connect(path)
    with raw:
        raw.execute("UPDATE about SET value = ?", (str(FORMAT + 1),))
        raw.execute(f"PRAGMA user_version = {FORMAT + 1}")
    raw.close()
    before = path.read_bytes()
    for command in ("store list", "run --vocab 8 --dim 4 --length 2 --samples 9"):
        assert main([*command.split(), "--store", str(path)]) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert "written by a newer mnemoscope" in line
    assert path.read_bytes() == before


def test_a_damaged_file_of_format_2_still_gives_what_is_sound(path: Path):
    path.write_bytes(b"\0" * 100 + path.read_bytes()[100:])
    assert len(salvage(path).trials) == SAID["sound"]
    with Store(path) as store:
        assert store.count() == SAID["sound"]


def test_a_new_field_and_a_new_kind_need_no_change_of_a_store(path: Path, monkeypatch: pytest.MonkeyPatch):
    Store(path).close()

    class Wider(Retrieval, frozen=True, extra="forbid"):
        tokens: str = "uniform"

    class Other(Retrieval, frozen=True, extra="forbid"):
        kind = "other"
        history = "curve"
        layers: int = 1

    monkeypatch.setitem(KINDS, "retrieval", Wider)
    monkeypatch.setitem(KINDS, "other", Other)
    with Store(path) as store:
        old = list_settings(store, ["kind=retrieval", "tokens=uniform"])
        assert sum(row["trials"] for row in old) == 10
        (trial,) = store.find("kind = 'retrieval' AND seed = 2")
        size: dict[str, Any] = {"vocab": 8, "dim": 4, "length": 2, "samples": 9}
        new, other = Wider(**size, tokens="zipf:1"), Other(**size, layers=3)
        store.add([type(trial)(new, 0, "ok", trial.steps)])
        store.add([type(trial)(other, 0, "ok", metrics={"accuracy": 0.5, "depth": 7.0})])
        assert [row["id"] for row in list_settings(store, ["tokens=zipf:1"])] == [new.id]
        assert [row["id"] for row in list_settings(store, ["layers=3", "depth>6"])] == [other.id]
        assert store.finished([(other, 0)])
        with pytest.raises(SpecError, match="got 'height'"):
            list_settings(store, ["height=1"])
        (row,) = open_frame(store, ["kind=other"]).to_dict("records")
        assert (row["layers"], row["depth"]) == (3, 7.0)


def test_every_record_has_the_codes_git_state(tmp_path: Path):
    from mnemoscope.engine.record import code_state

    package = tmp_path / "src" / "mnemoscope"
    package.mkdir(parents=True)
    assert code_state(package) is None

    def git(*words: str) -> str:
        name = ["-c", "user.name=x", "-c", "user.email=x@y.z"]
        done = subprocess.run(["git", "-C", str(tmp_path), *name, *words], capture_output=True, text=True, check=True)
        return done.stdout.strip()

    (package / "file").write_text("one")
    git("init", "-q")
    git("add", "-A")
    git("commit", "-qm", "one")
    code_state.cache_clear()
    assert code_state(package) == {"commit": git("rev-parse", "HEAD"), "dirty": False}
    (package / "file").write_text("two")
    code_state.cache_clear()
    assert code_state(package) == {"commit": git("rev-parse", "HEAD"), "dirty": True}
    assert code_state(tmp_path / "venv" / "site-packages" / "mnemoscope") is None
    code_state.cache_clear()
