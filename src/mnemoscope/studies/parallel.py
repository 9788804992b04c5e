"""Several studies at once, each in a process of its own, on one store and one ledger.

A study spends much of its time compiling and waiting for small steps; a machine with many cores or
a large GPU has room for several. What they find is the same: the store hands every trial to one.
"""

import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from importlib import import_module
from pathlib import Path

from mnemoscope.engine.device import find_device, share_gpu
from mnemoscope.experiments.cost import scaled
from mnemoscope.experiments.forecast import Forecast
from mnemoscope.experiments.sweep import Tally, ThisProcess
from mnemoscope.experiments.workers.shared_batches import Broker, Client
from mnemoscope.spec import SpecError
from mnemoscope.spec.validators import Device
from mnemoscope.store.trials import Store
from mnemoscope.studies.base import Bench, Size, Study
from mnemoscope.studies.catalogue import STUDIES, load, module_of
from mnemoscope.studies.ledger import APART, Entry, Ledger, measure_one

# What processes may take of a GPU between them. More than there is, since few need much at once.
GPU_SHARE = 2.4

SECONDS_BETWEEN_LINES = 30.0

# A study, and the base seeds that it is to be run with.
Piece = tuple[str, Size, tuple[int, ...]]


def on_gpu(device: Device) -> bool:
    """Whether studies will run on a GPU, which takes a study's base seeds side by side."""
    # Looked at here, it must not be taken whole from those that will work on it.
    share_gpu()
    return find_device(device).platform != "cpu"


def usual_number(gpu: bool) -> int:
    """How many pieces run at once, if nobody says otherwise.

    One uses little more than a core while it compiles, and a GPU hardly at all.
    """
    cores = os.cpu_count() or 1
    return max(1, min(10, cores // 2)) if gpu else min(2, cores)


def _share_the_machine(jobs: int) -> None:
    """Let each process take of a GPU what it needs, up to its share, and its part of the cores."""
    share_gpu()
    share = min(0.75, GPU_SHARE / jobs)
    os.environ.setdefault("XLA_PYTHON_CLIENT_MEM_FRACTION", f"{share:.2f}")
    # NumPy's matrix products would take every core in every process, and wait for each other.
    cores = max(1, (os.cpu_count() or 1) // jobs)
    os.environ.setdefault("OPENBLAS_NUM_THREADS", str(cores))


def _stand_back() -> None:
    """Let other processes go first. This can be told to a GPU only before it is first used."""
    os.environ.setdefault("CUDA_MPS_CLIENT_PRIORITY", "1")  # below normal
    if hasattr(os, "nice"):  # not on Windows
        os.nice(max(0, 10 - os.nice(0)))


def pieces_left(studies: Sequence[Study], size: Size, bases: int, ledger: Ledger, *, side_by_side: bool) -> list[Piece]:
    """What the ledger does not have: searches, then the longest, so that no long one comes last.

    Base seeds of a study are one piece where they run side by side, else one each.
    """
    left: list[Piece] = []
    for study in studies:
        missing = [base for base in range(bases) if ledger.find(study, size, base) is None]
        parts = [missing] if side_by_side else [[base] for base in missing]
        pieces: list[Piece] = [(study.id, size, tuple(part)) for part in parts if part]
        left += pieces
    return sorted(left, key=lambda piece: (not STUDIES[piece[0]].asks_often, -getattr(STUDIES[piece[0]], size)))


# The large sizes are for a GPU: on two cores they take about so many times as long.
FULL_ON_CPU = 60.0
# Minutes at the large size are of three base seeds, with so many studies at once.
FULL_BASES = 3


def minutes_of(piece: Piece, platform: str) -> float:
    """About how long a piece takes beside others, on the machines that the catalogue's minutes are of."""
    name, size, bases = piece
    listed = STUDIES[name]
    if size == "quick":
        return listed.quick * len(bases)
    return listed.full * len(bases) / FULL_BASES * (1.0 if platform == "gpu" else FULL_ON_CPU)


def of_pieces(pieces: Sequence[Piece], jobs: int, platform: str) -> Forecast:
    """How long they take in so many parallel jobs; what the store has of them is not looked up."""
    minutes = [minutes_of(piece, platform) for piece in pieces]
    most = max(sum(minutes) / max(1, jobs), max(minutes, default=0.0))
    seconds = scaled(60 * most, platform)
    studies = "a study" if len(pieces) == 1 else f"{len(pieces):,} studies"
    return Forecast(seconds, seconds, studies)


def run_parallel(
    pieces: Sequence[Piece], jobs: int, device: Device, store: Path, ledger: Path
) -> Iterator[tuple[Piece, float]]:
    """Each piece when it is done, and its seconds; all are in the ledger then.

    Where there are searches they go ahead of the others, on the CPU and, under NVIDIA's
    multi-process service, on a GPU. What the others lose by it is little.
    """
    _share_the_machine(jobs)
    context = multiprocessing.get_context("spawn")
    alone = len(pieces) == 1  # several would talk all at once
    ahead = {piece for piece in pieces if STUDIES[piece[0]].asks_often} or set(pieces)
    with ProcessPoolExecutor(jobs, context, initializer=_be_stopped) as pool:
        under_way = {
            pool.submit(_run, piece, device, store, ledger, alone, piece in ahead, module_of(piece[0])): piece
            for piece in pieces
        }
        try:
            for future in as_completed(under_way):
                yield under_way[future], future.result()
        except BrokenProcessPool:
            raise SpecError(
                "jobs",
                f"expected room for {jobs} studies, got one that was ended from "
                "outside, as for want of memory; what was finished is kept",
            ) from None
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            for child in multiprocessing.active_children():
                child.terminate()  # what it had finished is in the store
            raise


def _be_stopped() -> None:
    """Leave Ctrl-C, which reaches every process of a terminal, to the one that ends the others."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _telling(what: str) -> Callable[[Tally, str], None]:
    """Progress as a line on standard error, now and then."""
    spoke = time.monotonic()

    def tell(tally: Tally, which: str) -> None:
        nonlocal spoke
        if time.monotonic() - spoke >= SECONDS_BETWEEN_LINES:
            spoke = time.monotonic()
            print(f"{what}: {which}: {tally.said}", file=sys.stderr, flush=True)

    return tell


def _run(piece: Piece, device: Device, store: Path, ledger: Path, aloud: bool, ahead: bool, module: str) -> float:
    name, size, bases = piece
    if not ahead:
        _stand_back()
    import_module(module)  # adds the study to this process's catalogue, if it is another package's
    began = time.perf_counter()
    broker = Broker(device, len(bases)) if len(bases) > 1 or on_gpu(device) else None

    def measure(number: int) -> Entry:
        workers = ThisProcess(device) if broker is None else broker.clients[number]
        try:
            with Store(store) as own:
                watch = _telling(f"{name}, base seed {bases[number]}") if aloud else None
                bench = Bench(own, workers, watch, bases[number] * APART)
                return measure_one(load(name), size, bases[number], bench)
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
                errors.append(error)  # raised once the others, too, are in the ledger
    if errors:
        raise errors[0]
    return time.perf_counter() - began
