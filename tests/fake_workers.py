"""Workers that make up their trials, for tests of what is run rather than of what comes out."""

from collections.abc import Callable, Iterator

from mnemoscope import Retrieval, Trial
from mnemoscope.engine.record import AnyJob


class FakeWorkers:
    """Hands every job to `make`, and remembers what it was given."""

    def __init__(self, make: Callable[[Retrieval, int], Trial], at_once: int = 1) -> None:
        self.together, self.at_once, self.make = 8, at_once, make
        self.given: list[AnyJob] = []
        self._waiting: list[list[AnyJob]] = []

    def submit(self, batch: list[AnyJob]) -> None:
        self.given += batch
        self._waiting.append(batch)

    def collect(self) -> Iterator[tuple[list[AnyJob], list[Trial]]]:
        while self._waiting:
            batch = self._waiting.pop()
            yield (batch, [self.make(spec, seed) for spec, seed in batch if isinstance(spec, Retrieval)])
