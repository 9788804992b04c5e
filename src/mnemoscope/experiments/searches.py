"""Run searches side by side: each round sweeps what all of them ask for.

A search is a generator that only asks (`estimate.search`, `estimate.limits`). Its trials go through the store, so a
search that was stopped resumes there. Trials of many searches share batches, and keep many workers busy.
"""

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from mnemoscope.engine.record import AnyJob, Trial
from mnemoscope.experiments.estimate.search import Place
from mnemoscope.experiments.tools import Tools
from mnemoscope.spec import Spec

A = TypeVar("A")
R = TypeVar("R")
# The settings to try at a value on the axis. The first is run first; the others only if its answer is not yes.
Tries = Callable[[int], Sequence[Spec]]


@dataclass(frozen=True)
class Result(Generic[R]):
    """What a search returned, and every trial it asked for, by place."""

    end: R
    trials: dict[Place, tuple[Trial, ...]] = field(repr=False)

    @property
    def records(self) -> tuple[Trial, ...]:
        """All trials, in the order the search asked for them."""
        return tuple(record for records in self.trials.values() for record in records)


class SearchInProgress(Generic[A, R]):
    """A search, the settings that its places stand for, and their trials so far."""

    def __init__(
        self,
        search: Generator[list[Place], Mapping[Place, A], R],
        tries: Tries,
        read: Callable[[Sequence[Trial]], A],
        first_seed: int = 0,
    ) -> None:
        self.search, self.tries, self.read, self.first_seed = search, tries, read, first_seed
        self.trials: dict[Place, tuple[Trial, ...]] = {}
        self.result: Result[R] | None = None
        self.places = next(search)

    def jobs(self) -> list[AnyJob]:
        """The jobs it needs next."""
        return [job for place in self.places for job in self._jobs_at(place)]

    def _jobs_at(self, place: Place) -> list[AnyJob]:
        """The jobs that a place needs next; none if it can be answered."""
        trials = self.trials.get(place, ())
        if trials and self.read(trials) is True:
            return []
        value, seed = place
        tries = self.tries(value)
        return [(spec, self.first_seed + seed) for spec in (tries[len(trials) :] if trials else tries[:1])]

    def hear(self, trials: Mapping[AnyJob, Trial]) -> None:
        """Take the trials that were run, and ask the search for its next places."""
        for place in self.places:
            new = tuple(trials[job] for job in self._jobs_at(place))
            self.trials[place] = self.trials.get(place, ()) + new
        if self.jobs():
            return  # at some place the first try was not enough
        try:
            self.places = self.search.send({place: self.read(self.trials[place]) for place in self.places})
        except StopIteration as end:
            self.result, self.places = Result(end.value, self.trials), []


def run_searches(searches: Sequence[SearchInProgress[A, R]], along: str, tools: Tools) -> list[Result[R]]:
    """Run all searches to the end; `along` names their axis for progress."""
    under_way = list(searches)
    while under_way:
        jobs = list(dict.fromkeys(job for search in under_way for job in search.jobs()))
        values = {value for search in under_way for value, _ in search.places}
        what = f"{along} = {values.pop():,}" if len(values) == 1 else f"{len(values)} places"
        if len(searches) > 1:
            what = f"{len(searches) - len(under_way)} of {len(searches)} searches ended, this round, {what}"
        trials = tools.run(jobs, what)
        for search in under_way:
            search.hear(trials)
        under_way = [search for search in under_way if search.result is None]
    return [search.result for search in searches if search.result is not None]
