"""Damaged stores: what is damaged is named and computed again, what is sound is used."""

import json
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from places import FILES
from stored_trials import SPEC, Recorded, change, made, path, read_all, reports

from mnemoscope import SpecError, Trial
from mnemoscope.engine.record import NUMERICS_VERSION
from mnemoscope.experiments.sweep import sweep
from mnemoscope.spec import Facts, Memory
from mnemoscope.store.claims import Claims
from mnemoscope.store.maintenance import repair, verify
from mnemoscope.store.query import list_settings
from mnemoscope.store.salvage import salvage
from mnemoscope.store.tables import FORMAT
from mnemoscope.store.trials import Store
from mnemoscope.ui.cli import main

__all__ = ["path"]  # a fixture

FORMAT_1 = FILES / "store_format_1.db"


@pytest.mark.parametrize(
    "harm",
    [
        "history = replace(history, '0.5', '0.6')",
        "history = '{'",
        "history = replace(history, 'signal', 'siGnal')",
        "history = CAST(x'ff' AS TEXT)",
        "accuracy = 0.6",
        "accuracy = NULL",
        "status = 'ck'",
        "seconds = 7",
        "spec = '0123456789abcdef'",
        "trial_checksum = ''",
        "trial_checksum = NULL",
    ],
)
def test_a_damaged_record_is_named_and_computed_again(path: Path, harm: str, caplog: pytest.LogCaptureFixture):
    if "NULL" in harm and "checksum" in harm:
        harm = "trial_checksum = CAST(x'fe' AS TEXT)"
    change(path, f"UPDATE trials SET {harm} WHERE seed = 2 AND setting = 1")
    with reports(caplog, r"^a trial of [0-9a-f]{16}, seed 2, is damaged"):
        assert (32, 2) not in read_all(path)
    workers = Recorded()
    with Store(path) as store:
        with reports(caplog, "seed 2"):
            tally = sweep([(SPEC, seed) for seed in range(6)], store, workers)
        assert verify(store) == (9, [])
    assert workers.asked == [(SPEC, 2)]
    assert (tally.found, tally.done) == (5, 1)
    assert read_all(path)[32, 2] == 0.5  # and nothing is damaged any more
    with Store(path) as store:
        (aside,) = store.connection.execute("SELECT name, told FROM damaged").fetchall()
        assert aside[0] == "trials"
        assert "'seed': 2" in aside[1]


@pytest.mark.parametrize(
    "harm",
    [
        "canonical = replace(canonical, '64', '65')",
        "kind = ''",
        "kind = 'memory'",
        "canonical = ''",
        "setting_checksum = ''",
    ],
)
def test_the_trials_of_a_damaged_setting_are_found_again(path: Path, harm: str, caplog: pytest.LogCaptureFixture):
    """The setting that is asked for says what its row said."""
    change(path, f"UPDATE settings SET {harm} WHERE number = 1")
    with reports(caplog, "setting"):
        assert set(read_all(path)) == {(16, 0), (16, 1), (16, 2)}
    workers = Recorded()
    with Store(path) as store, reports(caplog, SPEC.id):
        sweep([(SPEC, seed) for seed in range(6)], store, workers)
    assert workers.asked == []
    assert len(read_all(path)) == 9


def test_a_trial_under_another_setting_is_not_believed(path: Path, caplog: pytest.LogCaptureFixture):
    change(path, "UPDATE trials SET setting = 2 WHERE seed = 5")
    with reports(caplog, "seed 5"):
        assert (16, 5) not in read_all(path)


