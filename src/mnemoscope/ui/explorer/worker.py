"""The process that measures: it takes one order at a time and reports its progress.

Separate from the server, so that pages answer while it computes and an order can be stopped at once. Every trial is in
the store as soon as it is done.
"""

import multiprocessing
import os
import signal
import threading
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

from mnemoscope.spec import Retrieval, SpecError
from mnemoscope.spec.validators import Device

# The most that one order may take, by estimate.
MOST_SECONDS = 900.0


@dataclass(frozen=True)
class Order:
    """Settings to measure, and the seeds of each."""

    specs: tuple[Retrieval, ...]
    seeds: int

    @property
    def trials(self) -> int:
        """How many trials it has, stored ones included."""
        return len(self.specs) * self.seeds


def serve(line: Connection, store: Path, device: Device) -> None:
    """Work on orders until the connection is closed or the server is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the server handles it and ends this process
    if hasattr(os, "nice"):
        os.nice(10)  # pages answer first
    threading.Thread(target=_end_with_the_server, daemon=True).start()
    while True:
        try:
            order: Order = line.recv()
            line.send(_answer(order, line, store, device))
        except (EOFError, OSError):
            return


def _end_with_the_server() -> None:
    """End when the server does, even if it was killed. Finished trials are kept."""
    server = multiprocessing.parent_process()
    if server is not None:
        server.join()
        os._exit(1)


def _answer(order: Order, line: Connection, store: Path, device: Device) -> tuple[str, int | str]:
    try:
        return "done", work_on(order, line, store, device)
    except SpecError as error:
        return "refused", str(error)
    except Exception as error:  # the page shows it, and the worker takes the next order
        return "refused", f"{type(error).__name__}: {error}".splitlines()[0]


def work_on(order: Order, line: Connection, store: Path, device: Device) -> int:
    """Run every trial that the store lacks; return how many crashed.

    Sends `("at", done)` along the way; a running trial counts as a fraction.
    """
    # The simulator is imported here: the server imports this module too, and does not need it.
    from mnemoscope.engine.device import find_device
    from mnemoscope.experiments.cost import estimate_seconds
    from mnemoscope.experiments.sweep import OneByOne, Tally, sweep
    from mnemoscope.store.trials import Store
    from mnemoscope.training.three_step.simulation import passes

    whole, part = 0, 0.0
    passes_per_trial = passes(order.specs[0])

    def on_trial(tally: Tally) -> None:
        nonlocal whole, part
        whole, part = tally.found + tally.done, 0.0
        line.send(("at", whole))

    def within(seed: int, share: float) -> None:
        nonlocal part
        part += share / passes_per_trial
        line.send(("at", whole + min(part, 0.99)))

    jobs = [(spec, seed) for spec in order.specs for seed in range(order.seeds)]
    seconds = estimate_seconds(jobs, find_device(device).platform)
    if seconds > MOST_SECONDS:
        raise SpecError(
            "samples",
            f"expected at most {MOST_SECONDS / 60:.0f} minutes of work, got about "
            f"{seconds / 60:,.0f}: `mnemoscope run` has no such limit",
        )
    with Store(store) as trials:
        return sweep(jobs, trials, OneByOne(device, report=within), on_trial).failed
