"""Repairing a store: nothing is lost, whatever else goes on, and whatever gives way meanwhile."""

import os
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from patience import SECONDS
from places import TESTS
from stored_trials import SPEC, Recorded, change, made, path, read_all

from mnemoscope import SpecError
from mnemoscope.engine.record import NUMERICS_VERSION
from mnemoscope.experiments.sweep import sweep
from mnemoscope.store import pages, schema
from mnemoscope.store.claims import Claims
from mnemoscope.store.maintenance import repair, verify
from mnemoscope.store.salvage import open_salvaged, recover, salvage, salvaged_path
from mnemoscope.store.schema import DamagedFileError
from mnemoscope.store.trials import Store
from mnemoscope.ui.cli import main

__all__ = ["path"]  # a fixture


def break_header(path: Path) -> bytes:
    """Make a file that SQLite refuses, with all its rows still in it."""
    broken = b"\0" * 100 + path.read_bytes()[100:]
    path.write_bytes(broken)
    return broken


def damage_of(path: Path) -> DamagedFileError:
    with pytest.raises(DamagedFileError) as caught:
        schema.connect(path, writing=False)
    return caught.value


def test_a_row_of_another_setting_gives_way_to_the_trial_it_hides(path: Path):
    change(path, "DELETE FROM trials WHERE setting = 2 AND seed = 1")
    change(path, "UPDATE trials SET setting = 2 WHERE setting = 1 AND seed = 1")
    other, workers = SPEC.replace(dim=16), Recorded()
    with Store(path) as store:
        jobs = [(other, seed) for seed in range(3)]
        sweep(jobs, store, workers)
        assert store.finished(jobs) == set(jobs)
    assert workers.asked == [(other, 1)]


