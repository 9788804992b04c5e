"""Work that leaves the process: the same numbers, whoever computes and whoever dies."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import patience
import pytest
import slurm_daemon
from sweep_driver import jobs, table

from mnemoscope import SpecError
from mnemoscope.engine.record import AnyJob, Trial
from mnemoscope.experiments.sweep import Tally, ThisProcess, Workers, sweep
from mnemoscope.experiments.workers import cluster
from mnemoscope.experiments.workers.cluster import FarWorkers, open_workers, run_far
from mnemoscope.store.trials import Store
from mnemoscope.ui.cli import main

COUNT = 120


@pytest.fixture(scope="module")
def workers() -> Iterator[Workers]:
    with patience_with_dask(), open_workers("local:2") as opened:
        yield opened


@contextmanager
def patience_with_dask() -> Iterator[None]:
    """Processes of our own answer some time, however busy the machine is."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cluster, "ANSWER_SECONDS", patience.SECONDS)
        patch.setattr(cluster, "LOST_SECONDS", patience.SECONDS)
        yield


@pytest.mark.long
def test_a_killed_worker_changes_nothing(tmp_path: Path, workers: Workers):
    """SIGKILL to one of two in the middle of a sweep; the table is that of a quiet, serial run."""
    assert isinstance(workers, FarWorkers)
    killed: list[int] = []

    def kill(tally: Tally) -> None:
        if tally.done and not killed:
            assert tally.done < COUNT
            killed.append(next(iter(workers.client.run(os.getpid).values())))
            os.kill(killed[0], signal.SIGKILL)

    with Store(tmp_path / "far.db") as far, Store(tmp_path / "near.db") as near:
        tally = sweep(jobs(COUNT), far, workers, kill)
        assert killed
        assert (tally.done, tally.failed) == (COUNT, 0)
        sweep(jobs(COUNT), near, ThisProcess("cpu"))
        assert table(far) == table(near)


def test_what_workers_cannot_do_is_an_error_and_not_a_wait(workers: Workers):
    assert isinstance(workers, FarWorkers)
    workers.client.wait_for_workers(2, timeout=patience.SECONDS)  # one that was killed may still be starting again
    address = workers.client.scheduler.address
    with (
        pytest.raises(SpecError, match=r"^device: expected a worker with a GPU .*, got 2 without$"),
        open_workers(address, "gpu"),
    ):
        pass
    with pytest.raises(SpecError, match="expected cpu or auto with local workers"), open_workers("local", "gpu"):
        pass
    with pytest.raises(SpecError, match="expected workers of numerics version 0, got "):
        run_far([], "cpu", None, 0)


def test_a_batch_that_kills_its_workers_is_a_crash(workers: Workers):
    assert isinstance(workers, FarWorkers)

    class Future:
        status = "error"

        def exception(self) -> Exception:
            return workers.distributed.KilledWorker("task", None, 3)

    (told,) = workers._trials(Future(), list[AnyJob](jobs(1)))
    assert isinstance(told, Trial)
    assert (told.status, told.accuracy) == ("crashed", None)
    assert told.message.startswith("KilledWorker")


@pytest.mark.parametrize("where", ["locl", "local:0", "slurm:", "tcp://nowhere", "local:x"])
def test_what_is_no_cluster(where: str):
    with pytest.raises(SpecError, match=r"^cluster: expected local, local:4, "), open_workers(where):
        pass


def test_no_scheduler_and_no_workers(monkeypatch: pytest.MonkeyPatch):
    from distributed import LocalCluster

    with monkeypatch.context() as patch:
        patch.setattr(cluster, "ANSWER_SECONDS", 1.0)
        with (
            pytest.raises(SpecError, match="expected a Dask scheduler that answers"),
            open_workers("tcp://127.0.0.1:9"),
        ):
            pass
    with (
        patience_with_dask(),
        LocalCluster(n_workers=0, dashboard_address="127.0.0.1:0") as empty,
        pytest.raises(SpecError, match="expected a scheduler with workers, got one without"),
        open_workers(str(empty.scheduler_address)),  # pyright: ignore[reportAttributeAccessIssue]
    ):
        pass


def test_the_command_says_what_is_missing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
):
    monkeypatch.setitem(sys.modules, "distributed", None)
    words = ["critical", "--vocab", "64", "--dim", "40", "--length", "4", "--cluster", "local"]
    assert main([*words, "--store", str(tmp_path / "s.db")]) == 2
    assert 'pip install "mnemoscope[cluster]"' in capsys.readouterr().err


@pytest.mark.slurm
def test_slurm_jobs_give_the_same_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A real Slurm on loopback takes the jobs that carry the workers."""
    assert slurm_daemon.missing() == ""
    for name in list(os.environ):
        if name.startswith(("SLURM_", "SBATCH_")):
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    few = jobs(24)
    with slurm_daemon.slurm(tmp_path / "s") as env:
        for name, value in env.items():
            monkeypatch.setenv(name, value)
        with open_workers("slurm:2", say=print) as workers, Store(tmp_path / "far.db") as far:
            assert sweep(few, far, workers).done == len(few)
            queue = subprocess.run(["squeue", "-h"], capture_output=True, text=True, check=True)
            assert "dask-wor" in queue.stdout
            with Store(tmp_path / "near.db") as near:
                sweep(few, near, ThisProcess("cpu"))
                assert table(far) == table(near)
        monkeypatch.setenv("SBATCH_PARTITION", "nowhere")
        with (
            pytest.raises(SpecError, match="expected Slurm to take jobs, got: sbatch: error: inva"),
            open_workers("slurm"),
        ):
            pass


def test_without_slurm_it_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SpecError, match="expected Slurm's sbatch on the path, got none"), open_workers("slurm"):
        pass
