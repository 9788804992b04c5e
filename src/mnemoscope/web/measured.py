"""What the store knows of the setting on a page: the points that go on its curve."""

from collections import defaultdict
from pathlib import Path
from typing import Any

from mnemoscope.analysis.intervals import mean_interval
from mnemoscope.spec import Retrieval
from mnemoscope.store.schema import NOWHERE
from mnemoscope.store.trials import Store

SIZES = ("vocab", "dim", "length", "width")


def measured_points(spec: Retrieval, path: Path) -> list[dict[str, Any]]:
    """Mean accuracy at every N that was measured, with its interval over seeds."""
    if path == NOWHERE or not path.exists():
        return []
    found: dict[tuple[int, int], list[float]] = defaultdict(list)
    where = " AND ".join(f"{name} = ?" for name in SIZES)
    with Store(path, writing=False) as store:
        for trial in store.find(where, [getattr(spec, name) for name in SIZES]):
            own = {"samples": trial.spec.samples, "test_samples": trial.spec.test_samples}
            # Other laws of embeddings, triggers or step sizes are other curves.
            if trial.accuracy is not None and trial.spec.id == spec.replace(**own).id:
                found[trial.spec.samples, trial.spec.test_samples].append(trial.accuracy)
    return [
        {"samples": samples, "seeds": len(values), **mean_interval(values, float(draws)).as_dict()}
        for (samples, draws), values in sorted(found.items())
    ]