def test_a_repair_that_is_killed_leaves_a_store_in_its_place(path: Path, monkeypatch: pytest.MonkeyPatch):
    break_header(path)

    def killed(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("mnemoscope.store.maintenance.shutil.copy2", killed)
        patch.setattr("mnemoscope.store.maintenance.os.link", killed)
        with pytest.raises(KeyboardInterrupt):
            repair(path)
    assert len(read_all(path)) == 9
    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", killed)
        with pytest.raises(KeyboardInterrupt):
            repair(path)
    assert len(read_all(path)) == 9
    assert repair(path).trials == 9
    assert len(read_all(path)) == 9
    assert not salvaged_path(path).exists()


def test_a_repair_waits_for_nobody_and_takes_nothing_away(path: Path):
    """A driver goes on with the salvaged file: the repair is refused until it is done."""
    break_header(path)
    with Store(path) as driver:
        driver.add([made(seed=6)])
        with pytest.raises(SpecError, match="expected that nobody works with"):
            repair(path)
        driver.add([made(seed=7)])
    assert repair(path).trials == 11
    assert (32, 7) in read_all(path)


def test_two_commands_that_meet_the_damage_at_once(path: Path, monkeypatch: pytest.MonkeyPatch):
    """While one salvages, the other is done with it and keeps a trial: that one stays."""
    break_header(path)
    damage = damage_of(path)
    from mnemoscope.store import salvage as module

    def meanwhile(*paths: Path) -> Any:
        monkeypatch.setattr(module, "salvage", salvage)
        with Store(path) as other:
            other.add([made(seed=8)])
        return salvage(*paths)

    monkeypatch.setattr(module, "salvage", meanwhile)
    place, connection = open_salvaged(path, damage, writing=True)
    connection.close()
    assert place == salvaged_path(path)
    assert len(read_all(path)) == 10


def test_a_salvaged_file_that_is_damaged_too(path: Path):
    break_header(path)
    with Store(path) as store:
        store.add([made(seed=9)])
    break_header(salvaged_path(path))
    assert len(read_all(path)) == 10
    assert repair(path).trials == 10


def test_a_repair_that_was_faster(path: Path, monkeypatch: pytest.MonkeyPatch):
    """The salvaged file takes its place between being found and being opened."""
    break_header(path)
    damage = damage_of(path)
    recover(path, damage)
    from mnemoscope.store import salvage as module

    def late(place: Path, *, writing: bool) -> Any:
        connection = schema.connect(place, writing=writing)
        if place.name.endswith(".salvaged"):
            place.replace(path)
        return connection

    monkeypatch.setattr(module, "recover", lambda *_: salvaged_path(path))
    monkeypatch.setattr(module, "connect", late)
    where, connection = open_salvaged(path, damage, writing=True)
    connection.close()
    assert where == path


def test_a_search_does_not_go_over_overflow_pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """They are no rows, and most pages are of them: the damaged page comes first."""
    monkeypatch.setattr(pages, "MOST_SEARCHED", 10)
    path = tmp_path / "trials.db"
    long = "x" * 3000
    with Store(path) as store:
        for seed in range(40):
            trial = made(seed=seed)
            store.add([trial.__class__(**{**vars(trial), "message": long})])
        store.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    whole = bytearray(path.read_bytes())
    leaves = [at for at in range(0, len(whole), 4096) if whole[at] == 10]
    assert len(whole) // 4096 - len(leaves) > 30
    whole[leaves[-1] + 8] ^= 0x40  # where its first cell begins
    path.write_bytes(whole)
    assert len(salvage(path).trials) >= 39


@pytest.mark.long
def test_any_one_flip_costs_one_record_or_hides_one_setting(tmp_path: Path):
    driver = TESTS / "flip_driver.py"
    done = subprocess.run(
        [sys.executable, str(driver), str(tmp_path), "100"], capture_output=True, text=True, timeout=SECONDS, check=True
    )
    assert done.stdout == ""


def test_a_large_file_is_looked_at_whole_by_repair(path: Path, monkeypatch: pytest.MonkeyPatch):
    """It is not when it is opened: what is wrong is met later, and repair mends it."""
    with Store(path) as store:
        store.add([made(seed=seed) for seed in range(10, 60)])
        store.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    whole = bytearray(path.read_bytes())
    leaves = [at for at in range(4096, len(whole), 4096) if whole[at] in (10, 13)]
    whole[leaves[-1] + 3 : leaves[-1] + 5] = b"\xff\xff"
    path.write_bytes(whole)
    monkeypatch.setattr(schema, "CHECKED_BYTES", 0)
    with Store(path) as store, pytest.raises(SpecError, match="store repair"):
        list(store.find())
    assert repair(path).trials >= 58
    assert main(["store", "verify", "--store", str(path)]) == 0


def test_a_damaged_setting_is_written_anew(path: Path):
    change(path, "UPDATE settings SET kind = 'facts' WHERE number = 2")
    assert repair(path).trials == 9
    with Store(path) as store:
        assert verify(store) == (9, [])


def test_a_setting_whose_words_are_lost_comes_back_when_it_is_asked_for(path: Path):
    change(path, "UPDATE settings SET canonical = '{' WHERE number = 2")
    for _ in range(2):  # the second finds nothing more to move
        assert repair(path).trials == 6
    with Store(path) as store:
        assert store.connection.execute("SELECT count(*) FROM damaged").fetchone()[0] == 1
        (fault,) = verify(store)[1]
        assert "found again when it is asked for" in fault
        workers = Recorded()
        sweep([(SPEC.replace(dim=16), seed) for seed in range(3)], store, workers)
        assert workers.asked == []
        assert verify(store) == (9, [])


def test_a_table_of_somebody_elses_is_no_damage(path: Path):
    change(path, "ANALYZE")
    with Store(path) as store:
        assert verify(store) == (9, [])
    assert not salvaged_path(path).exists()


@pytest.mark.parametrize("harm", ["process = 'x'", "beat = 'y'", "owner = x'ff'"])
def test_a_damaged_claim_holds_nobody_up(path: Path, harm: str):
    job = (SPEC.replace(dim=8), 0)
    with Store(path) as store:
        claims = Claims(store)
        row = (job[0].id, 0, NUMERICS_VERSION, "nobody", claims.host, -1, 0.0)
        store.connection.execute("INSERT INTO claims VALUES (?, ?, ?, ?, ?, ?, ?)", row)
        store.connection.execute(f"UPDATE claims SET {harm}")
        assert claims.take([job]) == [job]
        claims.close()


def test_a_seed_that_is_no_number(path: Path):
    change(path, "UPDATE trials SET seed = 'x' WHERE seed = 2 AND setting = 1")
    change(path, "UPDATE trials SET accuracy = 0.9 WHERE seed = 3 AND setting = 1")
    assert repair(path).trials == 7
    raw = sqlite3.connect(path)
    assert raw.execute("SELECT count(*) FROM damaged").fetchone() == (2,)
    raw.close()


def test_a_file_system_without_links(path: Path, monkeypatch: pytest.MonkeyPatch):
    broken = break_header(path)

    def none(*_: Any, **__: Any) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", none)
    found = repair(path)
    assert found.trials == 9
    assert found.moved is not None
    assert found.moved.read_bytes() == broken
