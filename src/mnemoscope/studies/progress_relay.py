"""Progress of a study that runs in another process, for the one display of the process that started it.

The base seeds of a study run side by side, each with a tally of its own. They travel through a pipe, and the display
gets one tally: their sum.
"""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnContext

from mnemoscope.experiments.sweep import Tally
from mnemoscope.experiments.tools import Progress

SECONDS_BETWEEN_REPORTS = 0.5
# The thread ends when the other process does. Should anything else hold the pipe open, nobody waits for it.
PATIENCE_SECONDS = 2.0
SUMMED = ("total", "found", "done", "failed", "waiting", "work", "worked")


class Sender:
    """The end of the pipe in the process that runs the study."""

    def __init__(self, pipe: Connection) -> None:
        self._pipe, self._lock = pipe, threading.Lock()

    def progress(self, base: int) -> Progress:
        """The progress callback of one base seed, which sends its tally now and then."""
        sent = -SECONDS_BETWEEN_REPORTS

        def send(tally: Tally, what: str) -> None:
            nonlocal sent
            finished = tally.found + tally.done >= tally.total
            if time.monotonic() - sent < SECONDS_BETWEEN_REPORTS and not finished:
                return
            sent = time.monotonic()
            # One job of each setting is enough for the display.
            left = tuple({spec.id: (spec, seed) for spec, seed in tally.left}.values())
            with self._lock, suppress(OSError):  # nobody listens any more
                self._pipe.send((base, replace(tally, jobs=(), left=left), what))

        return send


@contextmanager
def relay_progress(context: SpawnContext, study: str, progress: Progress | None) -> Iterator[Connection | None]:
    """Pass on what arrives through a pipe; yields the end that the other process takes, if anybody watches.

    Close that end here once the other process has it, so that the pipe ends with that process.
    """
    if progress is None:
        yield None
        return
    receiver, sender = context.Pipe(duplex=False)
    thread = threading.Thread(target=_pass_on, args=(receiver, study, progress), daemon=True)
    thread.start()
    try:
        yield sender
    finally:
        sender.close()
        thread.join(PATIENCE_SECONDS)


def _pass_on(receiver: Connection, study: str, progress: Progress) -> None:
    whole, tallies = Tally(0), dict[int, Tally]()
    with receiver, suppress(EOFError, OSError):
        while True:
            base, tally, what = receiver.recv()
            tallies[base] = tally
            for name in SUMMED:
                setattr(whole, name, sum(getattr(each, name) for each in tallies.values()))
            whole.began = min(each.began for each in tallies.values())
            whole.left = tuple(job for each in tallies.values() for job in each.left)
            progress(whole, f"{study}: {what}")
