"""Accuracies of settings over seeds, as plain numbers, and bars of them."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import stdtrit

from mnemoscope.engine.record import Trial
from mnemoscope.experiments.estimate.intervals import Interval, mean_interval
from mnemoscope.experiments.sweep import sweep
from mnemoscope.spec import Spec
from mnemoscope.studies.base import Bench, Numbers


def run_settings(bench: Bench, specs: Sequence[Spec], seeds: int, what: str = "trials") -> list[list[Trial]]:
    """The trials of every setting that did not crash, seeds in order."""
    numbers = range(bench.seed, bench.seed + seeds)
    sweep([(spec, seed) for spec in specs for seed in numbers], bench.store, bench.workers, bench.tools.report(what))
    settings = [[bench.store.get(spec, seed) for seed in numbers] for spec in specs]
    return [[trial for trial in trials if trial is not None and trial.status == "ok"] for trials in settings]


def mean_over_seeds(values: Sequence[float | None], draws: float = 1024) -> Numbers:
    """Mean and 95 % interval over seeds."""
    known = [value for value in values if value is not None]
    return {**mean_interval(known, draws).as_dict(), "seeds": len(known)}


def difference(more: Sequence[Trial], less: Sequence[Trial]) -> Numbers:
    """Mean difference in accuracy, paired by seed, with its 95 % interval."""
    other = {trial.seed: trial.accuracy or 0.0 for trial in less}
    gaps = [(trial.accuracy or 0.0) - other[trial.seed] for trial in more if trial.seed in other]
    return spread(gaps) if len(gaps) > 1 else {"mean": sum(gaps), "low": -1.0, "high": 1.0}


def spread(values: Sequence[float]) -> Numbers:
    """Mean and Student's 95 % interval of numbers that need not be shares."""
    mean, count = float(np.mean(values)), len(values)
    half = float(stdtrit(count - 1, 0.975)) * float(np.std(values, ddof=1)) / count**0.5
    return {"mean": mean, "low": mean - half, "high": mean + half}


def show(row: Numbers) -> str:
    """A mean with its interval."""
    return str(Interval(row["mean"], row["low"], row["high"]))


def draw_curve(
    axes: Any, x: Sequence[float], rows: Sequence[Numbers], label: str | None, color: str = "C0", fmt: str = "o-"
) -> None:
    """Means with their intervals along a size."""
    y = [row["mean"] for row in rows]
    bars = [[row["mean"] - row["low"] for row in rows], [row["high"] - row["mean"] for row in rows]]
    axes.errorbar(x, y, yerr=bars, fmt=fmt, capsize=2, color=color, label=label)


def draw_bars(axes: Any, names: Sequence[str], rows: Sequence[Numbers], color: str = "C0") -> None:
    """Means as bars, with their intervals."""
    means = np.array([row["mean"] or 0.0 for row in rows], float)
    low, high = (
        np.array([row["mean"] if row[end] is None else row[end] for row in rows], float) for end in ("low", "high")
    )
    axes.bar(range(len(rows)), means, yerr=[means - low, high - means], capsize=3, color=color)
    # Many bars are narrow: a name of two words has a line for each.
    labels = [name.replace(" ", "\n", 1) for name in names] if len(names) > 6 else names
    axes.set_xticks(range(len(rows)), labels)
