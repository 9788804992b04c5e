"""Sweeps: run many trials and store each as it finishes. A sweep can stop at any moment and resume later.

    jobs -> those without a result -> batches -> claimed -> run -> stored

Only the driver writes to the store. Several drivers may share a store: each leaves alone what another has claimed,
and waits for it.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol, cast, runtime_checkable

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

# How often progress within a batch is reported.
SECONDS_BETWEEN_WORDS = 0.5
# How long to wait before asking again for what another driver computes.
POLL_SECONDS = 0.5


@dataclass
class Tally:
    """The state of a sweep: `found` were in the store before, `failed` crashed this time, `waiting` run elsewhere.

    `work` is what there is to do and `worked` how much of it is done, both in the seconds of `cost`: some trials take
    far longer than others, and a long training makes progress long before it ends.
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
        """The state in words."""
        text = f"{self.found + self.done:,} of {self.total:,}"
        seconds = time_left(self.worked, self.work, time.monotonic() - self.began)
        if seconds is not None:
            early = any(stops_early(spec) for spec, _ in self.left)
            text += f", {'at most' if early else 'about'} {duration(seconds)} left"
        return text + (f", {self.failed:,} failed" if self.failed else "")


class _Shares:
    """The share of each trial of a sweep that is done."""

    def __init__(self, tally: Tally, jobs: Sequence[AnyJob]) -> None:
        # A sweep has many seeds of few specs.
        self.seconds = {spec: job_seconds(spec, "cpu") for spec in {spec for spec, _ in jobs}}
        self.tally, self.done = tally, dict.fromkeys(jobs, 0.0)
        tally.work = sum(self.seconds[spec] for spec, _ in jobs)

    def note(self, spec: Spec, seed: int, share: float) -> None:
        """Record that this share of a trial is done."""
        self.tally.worked += self.seconds[spec] * (share - self.done[spec, seed])
        self.done[spec, seed] = share


Progress = Callable[[Tally], None]


@runtime_checkable
class Workers(Protocol):
    """Something that runs batches and returns each with its trials, in any order."""

    @property
    def together(self) -> int:
        """How many trials fit in a batch."""
        ...

    @property
    def at_once(self) -> int:
        """How many batches to keep under way."""
        ...

    def submit(self, batch: list[AnyJob]) -> None:
        """Accept a batch."""
        ...

    def collect(self) -> Iterator[tuple[list[AnyJob], list[Trial]]]:
        """Batches that are ready: at least one, if any is under way."""
        ...


class ThisProcess:
    """Runs batches in this process, one after the other."""

    def __init__(self, device: Device = "auto", budget: int | None = None) -> None:
        self.device: Device = device
        self.budget = budget
        on_cpu = find_device(device).platform == "cpu"
        self.together = MOST_IN_A_BATCH["cpu" if on_cpu else "gpu"]
        self.at_once = 1
        # Called with the share of a trial that is done while a batch runs.
        self.hear: Hear | None = None
        self._waiting: list[list[AnyJob]] = []

    def submit(self, batch: list[AnyJob]) -> None:
        """Accept a batch."""
        self._waiting.append(batch)

    def collect(self) -> Iterator[tuple[list[AnyJob], list[Trial]]]:
        """Run the batches that were submitted."""
        while self._waiting:
            batch = self._waiting.pop(0)
            try:
                with interrupts_held():
                    trials = self._run(batch)
            except Interrupted as stop:
                yield [(trial.spec, trial.seed) for trial in stop.finished], stop.finished
                raise
            yield batch, trials
            stop_if_asked()  # now that the batch is stored

    def _run(self, batch: list[AnyJob]) -> list[Trial]:
        return run_batch(batch, self.device, self.budget, self.hear)


class OneByOne(ThisProcess):
    """Runs single trials of retrieval in this process, each stored as soon as it is done.

    `report(seed, share)` is called after each pass over a trial's samples.
    """

    def __init__(self, device: Device = "auto", budget: int | None = None, report: Report | None = None) -> None:
        super().__init__(device, budget)
        self.together, self.report = 1, report

    def _run(self, batch: list[AnyJob]) -> list[Trial]:
        ((spec, seed),) = cast(list[tuple[Retrieval, int]], batch)
        heard = None if self.hear is None else shares(spec, seed, self.hear)

        def report(seed: int, share: float) -> None:
            if heard is not None:
                heard(share)
            if self.report is not None:
                self.report(seed, share)

        return [*run_trials(spec, [seed], device=self.device, budget=self.budget, report=report)]


def sweep(jobs: Sequence[AnyJob], store: Store, workers: Workers, progress: Progress | None = None) -> Tally:
    """Make sure that every job has a result in the store.

    A trial that crashes is stored as crashed. This call does not try it again; the next one does.
    """
    jobs = list(dict.fromkeys(jobs))
    finished = store.finished(jobs)
    left = [job for job in jobs if job not in finished]
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
            gone: set[AnyJob] = set()
            took = exhausted = False
            while not exhausted or under_way:
                while under_way < workers.at_once and not exhausted:
                    batch = next(queue, None)
                    exhausted = batch is None
                    taken = claims.take(batch) if batch else []
                    if taken:
                        workers.submit(taken)
                        under_way, took = under_way + 1, True
                        tally.waiting = 0
                for batch, trials in workers.collect():
                    claims.finish(trials)
                    under_way -= 1
                    tally.done += len(trials)
                    tally.failed += sum(trial.status == "crashed" for trial in trials)
                    gone.update(batch)
                    for spec, seed in batch:
                        shares_done.note(spec, seed, 1.0)
                    report(tally)
            # Drop what another driver has finished meanwhile, and wait for what it is computing.
            left = [job for job in left if job not in gone]
            others = store.finished(left)
            left = [job for job in left if job not in others]
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
