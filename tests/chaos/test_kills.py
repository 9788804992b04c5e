"""Commands that are killed at any moment, and stopped for longer than a claim lasts.

What was kept stays kept, is not computed again, and the table at the end is that of a quiet run.
"""

import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from patience import SECONDS, wait_until

from mnemoscope.store.maintenance import verify
from mnemoscope.store.trials import Store

pytestmark = pytest.mark.chaos

COMMAND = Path(__file__).with_name("logged_command.py")
SMALL = "--vocab 24 --length 4 --test-samples 64"
COMMANDS = {
    "phase": f"phase {SMALL} --x dim=12:24:4 --y samples=100:3200:6 --seeds 8",
    "critical": f"critical {SMALL} --dim 24 --along samples --range 5:2000 --seeds 24",
    "fit": f"fit {SMALL} --axis dim=24,28,32 --range 5:2000 --seeds 8",
    "reproduce": "reproduce a-superposition --quick",
    "memory": "memory --dim 10 --method trained --criterion all --seeds 6",
    "facts": "facts --subjects 4 --relations 2 --answers 2 --dim 8 --heads 1 --head-dim 8 "
    "--width 8 --max-steps 640 --seeds 12",
}
Key = tuple[str, int]


class Place:
    """Where one command works: its store, its log, its ledger."""

    def __init__(self, folder: Path, name: str) -> None:
        folder.mkdir()
        self.name, self.store, self.log = name, folder / "trials.db", folder / "computed"
        self.words = [*COMMANDS[name].split(), "--json", "--device", "cpu"]
        self.words += ["--store", str(self.store)]
        if name == "reproduce":
            self.words += ["--ledger", str(folder / "ledger.json"), "--at-once", "1"]
        self.folder = folder

    @contextmanager
    def started(self) -> Iterator["subprocess.Popen[str]"]:
        """A process in a group of its own, which takes along what it has started."""
        with subprocess.Popen(
            [sys.executable, str(COMMAND), *self.words],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
            env={**os.environ, "COMPUTED": str(self.log)},
        ) as process:
            try:
                yield process
            finally:
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)

    def finish(self) -> Any:
        with self.started() as process:
            told, _ = process.communicate(timeout=SECONDS)
        assert process.returncode == 0, told
        return numbers(json.loads(told))

    def kill_at(self, trials: int, draw: random.Random) -> None:
        """Start, and kill once so many trials are kept, at any moment of what comes next."""
        with self.started() as process:
            wait_until(
                lambda: process.poll() is not None or len(self.kept()) >= trials, f"{self.name} to keep {trials}"
            )
            time.sleep(draw.random() * 0.2)
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.communicate()

    def kept(self) -> dict[Key, tuple[Any, ...]]:
        """The trials in the store, as they stand there."""
        if not self.store.exists():
            return {}
        raw = sqlite3.connect(f"file:{self.store}?mode=ro", uri=True, timeout=SECONDS)
        try:
            rows = raw.execute("SELECT spec, seed, history, written FROM trials").fetchall()
        except sqlite3.OperationalError:  # its tables are not there yet
            return {}
        finally:
            raw.close()
        return {(spec, seed): (history, written) for spec, seed, history, written in rows}

    def computed(self) -> list[Key]:
        lines = self.log.read_text().split("\n")[:-1] if self.log.exists() else []
        return [(spec, int(seed)) for spec, seed in (line.split() for line in lines)]


def numbers(found: Any) -> Any:
    """What was found, without how long it took and what was there before."""
    if isinstance(found, dict):
        return {
            name: numbers(part)
            for name, part in found.items()
            if name not in ("seconds", "date", "versions", "found", "path")
        }
    return [numbers(part) for part in found] if isinstance(found, list) else found


def table(place: Place) -> dict[Key, Any]:
    """What two runs must agree in."""
    return {key: row[0] for key, row in place.kept().items()}


Quiet = Callable[[str], tuple[Place, Any]]


@pytest.mark.parametrize("name", COMMANDS)
def test_kills(name: str, tmp_path: Path, full: bool, undisturbed: Quiet):
    if not full and name not in ("phase", "facts"):
        pytest.skip("in the full form")
    quiet, expected = undisturbed(name)
    total = len(quiet.kept())
    draw = random.Random(name)
    kills = {"reproduce": 5}.get(name, 9) if full else 1
    place = Place(tmp_path / "killed", name)
    before: dict[Key, tuple[Any, ...]] = {}
    lost = twice = done = 0
    while done < kills:
        if len(before) >= total:  # all of it is kept: another begins
            place = Place(tmp_path / f"killed-{done}", name)
            before = {}
        begun = len(place.computed())
        place.kill_at(len(before) + draw.randint(1, max(1, (total - len(before)) // 2)), draw)
        done += 1
        after = place.kept()
        lost += sum(after.get(key) != row for key, row in before.items())
        twice += sum(key in before for key in place.computed()[begun:])
        before = after
    begun = len(place.computed())
    found = place.finish()
    after = place.kept()
    lost += sum(after.get(key) != row for key, row in before.items())
    twice += sum(key in before for key in place.computed()[begun:])
    print(f"{name}: {done} kills, {total} trials, {lost} lost, {twice} twice")
    assert (lost, twice) == (0, 0)
    assert found == expected
    assert table(place) == table(quiet)
    with Store(place.store, writing=False) as store:
        assert verify(store) == (total, [])


def test_a_driver_that_was_stopped_for_longer_than_its_claim(tmp_path: Path, undisturbed: Quiet):
    """Another takes over what it had claimed; awake again, it writes nothing twice."""
    quiet, expected = undisturbed("phase")
    place = Place(tmp_path / "stopped", "phase")
    with place.started() as process:
        wait_until(lambda: place.kept(), "the first trials")
        process.send_signal(signal.SIGSTOP)
        # As silent as for an hour, on a machine whose processes cannot be seen from here.
        raw = sqlite3.connect(place.store, timeout=SECONDS)
        with raw:
            raw.execute("UPDATE claims SET host = 'elsewhere', beat = beat - 3600")
        raw.close()
        before = place.kept()
        assert place.finish() == expected
        taken = place.kept()
        process.send_signal(signal.SIGCONT)
        told, _ = process.communicate(timeout=SECONDS)
    assert numbers(json.loads(told)) == expected
    assert taken.items() >= before.items()
    assert place.kept() == taken
    assert table(place) == table(quiet)
