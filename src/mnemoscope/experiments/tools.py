"""The tools of an experiment: a store for its trials, workers to run them, and a progress callback."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypedDict

from mnemoscope.engine.record import AnyJob, Trial
from mnemoscope.experiments.keeping import place_for
from mnemoscope.experiments.sweep import Tally, ThisProcess, Workers, sweep
from mnemoscope.store.trials import Store

# Called with the state of a sweep, and a name for its trials.
Progress = Callable[[Tally, str], None]


@dataclass(frozen=True)
class Tools:
    """A store, workers, and a progress callback, if any."""

    store: Store
    workers: Workers
    progress: Progress | None = None

    def report(self, what: str) -> Callable[[Tally], None] | None:
        """The progress callback of one sweep; `what` names its trials."""
        progress = self.progress
        return None if progress is None else lambda tally: progress(tally, what)

    def run(self, jobs: Sequence[AnyJob], what: str = "trials") -> dict[AnyJob, Trial]:
        """Run what has no result yet; return the trials of all these jobs, crashes included."""
        with place_for((spec for spec, _ in jobs), self.store) as place:
            sweep(jobs, place, self.workers, self.report(what))
            return place.get(jobs)


class GivenTools(TypedDict, total=False):
    """The options by which a caller passes tools, together or one by one."""

    tools: Tools | None
    store: Store | None
    workers: Workers | None
    progress: Progress | None


@contextmanager
def open_tools(
    tools: Tools | None = None,
    store: Store | None = None,
    workers: Workers | None = None,
    progress: Progress | None = None,
) -> Iterator[Tools]:
    """The given tools; by default the user's own store, and workers in this process."""
    if tools is not None:
        yield tools
    elif store is not None:
        yield Tools(store, workers or ThisProcess(), progress)
    else:
        with Store() as own:
            yield Tools(own, workers or ThisProcess(), progress)
