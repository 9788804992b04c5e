"""Store, workers and progress for the commands that run many trials."""

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
from mnemoscope.store.schema import NOWHERE, default_path, unreported
from mnemoscope.store.trials import Store
from mnemoscope.ui.cli.asking import ask_first, say
from mnemoscope.ui.cli.options import Work
from mnemoscope.ui.cli.progress import Watch


@dataclass(frozen=True)
class WatchedTools(Tools):
    """Tools whose progress a person sees."""

    progress: Watch = field(default_factory=Watch)


def check_store(path: Path | None) -> bool:
    """Refuse a store that can be neither opened nor created; return whether it would be new."""
    place = path or default_path()
    if place == NOWHERE:
        return True
    check_place(place, "store")
    if place.exists():
        with unreported():  # reported when the command opens it
            Store(place, writing=False).close()
        return False
    check_target(place, "store", make_folders=True)
    return True


@contextmanager
def open_tools(work: Work, ahead: Ahead | None = None) -> Iterator[WatchedTools]:
    """Store, workers and progress. `ahead` forecasts how long the work takes.

    Stored trials are not run again, so with an existing store the forecast waits for the first missing trial. With a
    new store it comes before the file is created.
    """
    cluster, device = work.cluster, work.device
    check_cluster(cluster)
    on_gpu = device == "gpu" or (cluster is None and find_device(device).platform != "cpu")
    platform = "gpu" if on_gpu else "cpu"

    def permit(left: Sequence[AnyJob] | None) -> None:
        if ahead is not None:
            ask_first(ahead(left, platform), platform, work.yes, far=cluster is not None)

    new = check_store(work.store)
    if new:
        permit(None)
    with (
        Store(work.store) as store,
        open_workers(cluster, device, say=say) as workers,
        Watch(permit=None if new else permit) as watch,
    ):
        yield WatchedTools(store, workers, watch)
