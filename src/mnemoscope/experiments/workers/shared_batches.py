"""Shared batches for several drivers in threads of one process.

Searches that differ only in their seeds ask for the same settings at about the same time. So their orders wait until
every driver waits, and are then cut into new batches:

    drivers -> clients -> batches of one program each -> threads -> clients -> drivers

A GPU runs three trainings in the time of one, and every program is compiled once. Threads let programs compile side
by side.
"""

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

from mnemoscope.engine.record import AnyJob, Trial
from mnemoscope.experiments.workers.batches import MOST_IN_A_BATCH, batches, run_batch
from mnemoscope.spec.validators import Device

# Batches under way at once. They compile side by side, but take turns on a GPU: with more of them, each ends later,
# and what has not ended is lost when the driver is stopped.
THREADS = 3
# Jobs in an order; a driver gets its trials back when all of them are done.
IN_AN_ORDER = 8
# A driver may wait for a driver in another process that waits for this one: nobody waits longer than this.
PATIENCE_SECONDS = 2.0


class _Order:
    """A batch as a driver submitted it, and its trials so far."""

    def __init__(self, client: "Client", jobs: list[AnyJob]) -> None:
        self.client, self.jobs = client, jobs
        self.trials: dict[AnyJob, Trial] = {}


class Broker:
    """Runs the batches of several drivers, each of which has its own client."""

    def __init__(self, device: Device, drivers: int, threads: int = THREADS) -> None:
        self.device: Device = device
        self.clients = [Client(self) for _ in range(drivers)]
        self._open = list(self.clients)
        self._pool = ThreadPoolExecutor(threads)
        self._news = threading.Condition()
        self._pending: list[_Order] = []
        self._since = 0.0
        self._running = 0

    def hand_in(self, order: _Order) -> None:
        """Accept an order; it starts when every driver waits."""
        with self._news:
            if not self._pending:
                self._since = time.monotonic()
            self._pending.append(order)

    def wait_for(self, client: "Client") -> list[_Order]:
        """Orders that are ready for a client, at least one."""
        with self._news:
            client.waits = True
            while not client.ready and client.error is None:
                self._begin()
                self._news.wait(PATIENCE_SECONDS)
            client.waits = False
            if client.error is not None and not client.ready:
                raise client.error
            ready, client.ready = client.ready, []
            return ready

    def leave(self, client: "Client") -> None:
        """Remove a driver that is done, so that the others do not wait for it."""
        with self._news:
            self._open.remove(client)
            self._begin()

    def _begin(self) -> None:
        """Run the pending orders once no driver has more to submit."""
        idle = [client.waits and not client.ready for client in self._open]
        quiet = all(idle) and not self._running
        late = not all(idle) and time.monotonic() - self._since > PATIENCE_SECONDS
        if not self._pending or not (quiet or late):
            return
        owners: dict[AnyJob, list[_Order]] = {}
        for order in self._pending:
            for job in order.jobs:
                owners.setdefault(job, []).append(order)
        self._pending = []
        for batch in batches(list(owners), MOST_IN_A_BATCH["gpu"]):
            self._running += 1
            self._pool.submit(self._run, batch, owners)

    def _run(self, batch: list[AnyJob], owners: dict[AnyJob, list[_Order]]) -> None:
        error, records = None, []
        try:
            records = run_batch(batch, self.device)
        except BaseException as problem:  # passed on to the drivers that wait for it
            error = problem
        with self._news:
            self._running -= 1
            self._since = time.monotonic()  # the drivers that get these have time to submit more
            for job, record in zip(batch, records, strict=error is None):
                for order in owners[job]:
                    order.trials[job] = record
                    if len(order.trials) == len(order.jobs):
                        order.client.ready.append(order)
            if error is not None:
                for order in {id(order): order for job in batch for order in owners[job]}.values():
                    order.client.error = error
            self._news.notify_all()


class Client:
    """One driver's workers: its batches run together with those of the others."""

    together = IN_AN_ORDER
    at_once = 2**31  # everything at once, so that orders of other drivers can join

    def __init__(self, broker: Broker) -> None:
        self.waits = False
        self.ready: list[_Order] = []
        self.error: BaseException | None = None
        self._broker = broker
        self._under_way = 0

    def leave(self) -> None:
        """Tell the broker that nothing more will come."""
        self._broker.leave(self)

    def submit(self, batch: list[AnyJob]) -> None:
        """Submit a batch."""
        self._under_way += 1
        self._broker.hand_in(_Order(self, batch))

    def collect(self) -> Iterator[tuple[list[AnyJob], list[Trial]]]:
        """Wait for at least one batch, if any is under way."""
        if not self._under_way:
            return
        for order in self._broker.wait_for(self):
            self._under_way -= 1
            yield order.jobs, [order.trials[job] for job in order.jobs]
