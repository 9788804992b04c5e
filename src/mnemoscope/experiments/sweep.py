"""Many trials, kept as they are finished: stop at any moment, go on where it was.

    jobs -> those without a result -> batches -> claimed -> run -> kept

Only the driver writes to the store. Several drivers may work on one store: what another has claimed
is left to it, and waited for.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol, cast, runtime_checkable

from mnemoscope.engine.device import find_device
from mnemoscope.engine.interrupts import Interrupted, interrupts_held, stop_if_asked
from mnemoscope.engine.kinds import Hear
from mnemoscope.engine.pace import duration, time_left
from mnemoscope.engine.record import AnyJob, Trial
from mnemoscope.experiments.cost import job_seconds, stops_early
from mnemoscope.experiments.workers.batches import MOST_IN_A_BATCH, Report, batches, run_batch, run_trials
from mnemoscope.spec import Retrieval, Spec
from mnemoscope.spec.validators import Device
from mnemoscope.store.claims import Claims
from mnemoscope.store.trials import Store
from mnemoscope.training.three_step.batch import shares

# Progress within a batch is passed on this often.
SECONDS_BETWEEN_WORDS = 0.5
# How long to wait before looking again for what another driver is computing.
POLL_SECONDS = 0.5


@dataclass
class Tally:
    """How a sweep stands. `found` were in the store before, `failed` crashed this time.

    `waiting` are left to another process that computes them. `work` is what there is to do, and
    `worked` what is done of it, both in the seconds of `cost`: trials differ by far more than their
    number says, and a training moves on long before it ends.
    """

    total: int
    found: int = 0
    done: int = 0
    failed: int = 0
    waiting: int = 0
    jobs: tuple[AnyJob, ...] = field(default=(), repr=False)
    left: tuple[AnyJob, ...] = field(default=(), repr=False)
    work: float = 0.0
    worked: float = 0.0
    began: float = field(default_factory=time.monotonic, repr=False)

    @property
    def said(self) -> str:
        """How it stands, in words."""
        text = f"{self.found + self.done:,} of {self.total:,}"
        seconds = time_left(self.worked, self.work, time.monotonic() - self.began)
        if seconds is not None:
            early = any(stops_early(spec) for spec, _ in self.left)
            text += f", {'at most' if early else 'about'} {duration(seconds)} left"
        return text + (f", {self.failed:,} failed" if self.failed else "")


class _Shares:
    """What is done of each trial of a sweep."""

    def __init__(self, tally: Tally, jobs: Sequence[AnyJob]) -> None:
        each: dict[str, float] = {}
        for spec, _ in jobs:
            if spec.id not in each:  # a sweep has many seeds of few specs
                each[spec.id] = job_seconds(spec, "cpu")
        self.tally, self.done = tally, {(spec.id, seed): 0.0 for spec, seed in jobs}
        self.each = each
        tally.work = sum(each[name] for name, _ in self.done)

    def note(self, spec: Spec, seed: int, share: float) -> None:
        """Take in that so much of a trial is done."""
        key = (spec.id, seed)
        self.tally.worked += self.each[spec.id] * (share - self.done[key])
        self.done[key] = share


Progress = Callable[[Tally], None]


@runtime_checkable
class Workers(Protocol):
    """Something that runs batches and hands back each with its trials, in any order."""

    @property
    def together(self) -> int:
        """How many trials it takes in a batch."""
        ...

    @property
    def at_once(self) -> int:
        """How many batches it wants under way."""
        ...

    def submit(self, batch: list[AnyJob]) -> None:
        """Take on one batch."""
        ...

    def collect(self) -> Iterator[tuple[list[AnyJob], list[Trial]]]:
        """What is ready, at least one batch if any is under way."""
        ...


class ThisProcess:
    """Runs batches right here, one after the other."""

    def __init__(self, device: Device = "auto", budget: int | None = None) -> None:
        self.device: Device = device
        self.budget = budget
        on_cpu = find_device(device).platform == "cpu"
        self.together = MOST_IN_A_BATCH["cpu" if on_cpu else "gpu"]
        self.at_once = 1
        # Told what share of a trial is done, while a batch is under way.
        self.hear: Hear | None = None
        self._waiting: list[list[AnyJob]] = []

    def submit(self, batch: list[AnyJob]) -> None:
        """Take on one batch."""
        self._waiting.append(batch)

    def collect(self) -> Iterator[tuple[list[AnyJob], list[Trial]]]:
        """Run what was taken on."""
        while self._waiting:
            batch = self._waiting.pop(0)
            try:
                with interrupts_held():
                    trials = run_batch(batch, self.device, self.budget, self.hear)
            except Interrupted as stop:
                yield [(trial.spec, trial.seed) for trial in stop.finished], stop.finished
                raise
            yield batch, trials
            stop_if_asked()  # now that the batch is kept


class OneByOne(ThisProcess):
    """Runs single trials of retrieval right here, each kept as soon as it is done.

    `report(seed, share)` hears of progress within a trial, in passes over its samples.
    """

    def __init__(self, device: Device = "auto", budget: int | None = None, report: Report | None = None) -> None:
        super().__init__(device, budget)
        self.together, self.report = 1, report

    def collect(self) -> Iterator[tuple[list[AnyJob], list[Trial]]]:
        """Run what was taken on."""
        while self._waiting:
            ((any_spec, seed),) = batch = self._waiting.pop(0)
            spec = cast(Retrieval, any_spec)
            heard = None if self.hear is None else shares(spec, seed, self.hear)

            def report(seed: int, share: float, heard: Any = heard) -> None:
                for listener in (heard, self.report and partial(self.report, seed)):
                    if listener is not None:
                        listener(share)

            more = {"device": self.device, "budget": self.budget, "report": report}
            with interrupts_held():
                trials: list[Trial] = [*run_trials(spec, [seed], **more)]
            yield batch, trials
            stop_if_asked()


def sweep(jobs: Sequence[AnyJob], store: Store, workers: Workers, progress: Progress | None = None) -> Tally:
    """See to it that every job has a result in the store, and say how it went.

    A trial that crashes is kept as crashed and not tried again by this call; the next one tries it.
    """
    jobs = list(dict.fromkeys(jobs))
    finished = store.finished([spec for spec, _ in jobs])
    left = [job for job in jobs if (job[0].id, job[1]) not in finished]
    tally = Tally(total=len(jobs), found=len(jobs) - len(left), jobs=tuple(jobs), left=tuple(left))
    shares_done = _Shares(tally, left)
    claims = Claims(store)
    report = progress or (lambda _: None)
    under_way = 0
    spoke = time.monotonic()

    def hear(spec: Spec, seed: int, share: float) -> None:
        nonlocal spoke
        shares_done.note(spec, seed, share)
        if time.monotonic() - spoke > SECONDS_BETWEEN_WORDS:
            spoke = time.monotonic()
            report(tally)

    if isinstance(workers, ThisProcess):
        workers.hear = hear
    try:
        report(tally)
        while left:
            queue = batches(left, workers.together)
            gone: set[tuple[str, int]] = set()
            took = exhausted = False
            while not exhausted or under_way:
                while under_way < workers.at_once and not exhausted:
                    batch = next(queue, None)
                    exhausted = batch is None
                    taken = claims.take(batch, len(batch)) if batch else []
                    if taken:
                        workers.submit(taken)
                        under_way, took = under_way + 1, True
                        tally.waiting = 0
                for batch, trials in workers.collect():
                    claims.finish(trials)
                    under_way -= 1
                    tally.done += len(trials)
                    tally.failed += sum(trial.status == "crashed" for trial in trials)
                    for spec, seed in batch:
                        gone.add((spec.id, seed))
                        shares_done.note(spec, seed, 1.0)
                    report(tally)
            # What another driver did meanwhile is no longer left; what it is doing is waited for.
            left = [job for job in left if (job[0].id, job[1]) not in gone]
            finished = store.finished([spec for spec, _ in left])
            others = [job for job in left if (job[0].id, job[1]) in finished]
            left = [job for job in left if (job[0].id, job[1]) not in finished]
            tally.found += len(others)
            for spec, seed in others:
                shares_done.note(spec, seed, 1.0)
            tally.waiting = 0 if took else len(left)
            if others or tally.waiting:
                report(tally)
            if tally.waiting:
                time.sleep(POLL_SECONDS)
    finally:
        if isinstance(workers, ThisProcess):
            workers.hear = None
        claims.close()
    return tally
