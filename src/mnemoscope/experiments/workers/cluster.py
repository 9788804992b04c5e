"""Batches on other processes and machines, through Dask distributed.

    local, local:4         worker processes on this machine
    tcp://host:8786        a scheduler that is running already
    slurm, slurm:8         Slurm jobs, each with a worker; queue, account and the like as
                           dask-jobqueue reads them from Dask's configuration

Workers compute; only the driver writes to the store. A batch whose worker dies is run again elsewhere with the same
numbers, since a trial depends on its spec and seed alone.
"""

import logging
import os
import queue
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from mnemoscope.engine.device import share_gpu
from mnemoscope.engine.extras import need
from mnemoscope.engine.record import NUMERICS_VERSION, AnyJob, Trial, crashed
from mnemoscope.experiments.sweep import ThisProcess, Workers
from mnemoscope.experiments.workers.batches import MOST_IN_A_BATCH, run_batch
from mnemoscope.spec import SpecError
from mnemoscope.spec.validators import Device, one_line

Say = Callable[[str], None]
FORMS = "local, local:4, tcp://HOST:PORT, slurm or slurm:4"
# How often to check that there are workers, and to report that there are none.
LOOK_SECONDS = 2.0
SAY_SECONDS = 30.0
# How long a scheduler may take to answer, and how long it may be without workers.
ANSWER_SECONDS = 10.0
LOST_SECONDS = 60.0
# Batches under way for each worker thread: one runs while the next is on its way.
AHEAD = 2


def run_far(batch: Sequence[AnyJob], device: Device, budget: int | None, numerics: int) -> list[Trial]:
    """Run a batch on a worker. A function of `__main__` would be sent by value, and compile for every task."""
    if numerics != NUMERICS_VERSION:
        raise SpecError("cluster", f"expected workers of numerics version {numerics}, got {NUMERICS_VERSION}")
    share_gpu()  # there may be several workers on one
    return run_batch(batch, device, budget)


def check_cluster(where: str | None) -> None:
    """Refuse text that names no cluster, before anything is opened."""
    if where is not None:
        _read(where)


@contextmanager
def open_workers(
    where: str | None = None, device: Device = "auto", *, budget: int | None = None, say: Say | None = None
) -> Iterator[Workers]:
    """Open the workers that `where` names, by default this process, and release them at the end.

    `say` is called while waiting for workers. On a cluster, `device="gpu"` uses only workers with the resource GPU.
    """
    if where is None:
        yield ThisProcess(device, budget)
        return
    kind, count = _read(where)
    need("cluster", "distributed")
    import distributed

    if kind == "local" and device == "gpu":
        raise SpecError(
            "device",
            "expected cpu or auto with local workers, since one process fills a GPU; "
            "leave --cluster out, or start workers with --resources GPU=1",
        )
    # Dask logs every worker that comes or goes; what matters is reported here in one line.
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    cluster = None
    if kind == "local":
        with _deaf_to_interrupts():
            cluster = distributed.LocalCluster(
                n_workers=count,
                threads_per_worker=1,
                dashboard_address="127.0.0.1:0",
                silence_logs=logging.CRITICAL,
                env={"JAX_PLATFORMS": "cpu"},
            )
        device = "cpu"
    elif kind == "slurm":
        cluster = _slurm(count, device)
    try:
        client = _connect(distributed, where if cluster is None else cluster)
        try:
            far = FarWorkers(client, distributed, device, budget, say, patient=kind == "slurm")
            far.check()
            yield far
        finally:
            client.close()
    finally:
        if cluster is not None:
            cluster.close()


