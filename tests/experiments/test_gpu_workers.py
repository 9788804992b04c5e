"""GPU workers through Dask: two on one GPU, one of them killed, and the table of a serial run.

Run with `pytest -n 0 -m gpu` where JAX sees a GPU.
"""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from patience import SECONDS, wait_until

from mnemoscope.store.trials import Store

pytestmark = pytest.mark.gpu

SETTING = "--vocab 512 --length 64 --test-samples 1024"
PHASE = f"phase {SETTING} --x dim=48,64,96,128 --y samples=1000:64000:6 --seeds 16 --device gpu"


@contextmanager
def started(folder: Path, name: str, *words: str) -> Iterator["subprocess.Popen[bytes]"]:
    """A process of Dask's in a group of its own, its output in a file; killed at the end."""
    with (
        (folder / name).open("wb") as log,
        subprocess.Popen(
            [sys.executable, "-m", "distributed.cli.dask_" + words[0], *words[1:]],
            stdout=log,
            stderr=log,
            start_new_session=True,
        ) as process,
    ):
        try:
            yield process
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)


@contextmanager
def scheduler(folder: Path) -> Iterator[str]:
    """A scheduler on loopback: its address."""
    words = ("--host", "127.0.0.1", "--port", "0", "--no-dashboard")
    with started(folder, "scheduler", "scheduler", *words):

        def address() -> str | None:
            found = re.search(r"Scheduler at:\s+(tcp://\S+)", (folder / "scheduler").read_text())
            return found[1] if found else None

        yield wait_until(address, "a scheduler")


def run_phase(path: Path, *more: str) -> Any:
    words = [sys.executable, "-m", "mnemoscope", *PHASE.split(), "--json", "--store", str(path)]
    done = subprocess.run([*words, *more], capture_output=True, text=True, timeout=SECONDS)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def table(path: Path) -> dict[tuple[str, int], tuple[object, ...]]:
    with Store(path, writing=False) as store:
        return {(t.spec.id, t.seed): (t.status, t.device, t.accuracy, t.attention_accuracy) for t in store.find()}


def test_a_killed_gpu_worker_changes_nothing(tmp_path: Path):
    worker = ("--nthreads", "1", "--resources", "GPU=1", "--no-nanny", "--no-dashboard")
    far, near = tmp_path / "far.db", tmp_path / "near.db"
    Store(far).close()
    with (
        scheduler(tmp_path) as address,
        started(tmp_path, "first", "worker", address, *worker) as first,
        started(tmp_path, "second", "worker", address, *worker),
        subprocess.Popen(
            [sys.executable, "-m", "mnemoscope", *PHASE.split(), "--json", "--store", str(far), "--cluster", address],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as driver,
    ):

        def kept() -> int:
            with Store(far, writing=False) as store:
                return store.count(checked=False)

        wait_until(lambda: driver.poll() is not None or kept(), "a trial")
        before = kept()
        os.killpg(first.pid, signal.SIGKILL)
        out, err = driver.communicate(timeout=SECONDS)
        assert driver.returncode == 0, err
        found = json.loads(out)
        after = kept()
    serial = run_phase(near)
    print(f"killed one of two GPU workers at {before} of {after} trials")
    assert before < after
    assert found["failed"] == serial["failed"] == 0
    assert found["accuracy"] == serial["accuracy"]
    assert table(far) == table(near)
    assert {row[1] for row in table(far).values()} != {"cpu"}
