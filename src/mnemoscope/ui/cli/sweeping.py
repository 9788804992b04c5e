"""What commands that run many trials share: the store's option, and how progress is shown."""

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypedDict

from mnemoscope.engine.device import find_device
from mnemoscope.engine.files import check_place, check_target
from mnemoscope.engine.record import AnyJob
from mnemoscope.experiments.forecast import Ahead, counted
from mnemoscope.experiments.sweep import Tally, Workers
from mnemoscope.experiments.workers.cluster import check_cluster, open_workers
from mnemoscope.spec.validators import Device
from mnemoscope.store.schema import NOWHERE, DamagedStore, default_path
from mnemoscope.store.trials import Store
from mnemoscope.ui.cli.asking import ask_first, say
from mnemoscope.ui.cli.options import STORE as STORE
from mnemoscope.ui.cli.output import Display, Standing


class Tools(TypedDict):
    """What a sweep works with."""

    store: Store
    workers: Workers
    progress: "SweepWatch"


def check_store(path: Path | None) -> bool:
    """Refuse a store that could be neither opened nor made; whether it would be a new one."""
    place = path or default_path()
    if place == NOWHERE:
        return True
    check_place(place, "store")
    if place.exists():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DamagedStore)  # said when it is opened for good
            Store(place, writing=False).close()
        return False
    check_target(place, "store", make_folders=True)
    return True


@contextmanager
def open_tools(
    cluster: str | None, device: Device, path: Path | None, ahead: Ahead | None = None, *, agreed: bool = False
) -> Iterator[Tools]:
    """Store, workers and progress. `ahead` says how long the work takes, before any is begun.

    What the store has is not run again. So where there is one, the question waits for the first
    trial that is missing; where there is none, it comes before one is made.
    """
    check_cluster(cluster)
    on_gpu = device == "gpu" or (cluster is None and find_device(device).platform != "cpu")
    platform = "gpu" if on_gpu else "cpu"

    def permit(left: Sequence[AnyJob] | None) -> None:
        if ahead is not None:
            ask_first(ahead(left, platform), platform, agreed, far=cluster is not None)

    new = check_store(path)
    if new:
        permit(None)
    with (
        Store(path) as store,
        open_workers(cluster, device, say=say) as workers,
        SweepWatch(None if new else permit) as watch,
    ):
        yield {"store": store, "workers": workers, "progress": watch}


class SweepWatch(Display):
    """How sweeps stand; `permit` hears of the first trials that have to be run, before they are."""

    def __init__(self, permit: Callable[[Sequence[AnyJob]], None] | None = None) -> None:
        super().__init__()
        self.permit = permit
        self.tally: Tally | None = None
        self.what = "trials"
        self._crashed = 0
        self._waited: Tally | None = None

    def __call__(self, tally: Tally, what: str = "trials") -> None:
        """Hear how a sweep stands."""
        if self.permit is not None and tally.left:
            permit, self.permit = self.permit, None
            permit(tally.left)
        if tally is not self.tally:
            self._crashed = self.crashed
        self.tally, self.what = tally, what
        if tally.waiting and tally is not self._waited:
            self._waited = tally
            say(f"waiting for {counted(tally.waiting, 'trial')} that another process is computing")

    @property
    def crashed(self) -> int:
        """Trials of all sweeps that crashed."""
        return self._crashed + (self.tally.failed if self.tally is not None else 0)

    def status(self) -> int:
        """The exit status: 1, and a line, where trials crashed."""
        if self.crashed:
            say(f"{counted(self.crashed, 'trial')} crashed, and will be tried again the next time")
        return 1 if self.crashed else 0

    def stands(self) -> Standing | None:
        """The sweep that was heard of last."""
        tally = self.tally
        if tally is None:
            return None
        share = tally.worked / tally.work if tally.work else 1.0
        return Standing(self.what, min(1.0, share), tally.said)
