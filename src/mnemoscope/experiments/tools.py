"""The tools of an experiment: a store for its trials, workers to run them, and a progress callback."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
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


# What callers may say about progress: a function that is called with it, or whether to show it. By default it is shown
# where somebody looks on, in a terminal or in a notebook.
ShowProgress = Progress | bool | None
ShowSteps = Callable[[float], object] | bool | None
WATCHING = "mnemoscope.ui.cli.progress"


class GivenTools(TypedDict, total=False):
    """The options by which a caller passes tools, together or one by one."""

    tools: Tools | None
    store: Store | None
    workers: Workers | None
    progress: ShowProgress


@contextmanager
def shown_progress(progress: ShowProgress) -> Iterator[Progress | None]:
    """The callback that was given, or one that shows progress while this lasts."""
    if callable(progress):
        yield progress
    elif progress is False:
        yield None
    else:
        # By name: what shows things to people is made of results, and nothing here depends on it.
        with import_module(WATCHING).watch(progress) as watch:
            yield watch


@contextmanager
def watch_steps(what: str, total: float, progress: ShowSteps) -> Iterator[Callable[[float], object]]:
    """A function to call with each part of `total` that is done, for work that is not made of trials."""
    if callable(progress):
        yield progress
        return
    if progress is False:
        yield lambda _: None
        return
    with import_module(WATCHING).watch(progress, what, total) as watch:
        yield (lambda _: None) if watch is None else watch.advance


@contextmanager
def open_tools(
    tools: Tools | None = None,
    store: Store | None = None,
    workers: Workers | None = None,
    progress: ShowProgress = None,
) -> Iterator[Tools]:
    """The given tools; by default the user's own store, and workers in this process."""
    if tools is not None:
        yield tools
        return
    with shown_progress(progress) as callback:
        if store is not None:
            yield Tools(store, workers or ThisProcess(), callback)
            return
        with Store() as own:
            yield Tools(own, workers or ThisProcess(), callback)