def test_a_negative_zero_is_no_damage(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    """SQLite knows none: a loss of -0.0 comes back as 0.0."""
    spec = Memory(dim=8, items=5)
    with Store(tmp_path / "s.db") as store:
        store.add([Trial(spec, 0, "ok", metrics={"accuracy": 1.0, "loss": -0.0}, seconds=-0.0)])
        assert store.finished([(spec, 0)]) == {(spec, 0)}
        assert verify(store) == (1, [])
    assert not caplog.records


def test_what_a_query_compares_with_makes_no_row_look_damaged(path: Path, caplog: pytest.LogCaptureFixture):
    """SQLite puts 0 in place of a column that is compared with 0, though the column holds 0.0."""
    with Store(path) as store:
        store.add([made(SPEC.replace(then="gd", steps=3, lr=2.0))])
        for words, trials in ((["lr=2"], 1), ([f"numerics={NUMERICS_VERSION}"], 10), (["dim=16"], 3), (["dim=9"], 0)):
            assert sum(row["trials"] for row in list_settings(store, words)) == trials
    assert not caplog.records


def test_a_file_of_the_first_format_is_brought_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    """Made by the code of before checksums; one of its records is damaged."""
    monkeypatch.setattr("mnemoscope.store.trials.NUMERICS_VERSION", 2)  # as its trials have
    path = tmp_path / "trials.db"
    shutil.copy(FORMAT_1, path)
    facts = Facts(subjects=4, relations=2, answers=2, dim=8, heads=1, head_dim=8, width=0)
    memory = Memory(dim=8, items=5)
    for writing in (False, True, False):
        with Store(path, writing=writing) as store:
            with reports(caplog, "seed 3"):
                assert store.finished([(SPEC, seed) for seed in range(9)]) == {(SPEC, seed) for seed in range(3)}
            trial = store.get([(SPEC, 2)])[SPEC, 2]
            assert (trial.accuracy, trial.steps[-1].signal) == (0.25, 2.0)
            others = store.get([(facts, 0), (memory, 0)])
            assert others[facts, 0].metrics == {"accuracy": 0.99, "steps": 640.0}
            assert others[memory, 0].accuracy == 1.0
            assert store.count(checked=False) == 8
    raw = sqlite3.connect(path)
    assert raw.execute("SELECT value FROM about").fetchone() == (str(FORMAT),)
    raw.close()
    found = repair(path)
    assert found.trials == 7
    assert found.faults == [f"{SPEC.id} seed 3: damaged"]
    assert main(["store", "verify", "--store", str(path)]) == 0


def test_half_a_file_still_gives_what_is_in_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
):
    path = tmp_path / "trials.db"
    with Store(path) as store:
        store.add([made(seed=seed) for seed in range(500)])
        store.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    whole = path.read_bytes()
    half = whole[: len(whole) // 2 // 4096 * 4096]
    path.write_bytes(half)
    sound = {row[1] for row in salvage(path).trials}
    assert 150 < len(sound) < 350
    workers = Recorded()
    with reports(caplog, r"used from 'trials\.db\.salvaged'"), Store(path) as store:
        sweep([(SPEC, seed) for seed in range(500)], store, workers)
    assert {seed for _, seed in workers.asked} == set(range(500)) - sound
    assert path.read_bytes() == half  # left as it was
    assert main(["store", "verify", "--store", str(path)]) == 1
    told = capsys.readouterr()
    assert "file: " in told.out
    assert main(["store", "repair", "--store", str(path), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["trials"] == 500
    assert Path(told["moved"]).read_bytes() == half
    with Store(path, writing=False) as store:
        jobs = [(SPEC, seed) for seed in range(500)]
        assert store.finished(jobs) == set(jobs)
    assert not (tmp_path / "trials.db.salvaged").exists()


def test_what_was_written_but_not_yet_folded_in_is_salvaged(tmp_path: Path):
    path = tmp_path / "trials.db"
    with Store(path) as store:
        store.add([made(seed=seed) for seed in range(40)])
        for ending in ("", "-wal"):  # while it is open, the rows are in the log
            shutil.copy(f"{path}{ending}", f"{tmp_path / 'copy.db'}{ending}")
    copy = tmp_path / "copy.db"
    copy.write_bytes(b"\0" * 100 + copy.read_bytes()[100:])
    assert len(salvage(copy).trials) == 40
    with Store(copy) as store:  # the log holds the first page too: SQLite needs no help
        assert len(store.finished([(SPEC, seed) for seed in range(50)])) == 40


def test_a_folder_that_is_closed_gives_what_is_sound(
    path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    path.write_bytes(b"\0" * 100 + path.read_bytes()[100:])

    def closed(*_: Any) -> None:
        raise SpecError("store", "expected a place to write to")

    monkeypatch.setattr("mnemoscope.store.salvage.recover", closed)
    with reports(caplog, "read from memory"):
        assert len(read_all(path)) == 9
    with pytest.raises(SpecError, match="expected a place to write to"):
        Store(path)


def test_other_files_are_refused_and_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    other = tmp_path / "text.db"
    other.write_text("no database " * 400)
    run = "run --vocab 8 --dim 4 --length 2 --samples 9"
    for command in ("store list", "store verify", "store repair", run):
        assert main([*command.split(), "--store", str(other)]) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert "--store: expected a sound store" in line
    assert other.read_text() == "no database " * 400
    assert [one.name for one in tmp_path.iterdir()] == ["text.db"]


def test_a_claim_that_says_nonsense_does_not_hold_up_the_others(path: Path, monkeypatch: pytest.MonkeyPatch):
    """A sign of life from the future, by a process that cannot be: its owner is taken for dead."""
    job = (SPEC.replace(dim=8), 0)
    with Store(path) as store:
        claims = Claims(store)
        row = (job[0].id, 0, NUMERICS_VERSION, "nobody", claims.host, -1, 9e99)
        store.connection.execute("INSERT INTO claims VALUES (?, ?, ?, ?, ?, ?, ?)", row)
        assert claims.take([job]) == [job]
        claims.close()
        # From another machine: its silence is watched, by a clock of our own.
        store.connection.execute("INSERT INTO claims VALUES (?, ?, ?, ?, 'far', 1, 9e99)", row[:4])
        clock = [0.0]
        monkeypatch.setattr("mnemoscope.store.claims.time.monotonic", lambda: clock[0])
        claims = Claims(store)
        assert claims.take([job]) == []
        clock[0] = 119.0
        assert claims.take([job]) == []
        store.connection.execute("UPDATE claims SET beat = 8e99")  # it lives
        assert claims.take([job]) == []
        clock[0] = 200.0
        assert claims.take([job]) == []
        clock[0] = 240.0
        assert claims.take([job]) == [job]
        claims.close()


def test_a_jump_of_the_clock_does_not_take_a_living_drivers_work(path: Path, monkeypatch: pytest.MonkeyPatch):
    job = (SPEC.replace(dim=8), 0)
    with Store(path) as one, Store(path) as two:
        first, second = Claims(one), Claims(two)
        assert first.take([job]) == [job]
        now = __import__("time").time()
        monkeypatch.setattr("mnemoscope.store.claims.time.time", lambda: now + 86400)
        assert second.take([job]) == []
        monkeypatch.setattr("mnemoscope.store.claims.time.time", lambda: now - 86400)
        assert second.take([job]) == []
        first.close()
        assert second.take([job]) == [job]
        second.close()


def test_the_command_line_names_what_is_damaged(path: Path, capsys: pytest.CaptureFixture[str]):
    change(path, "UPDATE trials SET accuracy = 0.9 WHERE seed = 1 AND setting = 1")
    assert main(["store", "list", "--store", str(path), "--json"]) == 0
    told = capsys.readouterr()
    rows = {row["id"]: row for row in json.loads(told.out)["settings"]}
    assert rows[SPEC.id]["accuracy"] == 0.5
    assert rows[SPEC.id]["trials"] == 5
    assert told.err == (
        f"mnemoscope: a trial of {SPEC.id}, seed 1, is damaged and not used; `mnemoscope store repair` moves it aside\n"
    )
    assert main(["store", "repair", "--store", str(path)]) == 0
    said = capsys.readouterr().out
    assert said == f"8 sound trials, 1 faults moved aside\n  {SPEC.id} seed 1: damaged\n"
    assert main(["store", "repair", "--store", str(path)]) == 0
    assert capsys.readouterr().out.startswith("8 sound trials, 0 faults")
    assert main(["store", "repair", "--store", str(path / "no")]) == 2
