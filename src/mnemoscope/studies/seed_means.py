"""Accuracies of settings over seeds, as plain numbers, and bars of them."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import stdtrit

from mnemoscope.engine.record import Trial
from mnemoscope.experiments.estimate.intervals import mean_interval
from mnemoscope.experiments.sweep import sweep
from mnemoscope.spec import Spec
from mnemoscope.studies.base import Bench, Numbers


def run_settings(bench: Bench, specs: Sequence[Spec], seeds: int, what: str = "trials") -> list[list[Trial]]:
    """The trials of every setting that did not crash, seeds in order."""
    numbers = range(bench.seed, bench.seed + seeds)
    sweep([(spec, seed) for spec in specs for seed in numbers], bench.store, bench.workers, bench.tools.report(what))
    found = [[bench.store.get(spec, seed) for seed in numbers] for spec in specs]
    return [[one for one in some if one is not None and one.status == "ok"] for some in found]


def mean_over_seeds(values: Sequence[float | None], draws: float = 1024) -> Numbers:
    """Mean and 95 % interval over seeds."""
    known = [value for value in values if value is not None]
    return {**mean_interval(known, draws).as_dict(), "seeds": len(known)}


def difference(more: Sequence[Trial], less: Sequence[Trial]) -> Numbers:
    """Mean difference in accuracy, paired by seed, with its 95 % interval."""
    other = {one.seed: one.accuracy or 0.0 for one in less}
    gaps = [(one.accuracy or 0.0) - other[one.seed] for one in more if one.seed in other]
    return spread(gaps) if len(gaps) > 1 else {"mean": sum(gaps), "low": -1.0, "high": 1.0}


def spread(values: Sequence[float]) -> Numbers:
    """Mean and Student's 95 % interval of numbers that need not be shares."""
    mean, count = float(np.mean(values)), len(values)
    half = float(stdtrit(count - 1, 0.975)) * float(np.std(values, ddof=1)) / count**0.5
    return {"mean": mean, "low": mean - half, "high": mean + half}


def show(one: Numbers) -> str:
    """A mean with its interval."""
    if one["mean"] is None:
        return "none"
    if one["low"] is None:
        return f"{one['mean']:.3f}"
    return f"{one['mean']:.3f} [{one['low']:.3f}, {one['high']:.3f}]"


def draw_curve(axes: Any, x: Sequence[float], rows: Sequence[Numbers], label: str | None, color: str = "C0") -> None:
    """Means with their intervals along a size."""
    y = [one["mean"] for one in rows]
    bars = [[one["mean"] - one["low"] for one in rows], [one["high"] - one["mean"] for one in rows]]
    axes.errorbar(x, y, yerr=bars, fmt="o-", capsize=2, color=color, label=label)


def draw_bars(axes: Any, names: Sequence[str], rows: Sequence[Numbers], color: str = "C0") -> None:
    """Means as bars, with their intervals."""
    means = np.array([one["mean"] or 0.0 for one in rows], float)
    low = np.array([one["low"] if one["low"] is not None else one["mean"] for one in rows], float)
    high = np.array([one["high"] if one["high"] is not None else one["mean"] for one in rows], float)
    axes.bar(range(len(rows)), means, yerr=[means - low, high - means], capsize=3, color=color)
    # Many bars are narrow: a name of two words has a line for each.
    labels = [name.replace(" ", "\n", 1) for name in names] if len(names) > 6 else names
    axes.set_xticks(range(len(rows)), labels)