@contextmanager
def _deaf_to_interrupts() -> Iterator[None]:
    """Processes started inside ignore Ctrl-C; the driver stops them in order."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may set a signal handler
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


class FarWorkers:
    """Dask workers behind a client."""

    def __init__(
        self, client: Any, distributed: Any, device: Device, budget: int | None, say: Say | None, *, patient: bool
    ) -> None:
        self.client, self.distributed = client, distributed
        self.device: Device = device
        self.budget, self.say, self.patient = budget, say, patient
        self.together = MOST_IN_A_BATCH["gpu" if device == "gpu" else "cpu"]
        self._under_way: dict[Any, list[AnyJob]] = {}
        self._ready: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._seen = self._spoke = time.monotonic()

    @property
    def at_once(self) -> int:
        """AHEAD batches for every thread that can run one, and at least AHEAD."""
        return AHEAD * max(1, sum(worker["nthreads"] for worker in self._able()))

    def submit(self, batch: list[AnyJob]) -> None:
        """Accept a batch."""
        needs = {"GPU": 1} if self.device == "gpu" else None
        how = (self.device, self.budget, NUMERICS_VERSION)
        try:
            future = self.client.submit(run_far, batch, *how, pure=False, resources=needs)
        except Exception as error:  # pickling a user's object may raise anything
            raise SpecError("cluster", f"expected settings that can be sent to workers, got {_cause(error)}") from None
        self._under_way[future] = batch
        future.add_done_callback(self._ready.put)

    def collect(self) -> Iterator[tuple[list[AnyJob], list[Trial]]]:
        """Batches that are ready: at least one, if any is under way."""
        while self._under_way:
            try:
                future = self._ready.get(timeout=LOOK_SECONDS)
            except queue.Empty:
                self.check()
                continue
            batch = self._under_way.pop(future)
            yield batch, self._trials(future, batch)
            if self._ready.empty():
                return

    def check(self) -> None:
        """Raise if no worker will come; report while waiting for one that may.

        Slurm may take hours to start one. Any other scheduler gets LOST_SECONDS to replace a worker that died.
        """
        now = time.monotonic()
        if self.client.status not in ("running", "connecting"):
            raise SpecError("cluster", "expected a scheduler that goes on, got none: it is gone")
        if self._able():
            self._seen = now
            return
        if self.patient:
            if self.say is not None and now - self._spoke >= SAY_SECONDS:
                self._spoke = now
                self.say("waiting for a worker: no Slurm job runs yet (squeue tells why)")
        elif not self._under_way or now - self._seen > LOST_SECONDS:
            count = len(self._workers())
            if self.device == "gpu" and count:
                raise SpecError(
                    "device", f"expected a worker with a GPU (dask worker ... --resources GPU=1), got {count} without"
                )
            raise SpecError("cluster", "expected a scheduler with workers, got one without")

    def _workers(self) -> list[dict[str, Any]]:
        return list(self.client.scheduler_info(n_workers=-1)["workers"].values())

    def _able(self) -> list[dict[str, Any]]:
        """Workers that can run a batch."""
        return [worker for worker in self._workers() if self.device != "gpu" or worker["resources"].get("GPU")]

    def _trials(self, future: Any, batch: list[AnyJob]) -> list[Trial]:
        error = future.exception() if future.status == "error" else None
        if future.status == "finished":
            return future.result()
        if isinstance(error, self.distributed.KilledWorker):
            # It killed several workers: most likely it does not fit in their memory.
            words = "KilledWorker: workers that ran it died, one after the other"
            return [crashed(spec, seed, words) for spec, seed in batch]
        if isinstance(error, SpecError):
            raise error
        if isinstance(error, ImportError):
            raise SpecError("cluster", f"expected workers that have mnemoscope, got: {error}")
        reason = f"{type(error).__name__}: {error}" if error else future.status
        raise SpecError("cluster", f"expected a batch to come back, got: {reason}")


def _cause(error: BaseException) -> str:
    """The first of a chain of errors in one line: what could not be pickled, and not who tried."""
    while error.__cause__ is not None:
        error = error.__cause__
    return one_line(error)


def _read(where: str) -> tuple[str, int]:
    """The kind of cluster, and the number of workers or jobs."""
    if re.fullmatch(r"(tcp|tls)://\S+:\d+", where):
        return "scheduler", 0
    match = re.fullmatch(r"(local|slurm)(?::(\d{1,4}))?", where)
    if match is None or match[2] == "0":
        raise SpecError("cluster", f"expected {FORMS}, got {where!r}")
    kind = match[1]
    return kind, int(match[2] or (os.cpu_count() or 1 if kind == "local" else 1))


def _connect(distributed: Any, where: Any) -> Any:
    try:
        return distributed.Client(where, timeout=ANSWER_SECONDS, set_as_default=False)
    except (OSError, TimeoutError, ValueError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise SpecError("cluster", f"expected a Dask scheduler that answers, got {where!r} ({reason})") from None


def _slurm(jobs: int, device: Device) -> Any:
    """Slurm jobs with a worker each. Dask's configuration under jobqueue.slurm takes precedence."""
    need("cluster")
    from dask import config
    from dask_jobqueue.slurm import SLURMCluster

    configured = config.get("jobqueue.slurm", {})
    more: dict[str, Any] = {}
    if device == "gpu":
        more = {"worker_extra_args": ["--resources", "GPU=1"], "job_extra_directives": ["--gres=gpu:1"]}
    if shutil.which("sbatch") is None:
        raise SpecError("cluster", "expected Slurm's sbatch on the path, got none")
    cluster = SLURMCluster(
        cores=configured.get("cores") or 1,
        processes=1,
        memory=configured.get("memory") or "4GB",
        python=sys.executable,
        **more,
        scheduler_options={"dashboard": False, "dashboard_address": ":0"},
    )
    refused = _refused(cluster.job_script())
    if refused:
        cluster.close()
        raise SpecError("cluster", f"expected Slurm to take jobs, got: {refused}")
    cluster.scale(jobs=jobs)
    return cluster


def _refused(script: str) -> str:
    """Slurm's reason to refuse a job, from a test without submitting; empty if it accepts."""
    asked = subprocess.run(["sbatch", "--test-only"], input=script, capture_output=True, text=True, check=False)
    lines = [line for line in asked.stderr.splitlines() if "error" in line]
    return (lines or ["sbatch failed"])[0] if asked.returncode else ""
