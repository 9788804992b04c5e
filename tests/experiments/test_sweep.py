"""Sweeps: axes, resuming, killed and competing drivers."""

import random
import subprocess
import sys
import time
import weakref
from collections.abc import Sequence
from pathlib import Path

import pytest
from fake_workers import FakeWorkers
from places import TESTS
from sweep_driver import jobs, table

from mnemoscope import Facts, Retrieval, SpecError, Trial
from mnemoscope.engine.record import AnyJob, Job
from mnemoscope.experiments.axes import Axis, grid, read_axis
from mnemoscope.experiments.sweep import ThisProcess, sweep
from mnemoscope.experiments.workers.batches import batches, run_batch
from mnemoscope.store.trials import Store

SPEC = Retrieval(vocab=64, dim=32, length=4, samples=500)
DRIVER = TESTS / "sweep_driver.py"


def test_axes_from_words():
    assert read_axis("x", "dim=32:256:4") == Axis("dim", (32, 64, 128, 256))
    assert read_axis("x", "dim=8:10:9") == Axis("dim", (8, 9, 10))
    assert read_axis("x", "samples=1e3,2_000") == Axis("samples", (1000, 2000))
    assert read_axis("x", "embedding=gaussian,sphere").values == ("gaussian", "sphere")
    assert read_axis("x", "eta=0.1:10:3").values == pytest.approx((0.1, 1, 10))


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("dims=1", "x: expected an axis such as dim=32:256:8, got 'dims=1'; did you mean 'dim'?"),
        ("dim=", "x: expected at least one value, got 'dim='"),
        ("dim=9:9:3", "x: expected 0 < low < high, got '9:9:3'"),
        ("dim=1:9:1", "x: expected a count from 2 to 10,000, got '1'"),
        ("dim=1:9", "x: expected low:high:count, or values with commas, got '1:9'"),
        ("dim=a,b", "x: expected a number, got 'a'"),
    ],
)
def test_what_is_no_axis(text: str, line: str):
    with pytest.raises(SpecError) as caught:
        read_axis("x", text)
    assert str(caught.value) == line


def test_a_grid_is_every_combination():
    axes = [read_axis("x", "dim=16,32"), read_axis("y", "samples=100,200,300")]
    made = grid(dict(vocab=64, length=4), axes)
    assert [(one.dim, one.samples) for one in made][:4] == [(16, 100), (16, 200), (16, 300), (32, 100)]
    with pytest.raises(SpecError, match="expected two different axes"):
        grid(dict(vocab=64, length=4), [axes[0], axes[0]])


def test_batches_share_a_program_and_grow_no_larger_than_told():
    todo: list[Job] = [(SPEC.replace(dim=d, length=n), seed) for d in (20, 30) for n in (4, 5) for seed in range(10)]
    cut = list(batches(todo, 8))
    assert {job for batch in cut for job in batch} == set(todo)
    assert {len(batch) for batch in cut} <= set(range(1, 9))
    assert all(len({spec.model_dump()["length"] for spec, _ in batch}) == 1 for batch in cut)


def test_large_trainings_come_in_small_batches_the_easier_first():
    """A GPU has enough to do with a few of them, and what has ended is kept sooner."""
    large = Facts(subjects=32, relations=32, answers=8, dim=32, heads=32, head_dim=8)
    todo: list[AnyJob] = [(large.replace(width=m), k) for m in (1, 16, 64) for k in range(30)]
    cut = list(batches(todo, 128))
    assert [len(batch) for batch in cut] == [16, 16, 16, 16, 16, 10]
    assert {job for batch in cut for job in batch} == set(todo)
    widths = [spec.model_dump()["width"] for batch in cut for spec, _ in batch]
    assert widths == sorted(widths, reverse=True)
    small: list[AnyJob] = [(large.replace(heads=2), k) for k in range(80)]
    assert [len(batch) for batch in batches(small, 128)] == [64, 16]
    assert [len(batch) for batch in batches(small, 8)] == [8] * 10


