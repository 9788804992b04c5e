"""A disk that fills up, and clocks that jump: nothing is lost, and no trial is computed twice."""

import collections
import random
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from fake_workers import FakeWorkers
from patience import SECONDS

from chaos.test_kills import Place, Quiet, table
from mnemoscope import Retrieval, Trial
from mnemoscope.experiments.sweep import sweep
from mnemoscope.store.trials import Store

pytestmark = pytest.mark.chaos


def test_a_full_disk(tmp_path: Path, full: bool, undisturbed: Quiet):
    """No file may grow beyond a size; with more room the command goes on where it was."""
    quiet, expected = undisturbed("phase")
    draw = random.Random(3)
    place = Place(tmp_path / "full", "phase")
    for _ in range(6 if full else 1):
        before = place.kept()
        room = len(quiet.store.read_bytes()) * draw.uniform(0.2, 0.8)
        # `ulimit -f` counts in units of 1,024 bytes.
        line = ["bash", "-c", f'ulimit -Sf {int(room) // 1024}; exec "$@"', "limited"]
        done = subprocess.run(
            [*line, sys.executable, "-m", "mnemoscope", *place.words],
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        ours = [one for one in done.stderr.splitlines() if one.startswith("mnemoscope: --")]
        assert (done.returncode, done.stdout, len(ours)) == (2, "", 1), done.stderr
        assert "--store: expected room on the disk" in ours[0]
        assert "Traceback" not in done.stderr
        assert place.kept().items() >= before.items()
    assert place.finish() == expected
    assert table(place) == table(quiet)


def test_clocks_that_jump(tmp_path: Path, full: bool, monkeypatch: pytest.MonkeyPatch):
    """Drivers on one store, while the time of day goes to and fro by days."""
    draw, now = random.Random(5), time.time()
    monkeypatch.setattr("mnemoscope.store.claims.time.time", lambda: now + draw.uniform(-3e5, 3e5))
    spec = Retrieval(vocab=16, dim=8, length=4, samples=10)
    jobs = [(spec.replace(samples=10 + n), seed) for n in range(40 if full else 8) for seed in range(10)]
    path = tmp_path / "s.db"
    given: list[FakeWorkers] = []
    errors: list[BaseException] = []

    def make(spec: Retrieval, seed: int) -> Trial:
        time.sleep(0.001)  # so that the others have their turns
        return Trial(spec, seed, "ok")

    def drive() -> None:
        workers = FakeWorkers(make)
        given.append(workers)
        try:
            with Store(path) as store:
                sweep(jobs, store, workers)
        except BaseException as error:
            errors.append(error)

    Store(path).close()
    drivers = [threading.Thread(target=drive) for _ in range(4)]
    for one in drivers:
        one.start()
    for one in drivers:
        one.join(SECONDS)
        assert not one.is_alive()
    assert errors == []
    often = collections.Counter(job for workers in given for job in workers.given)
    print(f"{len(often)} jobs, {sum(often.values())} computations by {len(given)} drivers")
    assert set(often) == set(jobs)
    assert set(often.values()) == {1}
