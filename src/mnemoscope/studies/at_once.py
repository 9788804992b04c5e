"""Several studies at once, each in a process of its own, on one store and one ledger.

A study spends much of its time compiling and waiting for small steps; a machine with many cores or
a large GPU has room for several. What they find is the same: the store hands every trial to one.
"""

import multiprocessing
import os
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

from mnemoscope.experiments.shared_batches import Common, Desk
from mnemoscope.experiments.sweep import ThisProcess
from mnemoscope.fields import Device
from mnemoscope.numerics import compile_soon, find_device, keep_compiled_programs
from mnemoscope.spec import SpecError
from mnemoscope.store.trials import Store
from mnemoscope.studies.base import Bench, Size, Study
from mnemoscope.studies.catalogue import MINUTES, load
from mnemoscope.studies.ledger import APART, Entry, Ledger, measure_one

# What processes may take of a GPU between them. More than there is, since few need much at once.
GPU_SHARE = 2.4

# A study, and the base seeds that it is to be run with.
Piece = tuple[str, Size, tuple[int, ...]]


def usual_number(device: Device) -> int:
    """How many studies a device takes at once, if nobody says otherwise.

    One uses little more than a core while it compiles, and a GPU hardly at all.
    """
    # Looked at here, a GPU must not be taken whole from those that will work on it.
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    cores = os.cpu_count() or 1
    return min(2, cores) if find_device(device).platform == "cpu" else max(1, min(10, cores // 2))


def _share_the_machine(processes: int) -> None:
    """Let each process take of a GPU what it needs, up to its share, and its part of the cores."""
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    share = min(0.75, GPU_SHARE / processes)
    os.environ.setdefault("XLA_PYTHON_CLIENT_MEM_FRACTION", f"{share:.2f}")
    # NumPy's matrix products would take every core in every process, and wait for each other.
    cores = max(1, (os.cpu_count() or 1) // processes)
    os.environ.setdefault("OPENBLAS_NUM_THREADS", str(cores))


def pieces_left(studies: Sequence[Study], size: Size, bases: int, ledger: Ledger) -> list[Piece]:
    """What the ledger does not have, the longest first, so that no long one is left for the end."""
    missing = {
        study.id: tuple(base for base in range(bases) if ledger.find(study, size, base) is None)
        for study in studies
    }
    left: list[Piece] = [(name, size, some) for name, some in missing.items() if some]
    return sorted(left, key=lambda piece: -MINUTES[piece[0]][size == "full"])


def run_at_once(
    pieces: Sequence[Piece], processes: int, device: Device, store: Path, ledger: Path
) -> Iterator[tuple[Piece, float]]:
    """Each piece when it is done, and its seconds; all are in the ledger then."""
    _share_the_machine(processes)
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, context) as pool:
        under_way = {pool.submit(_run, piece, device, store, ledger): piece for piece in pieces}
        try:
            for future in as_completed(under_way):
                yield under_way[future], future.result()
        except BrokenProcessPool:
            raise SpecError(
                "at_once",
                f"expected room for {processes} studies, got one that was ended from "
                "outside, as for want of memory; what was finished is kept",
            ) from None
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            for child in multiprocessing.active_children():
                child.terminate()  # what it had finished is in the store
            raise


def _run(piece: Piece, device: Device, store: Path, ledger: Path) -> float:
    name, size, bases = piece
    compile_soon()
    keep_compiled_programs()
    began = time.perf_counter()
    on_cpu = find_device(device).platform == "cpu"
    common = None if on_cpu else Common(device, len(bases))

    def one(number: int) -> Entry:
        workers = ThisProcess(device) if common is None else common.desks[number]
        try:
            with Store(store) as own:
                bench = Bench(own, workers, seed=bases[number] * APART)
                return measure_one(load(name), size, bases[number], bench)
        finally:
            if isinstance(workers, Desk):
                workers.leave()

    with ThreadPoolExecutor(1 if on_cpu else len(bases)) as pool:
        for future in as_completed([pool.submit(one, number) for number in range(len(bases))]):
            Ledger(ledger).add(future.result())
    return time.perf_counter() - began
