"""Studies in parallel, each in a process of its own, on one store and one ledger.

A study spends much of its time compiling and waiting for small steps, so a machine with many cores or a large GPU can
run several at once. The results are the same: the store hands every trial to one process.
"""

import multiprocessing
import os
import signal
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from importlib import import_module
from multiprocessing.connection import Connection
from pathlib import Path

from mnemoscope.engine.device import find_device, share_gpu
from mnemoscope.experiments.cost import scaled
from mnemoscope.experiments.forecast import Forecast
from mnemoscope.experiments.sweep import ThisProcess
from mnemoscope.experiments.tools import Progress
from mnemoscope.experiments.workers.shared_batches import Broker, Client
from mnemoscope.spec import SpecError
from mnemoscope.spec.validators import Device
from mnemoscope.store.trials import Store
from mnemoscope.studies.base import SEED_STRIDE, Bench, Size, Study
from mnemoscope.studies.catalogue import STUDIES, load, module_of
from mnemoscope.studies.entries import Entry, measure_entry
from mnemoscope.studies.ledger import Ledger
from mnemoscope.studies.progress_relay import Sender, relay_progress

# The GPU memory that all processes may take together. More than there is, since few need much at a time.
GPU_SHARE = 2.4

# A study, its size, and the base seeds to run.
Piece = tuple[str, Size, tuple[int, ...]]

# Where this process reports progress, if it runs one of the pieces and its parent watches.
_sender: Sender | None = None


def on_gpu(device: Device) -> bool:
    """Whether studies will run on a GPU, which runs a study's base seeds side by side."""
    # This process only looks: it must not reserve the memory that its children need.
    share_gpu()
    return find_device(device).platform != "cpu"


def usual_number(gpu: bool) -> int:
    """The default number of pieces that run at once.

    A piece uses little more than one core while it compiles, and hardly any of a GPU.
    """
    cores = os.cpu_count() or 1
    return max(1, min(10, cores // 2)) if gpu else min(2, cores)


def _share_the_machine(jobs: int) -> None:
    """Give each process its share of the cores, and of a GPU what it needs up to its share."""
    share_gpu()
    share = min(0.75, GPU_SHARE / jobs)
    os.environ.setdefault("XLA_PYTHON_CLIENT_MEM_FRACTION", f"{share:.2f}")
    # NumPy's matrix products would use every core in every process, and wait for each other.
    cores = max(1, (os.cpu_count() or 1) // jobs)
    os.environ.setdefault("OPENBLAS_NUM_THREADS", str(cores))


def _lower_priority() -> None:
    """Let other processes go first. A GPU takes the priority only before its first use."""
    os.environ.setdefault("CUDA_MPS_CLIENT_PRIORITY", "1")  # below normal
    if hasattr(os, "nice"):  # not on Windows
        os.nice(max(0, 10 - os.nice(0)))


def pieces_left(studies: Sequence[Study], size: Size, bases: int, ledger: Ledger, *, side_by_side: bool) -> list[Piece]:
    """The pieces that the ledger lacks: searches first, then by length, so that no long one comes last.

    The base seeds of a study are one piece if they run side by side, otherwise one piece each.
    """
    left: list[Piece] = []
    for study in studies:
        missing = [base for base in range(bases) if ledger.find(study, size, base) is None]
        parts = [missing] if side_by_side else [[base] for base in missing]
        pieces: list[Piece] = [(study.id, size, tuple(part)) for part in parts if part]
        left += pieces
    return sorted(left, key=lambda piece: (not STUDIES[piece[0]].asks_often, -getattr(STUDIES[piece[0]], size)))


# The full sizes are for a GPU: on two cores they take about this many times as long.
FULL_ON_CPU = 60.0
# The catalogue's minutes at full size are for this many base seeds.
FULL_BASES = 3


def minutes_of(piece: Piece, platform: str) -> float:
    """About how long a piece takes beside others, on the machines on which the catalogue was timed."""
    name, size, bases = piece
    listed = STUDIES[name]
    if size == "quick":
        return listed.quick * len(bases)
    return listed.full * len(bases) / FULL_BASES * (1.0 if platform == "gpu" else FULL_ON_CPU)


def of_pieces(pieces: Sequence[Piece], jobs: int, platform: str) -> Forecast:
    """How long the pieces take in this many parallel jobs, as if the store were empty."""
    minutes = [minutes_of(piece, platform) for piece in pieces]
    most = max(sum(minutes) / max(1, jobs), max(minutes, default=0.0))
    seconds = scaled(60 * most, platform)
    studies = "a study" if len(pieces) == 1 else f"{len(pieces):,} studies"
    return Forecast(seconds, seconds, studies)


def run_parallel(
    pieces: Sequence[Piece], jobs: int, device: Device, store: Path, ledger: Path, progress: Progress | None = None
) -> Iterator[tuple[Piece, float]]:
    """Yield each piece when it is done and in the ledger, with its seconds.

    Searches run at a higher priority than the other pieces, on the CPU and, under NVIDIA's multi-process service, on a
    GPU. The others lose little by it. `progress` is called with the trials of a piece that runs alone; several pieces
    have no common count of trials.
    """
    _share_the_machine(jobs)
    context = multiprocessing.get_context("spawn")
    urgent = {piece for piece in pieces if STUDIES[piece[0]].asks_often} or set(pieces)
    watched = progress if len(pieces) == 1 else None
    with (
        relay_progress(context, pieces[0][0] if pieces else "", watched) as pipe,
        ProcessPoolExecutor(jobs, context, initializer=_start_process, initargs=(pipe,)) as pool,
    ):
        futures = {
            pool.submit(_run, piece, device, store, ledger, piece in urgent, module_of(piece[0])): piece
            for piece in pieces
        }
        if pipe is not None:
            pipe.close()  # the other process has it now
        try:
            for future in as_completed(futures):
                yield futures[future], future.result()
        except BrokenProcessPool:
            raise SpecError(
                "jobs",
                f"expected memory for {jobs} studies at once, got one that was killed, perhaps for lack of memory; "
                "what was finished is kept",
            ) from None
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            for child in multiprocessing.active_children():
                child.terminate()  # what it had finished is in the store
            raise


def _start_process(pipe: Connection | None) -> None:
    """Leave Ctrl-C, which reaches every process of a terminal, to the parent, which ends its children."""
    global _sender
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _sender = None if pipe is None else Sender(pipe)


def _run(piece: Piece, device: Device, store: Path, ledger: Path, urgent: bool, module: str) -> float:
    """Run a piece in this process, add its entries to the ledger, and return its seconds."""
    name, size, bases = piece
    if not urgent:
        _lower_priority()
    import_module(module)  # adds a study of another package to this process's catalogue
    began = time.perf_counter()
    broker = Broker(device, len(bases)) if len(bases) > 1 or on_gpu(device) else None

    def measure(number: int) -> Entry:
        workers = ThisProcess(device) if broker is None else broker.clients[number]
        base = bases[number]
        try:
            with Store(store) as trials:
                bench = Bench(trials, workers, _sender and _sender.progress(base), base * SEED_STRIDE)
                return measure_entry(load(name), size, base, bench)
        finally:
            if isinstance(workers, Client):
                workers.leave()

    errors: list[BaseException] = []
    with ThreadPoolExecutor(len(bases)) as pool:
        for future in as_completed([pool.submit(measure, number) for number in range(len(bases))]):
            error = future.exception()
            if error is None:
                Ledger(ledger).add(future.result())
            else:
                errors.append(error)  # raised once the other base seeds are in the ledger
    if errors:
        raise errors[0]
    return time.perf_counter() - began
