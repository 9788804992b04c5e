"""Stored measurements of a page's setting: the points of its curve."""

from collections import defaultdict
from pathlib import Path
from typing import Any

from mnemoscope.engine.record import NUMERICS_VERSION
from mnemoscope.experiments.estimate.intervals import mean_interval
from mnemoscope.spec import Retrieval
from mnemoscope.store.schema import NOWHERE
from mnemoscope.store.trials import Store

SIZES = ("vocab", "dim", "length", "width")


def measured_points(spec: Retrieval, path: Path) -> list[dict[str, Any]]:
    """Mean accuracy at every N that was measured, with its interval over seeds."""
    if path == NOWHERE or not path.exists():
        return []
    accuracies: dict[tuple[int, int], list[float]] = defaultdict(list)
    where = " AND ".join(f"{name} = ?" for name in SIZES)
    with Store(path, writing=False) as store:
        ids: dict[tuple[int, int], str] = {}
        for name, samples, draws, accuracy in store.select(
            "id, samples, test_samples, accuracy",
            f"{where} AND kind = ? AND numerics = ? AND accuracy IS NOT NULL",
            [*(getattr(spec, name) for name in SIZES), spec.kind, NUMERICS_VERSION],
            "samples, seed",
        ):
            key = (samples, draws)
            if key not in ids:
                ids[key] = spec.replace(samples=samples, test_samples=draws).id
            # Other embedding laws, triggers or step sizes belong to other curves.
            if name == ids[key]:
                accuracies[key].append(accuracy)
    return [
        {"samples": samples, "seeds": len(values), **mean_interval(values, float(draws)).ends("mean")}
        for (samples, draws), values in sorted(accuracies.items())
    ]
