"""Several drivers in threads of one process, whose trials run in shared batches.

Searches that differ in their seeds alone ask for the same settings at about the same time. So what
they hand in waits until all of them wait, and is then cut into batches anew:

    drivers -> clients -> batches of one program each -> threads -> clients -> drivers

A GPU takes three trainings in the time of one, and every program is compiled once. The threads let
programs compile side by side.
"""

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

from mnemoscope.engine.record import AnyJob, Trial
from mnemoscope.experiments.workers.batches import MOST_IN_A_BATCH, batches, run_batch
from mnemoscope.spec.validators import Device

# Batches under way at once. They compile side by side, but take turns on a GPU: the more there are,
# the later each ends, and what has not ended is lost when the driver is stopped.
THREADS = 3
# A driver hands in so many at once, and gets them back together, when all of them are there.
IN_AN_ORDER = 8
# A driver may wait for one in another process, which waits for this one: nobody waits for longer.
PATIENCE_SECONDS = 2.0


class _Order:
    """One batch as a driver handed it in, and what is there of it."""

    def __init__(self, client: "Client", jobs: list[AnyJob]) -> None:
        self.client, self.jobs = client, jobs
        self.found: dict[AnyJob, Trial] = {}


class Broker:
    """Where the batches of several drivers are run, each of which has a client of its own."""

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
        """Take an order; it is begun when everybody waits."""
        with self._news:
            if not self._pending:
                self._since = time.monotonic()
            self._pending.append(order)

    def wait_for(self, client: "Client") -> list[_Order]:
        """What is ready for a client, at least one order."""
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
        """A driver that is done; the others need not wait for it."""
        with self._news:
            self._open.remove(client)
            self._begin()

    def _begin(self) -> None:
        """Run what was handed in, once nobody has more to hand in."""
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
        except BaseException as problem:  # told to those who wait for it
            error = problem
        with self._news:
            self._running -= 1
            self._since = time.monotonic()  # whoever gets these has its time to ask for more
            for job, record in zip(batch, records, strict=error is None):
                for order in owners[job]:
                    order.found[job] = record
                    if len(order.found) == len(order.jobs):
                        order.client.ready.append(order)
            if error is not None:
                for order in {id(order): order for job in batch for order in owners[job]}.values():
                    order.client.error = error
            self._news.notify_all()


class Client:
    """One driver's workers: what it hands in is run with the others'."""

    together = IN_AN_ORDER
    at_once = 2**31  # all that it has, so that the others' can join

    def __init__(self, broker: Broker) -> None:
        self.waits = False
        self.ready: list[_Order] = []
        self.error: BaseException | None = None
        self._broker = broker
        self._under_way = 0

    def leave(self) -> None:
        """Say that nothing more will come."""
        self._broker.leave(self)

    def submit(self, batch: list[AnyJob]) -> None:
        """Hand in one batch."""
        self._under_way += 1
        self._broker.hand_in(_Order(self, batch))

    def collect(self) -> Iterator[tuple[list[AnyJob], list[Trial]]]:
        """Wait for one at least, if any is under way."""
        if not self._under_way:
            return
        for order in self._broker.wait_for(self):
            self._under_way -= 1
            yield order.jobs, [order.found[job] for job in order.jobs]