def fake(crash: int | None = None) -> FakeWorkers:
    """Workers whose trials are ok, all but one."""
    return FakeWorkers(lambda spec, seed: Trial(spec, seed, "crashed" if seed == crash else "ok"), at_once=3)


def test_a_sweep_runs_what_is_missing_and_nothing_else(tmp_path: Path):
    todo: list[Job] = [(SPEC, seed) for seed in range(20)]
    with Store(tmp_path / "trials.db") as store:
        first = fake(crash=3)
        tally = sweep(todo[:12], store, first)
        assert (tally.total, tally.found, tally.done, tally.failed) == (12, 0, 12, 1)
        again = fake()
        tally = sweep(todo, store, again)
        assert (tally.total, tally.found, tally.done, tally.failed) == (20, 11, 9, 0)
        # The crash is tried again; what has a result is not.
        assert sorted(seed for _, seed in again.given) == [3, *range(12, 20)]
        assert sweep(todo, store, fake()).found == 20


def test_what_fails_in_a_batch_is_recorded_as_a_crash(monkeypatch: pytest.MonkeyPatch):
    from mnemoscope.training.three_step import kind

    def fail(*words: object, **more: object) -> None:
        raise RuntimeError("no such thing")

    monkeypatch.setattr(kind, "simulate_many", fail)
    (found,) = run_batch([(SPEC, 0)], "cpu")
    assert (found.status, found.message) == ("crashed", "RuntimeError: no such thing")


def test_a_batch_that_fails_is_tried_by_halves(monkeypatch: pytest.MonkeyPatch):
    """One bad trial, and no room for more than four at once; what was held is let go of before."""
    from mnemoscope.training.three_step import kind

    class Array:
        pass

    held: list[weakref.ref[Array]] = []
    sizes: list[int] = []

    def run(jobs: Sequence[Job], **more: object) -> list[Trial]:
        assert all(one() is None for one in held)
        sizes.append(len(jobs))
        mine = Array()
        held.append(weakref.ref(mine))
        if len(jobs) > 4 or any(seed == 5 for _, seed in jobs):
            raise RuntimeError("RESOURCE_EXHAUSTED")
        return [Trial(spec, seed, "ok") for spec, seed in jobs]

    monkeypatch.setattr(kind, "simulate_many", run)
    found = run_batch([(SPEC, seed) for seed in range(8)], "cpu")
    assert [one.seed for one in found] == list(range(8))
    assert [one.seed for one in found if one.status == "crashed"] == [5]
    assert sizes == [8, 4, 4, 2, 1, 1, 2]


@pytest.mark.long
def test_killed_drivers_lose_nothing_and_two_share_the_rest(tmp_path: Path):
    """SIGKILL at random moments, then two drivers at once; the table is that of a quiet run."""
    path, count = tmp_path / "trials.db", 120
    words = [sys.executable, str(DRIVER), str(path), str(count)]
    dice = random.Random(5)
    kept = 0
    for _ in range(2):
        with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as driver:
            assert driver.stdout is not None
            acknowledged = kept
            for line in driver.stdout:
                found, done, _ = map(int, line.split())
                acknowledged = found + done
                if done >= 8 * dice.randint(1, 3):
                    time.sleep(dice.uniform(0, 0.02))
                    driver.kill()
                    break
        with Store(path) as store:
            kept = store.count()
        assert kept >= acknowledged
    both = [subprocess.Popen(words, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    done = 0
    for driver in both:
        told, _ = driver.communicate()
        done += int(told.split("\n")[-2].split()[1])
        assert driver.returncode == 0
    assert done == count - kept  # none was run twice
    with Store(path) as store, Store(tmp_path / "quiet.db") as quiet:
        sweep(jobs(count), quiet, ThisProcess("cpu"))
        assert table(store) == table(quiet)
