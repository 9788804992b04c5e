"""What an experiment works with: where trials are kept, who runs them, who hears of progress."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from mnemoscope.experiments.sweep import Tally, ThisProcess, Workers
from mnemoscope.store.trials import Store

# Hears how a sweep stands, and what it is about.
Progress = Callable[[Tally, str], None]


@dataclass(frozen=True)
class Tools:
    """A store, workers, and a listener, if any."""

    store: Store
    workers: Workers
    progress: Progress | None = None

    def report(self, what: str) -> Callable[[Tally], None] | None:
        """The listener of one sweep, told what it is about."""
        progress = self.progress
        return None if progress is None else lambda tally: progress(tally, what)


@contextmanager
def open_tools(
    tools: Tools | None, store: Store | None, workers: Workers | None, progress: Progress | None
) -> Iterator[Tools]:
    """Tools as they were given; by default the user's own store, and this process."""
    if tools is not None:
        yield tools
    elif store is not None:
        yield Tools(store, workers or ThisProcess(), progress)
    else:
        with Store() as own:
            yield Tools(own, workers or ThisProcess(), progress)
