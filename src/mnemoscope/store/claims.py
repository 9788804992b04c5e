"""Who computes what: several drivers may share a store without doing a trial twice.

A driver claims trials before it runs them, writes them and lets go of the claim in one step. A
claim falls to the next driver when its owner is dead: at once where the owner's process was on this
machine and is gone, after STALE_SECONDS without a sign of life otherwise. Signs of life are watched
by the waiting driver's own clock, which no change of the time of day moves; what has been silent
for long by the time of day, on another machine, is not waited for.
"""

import os
import socket
import sqlite3
import threading
import time
import uuid
from collections.abc import Sequence
from contextlib import closing, suppress
from pathlib import Path

from mnemoscope.engine.record import NUMERICS_VERSION, AnyJob, Record
from mnemoscope.store.schema import NOWHERE, asking, sqlite_errors, transaction
from mnemoscope.store.trials import Store

BEAT_SECONDS = 10.0
STALE_SECONDS = 120.0


class Claims:
    """One driver's claims on a store, kept alive by a thread until it is closed."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.owner = uuid.uuid4().hex
        self.host = f"{socket.gethostname()}/{_boot()}"
        # What was last heard of others' claims: the sign of life, and when it was first seen.
        self._heard: dict[tuple[str, int, int], tuple[tuple[str, float], float]] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._beat, args=(store.path,), daemon=True)
        if store.path != NOWHERE:  # which no other driver can see
            self._thread.start()

    def close(self) -> None:
        """Let go of everything that is still claimed."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()
        with sqlite_errors(self.store.path):
            self.store.connection.execute("DELETE FROM claims WHERE owner = ?", (self.owner,))

    def take(self, jobs: Sequence[AnyJob], most: int) -> list[AnyJob]:
        """Up to `most` of these jobs that have no result and that nobody else is computing."""
        taken: list[AnyJob] = []
        connection = self.store.connection
        with asking(connection, self.store.path), transaction(connection):
            for spec, seed in jobs:
                if len(taken) == most:
                    break
                key = (spec.id, seed, NUMERICS_VERSION)
                there = connection.execute(
                    "SELECT 1 FROM sound WHERE id = ? AND seed = ? AND numerics = ? AND status <> 'crashed'", key
                ).fetchone()
                if there is not None or not self._free(key):
                    continue
                connection.execute(
                    "INSERT OR REPLACE INTO claims VALUES (?, ?, ?, ?, ?, ?, ?)",
                    (*key, self.owner, self.host, os.getpid(), time.time()),
                )
                taken.append((spec, seed))
        return taken

    def finish(self, trials: Sequence[Record]) -> None:
        """Keep the results and let go of their claims, in one step."""
        connection = self.store.connection
        with sqlite_errors(self.store.path), transaction(connection):
            for trial in trials:
                self.store.write(trial)
                connection.execute(
                    "DELETE FROM claims WHERE id = ? AND seed = ? AND numerics = ?",
                    (trial.spec.id, trial.seed, NUMERICS_VERSION),
                )

    def _free(self, key: tuple[str, int, int]) -> bool:
        row = self.store.connection.execute(
            "SELECT owner, host, process, beat FROM claims WHERE id = ? AND seed = ? AND numerics = ?", key
        ).fetchone()
        if row is None:
            return True
        owner, host, process, beat = row
        if not isinstance(process, int) or not isinstance(beat, int | float):
            return True  # damaged: whose it was cannot be told
        if owner == self.owner:
            return False
        same_machine = host == self.host
        if same_machine and not _alive(process):
            return True
        now = time.monotonic()
        sign, since = self._heard.get(key, (None, now))
        if sign != (owner, beat):
            self._heard[key] = ((owner, beat), now)
        elif now - since > STALE_SECONDS:
            return True
        return not same_machine and time.time() - beat > STALE_SECONDS

    def _beat(self, path: Path) -> None:
        """Now and then, say that this driver lives, over a connection of the thread's own."""
        while not self._stop.wait(BEAT_SECONDS):
            # What is wrong with the file, the driver itself will meet.
            with suppress(sqlite3.Error), closing(sqlite3.connect(path)) as connection, connection:
                connection.execute("UPDATE claims SET beat = ? WHERE owner = ?", (time.time(), self.owner))


def _alive(process: int) -> bool:
    if process <= 0:  # which would be a group of processes
        return False
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    try:  # a process that was killed but not yet waited for is dead, too
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return True


def _boot() -> str:
    """Changes with every start of the machine, after which process numbers mean nothing."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return "unknown"
