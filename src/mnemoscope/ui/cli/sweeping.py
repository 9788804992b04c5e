"""What commands that run many trials share: a store, workers and progress."""

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from mnemoscope.engine.device import find_device
from mnemoscope.engine.files import check_place, check_target
from mnemoscope.engine.record import AnyJob
from mnemoscope.experiments.forecast import Ahead
from mnemoscope.experiments.tools import Tools
from mnemoscope.experiments.workers.cluster import check_cluster, open_workers
from mnemoscope.spec.validators import Device
from mnemoscope.store.schema import NOWHERE, DamagedStore, default_path
from mnemoscope.store.trials import Store
from mnemoscope.ui.cli.asking import ask_first, say
from mnemoscope.ui.cli.options import STORE as STORE
from mnemoscope.ui.cli.progress import Watch


@dataclass(frozen=True)
class WatchedTools(Tools):
    """Tools whose progress a person sees."""

    progress: Watch = field(default_factory=Watch)


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
) -> Iterator[WatchedTools]:
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
        Watch(permit=None if new else permit) as watch,
    ):
        yield WatchedTools(store, workers, watch)
