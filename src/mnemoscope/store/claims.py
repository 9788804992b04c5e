"""Claims: several drivers share a store without computing a trial twice.

A driver claims trials before it runs them; it writes each result and drops its claim in one transaction. A claim passes
to the next driver when its owner is dead: at once if the owner ran on this machine and its process is gone, otherwise
after STALE_SECONDS without a heartbeat. The waiting driver times heartbeats by its monotonic clock. On another machine,
a heartbeat that is old by the time of day counts as stale at once.
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

from mnemoscope.engine.record import NUMERICS_VERSION, AnyJob, Trial
from mnemoscope.store.schema import NOWHERE
from mnemoscope.store.sqlite import sqlite_errors, transaction
from mnemoscope.store.trials import Store

BEAT_SECONDS = 10.0
STALE_SECONDS = 120.0


class Claims:
    """One driver's claims on a store, kept alive by a thread until it is closed."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.owner = uuid.uuid4().hex
        self.host = f"{socket.gethostname()}/{_boot()}"
        # The last heartbeat of others' claims, and when it was first seen.
        self._heard: dict[tuple[str, int, int], tuple[tuple[str, float], float]] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._beat, args=(store.path,), daemon=True)
        if store.path != NOWHERE:  # no other driver sees a store in memory
            self._thread.start()

    def close(self) -> None:
        """Drop all remaining claims."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()
        with sqlite_errors(self.store.path):
            self.store.connection.execute("DELETE FROM claims WHERE owner = ?", (self.owner,))

    def take(self, jobs: Sequence[AnyJob]) -> list[AnyJob]:
        """Claim those of these jobs that have no result and that nobody else is computing."""
        connection = self.store.connection
        with sqlite_errors(self.store.path), transaction(connection):
            finished = self.store.finished(jobs)
            taken = [job for job in jobs if job not in finished and self._free((job[0].id, job[1], NUMERICS_VERSION))]
            connection.executemany(
                "INSERT OR REPLACE INTO claims VALUES (?, ?, ?, ?, ?, ?, ?)",
                [
                    (spec.id, seed, NUMERICS_VERSION, self.owner, self.host, os.getpid(), time.time())
                    for spec, seed in taken
                ],
            )
        return taken

    def finish(self, trials: Sequence[Trial]) -> None:
        """Write results and drop their claims in one transaction."""
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
            return True  # damaged: its owner is unknown
        if owner == self.owner:
            return False
        same_machine = host == self.host
        if same_machine and not _alive(process):
            return True
        now = time.monotonic()
        heartbeat, since = self._heard.get(key, (None, now))
        if heartbeat != (owner, beat):
            self._heard[key] = ((owner, beat), now)
        elif now - since > STALE_SECONDS:
            return True
        return not same_machine and time.time() - beat > STALE_SECONDS

    def _beat(self, path: Path) -> None:
        """Send heartbeats over a connection of the thread's own."""
        while not self._stop.wait(BEAT_SECONDS):
            # The driver itself will report a damaged file.
            with suppress(sqlite3.Error), closing(sqlite3.connect(path)) as connection, connection:
                connection.execute("UPDATE claims SET beat = ? WHERE owner = ?", (time.time(), self.owner))


def _alive(process: int) -> bool:
    if process <= 0:  # would mean a process group
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
    """An id of the current boot: process numbers mean nothing after a restart."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return "unknown"
