"""What commands that run many trials share: the store's option, and how progress is shown."""

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypedDict, get_args

from cyclopts import Parameter
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
)

from mnemoscope.cli.output import SECONDS_BETWEEN_LINES, Display
from mnemoscope.experiments.cluster import open_workers
from mnemoscope.experiments.sweep import Tally, Workers
from mnemoscope.experiments.work import estimate_seconds
from mnemoscope.fields import Device, Measure, one_of, whole
from mnemoscope.numerics import find_device
from mnemoscope.record import Job
from mnemoscope.spec import SpecError, read_option
from mnemoscope.store.trials import Store

STORE = Parameter(
    help="the store's file, `none` to keep nothing [default: in the user's data directory]"
)
CLUSTER = Parameter(
    help="run batches elsewhere: local:4 (processes), tcp://HOST:PORT (a Dask scheduler) or "
    "slurm:4 (jobs) [default: this process]"
)
MEASURE = Parameter(
    help="what crosses the target: accuracy, attention_accuracy, or first_gradient, the share of "
    "tokens that the matched filter names from the first gradient alone"
)
MOST_HOURS = 12.0


def say(text: str) -> None:
    """A line for people, beside the output."""
    print(text, file=sys.stderr, flush=True)


def read_measure(value: str) -> Measure:
    """The measure option."""
    name = read_option("measure", one_of(*get_args(Measure)), value)
    return next(measure for measure in get_args(Measure) if measure == name)


def read_ends(text: str) -> tuple[int, int]:
    """The range option: two whole numbers, LOW:HIGH."""
    low, mark, high = text.partition(":")
    if not mark:
        raise SpecError("range", f"expected LOW:HIGH, got {text!r}")
    ends = [read_option("range", whole(1, 2**31 - 1), end) for end in (low, high)]
    if not ends[0] < ends[1]:
        raise SpecError("range", f"expected LOW below HIGH, got {text!r}")
    return ends[0], ends[1]


class Tools(TypedDict):
    """What a sweep works with."""

    store: Store
    workers: Workers
    progress: "SweepWatch"


@contextmanager
def open_tools(
    cluster: str | None, device: Device, path: Path | None, jobs: Sequence[Job] = (), *,
    agreed: bool = False,
) -> Iterator[Tools]:  # fmt: skip
    """Store, workers and progress, once the jobs that are known to come do not take days."""
    on_gpu = device == "gpu" or (cluster is None and find_device(device).platform != "cpu")
    refuse_days(jobs, "gpu" if on_gpu else "cpu", agreed)
    with (
        Store(path) as store,
        open_workers(cluster, device, say=say) as workers,
        SweepWatch() as watch,
    ):
        yield {"store": store, "workers": workers, "progress": watch}


def refuse_days(jobs: Sequence[Job], platform: str, agreed: bool) -> None:
    """Ask before work that would take the better part of a day; it stays resumable in any case."""
    hours = estimate_seconds(jobs, platform) / 3600
    if hours > MOST_HOURS and not agreed:
        length = f"{hours / 24:,.0f} days" if hours > 48 else f"{hours:,.0f} hours"
        raise SpecError(
            "yes", f"expected --yes for {len(jobs):,} trials of about {length} in all, got none"
        )


class SweepWatch(Display):
    """Progress on standard error: a bar with rate, remaining time and failures, or plain lines."""

    def __init__(self) -> None:
        super().__init__()
        self.tally: Tally | None = None
        self.started = self.began

    def __enter__(self) -> "SweepWatch":
        return self

    def __call__(self, tally: Tally, what: str = "trials") -> None:
        """Show how a sweep stands."""
        now = time.monotonic()
        if tally is not self.tally:  # the next of several sweeps: its rate is its own
            self.tally, self.started = tally, now
        if now - self.began < 1.0:
            return
        at, failed = tally.found + tally.done, f", {tally.failed} failed" if tally.failed else ""
        rate = tally.done / max(now - self.started, 1e-3)
        if self.console.is_terminal:
            if self.live is None:
                self.live = Progress(
                    TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(),
                    TextColumn("{task.fields[rate]}"), TimeRemainingColumn(),
                    console=self.console, transient=True,
                )  # fmt: skip
                self.live.add_task(what, total=tally.total, rate="")
                self.live.start()
            self.live.update(
                self.live.task_ids[0], description=what, completed=at, total=tally.total,
                rate=f"{rate:.1f}/s{failed}",
            )  # fmt: skip
        elif now - self.spoke >= SECONDS_BETWEEN_LINES:
            self.spoke = now
            print(
                f"{what}: {at} of {tally.total}, {rate:.1f}/s{failed}", file=sys.stderr, flush=True
            )
