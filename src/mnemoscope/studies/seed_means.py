"""Means over seeds with their intervals, as plain numbers."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import stdtrit

from mnemoscope.engine.record import Trial
from mnemoscope.experiments.estimate.estimate import Estimate
from mnemoscope.experiments.estimate.intervals import mean_interval
from mnemoscope.spec import Spec
from mnemoscope.studies.base import Bench, Numbers


def run_settings(bench: Bench, specs: Sequence[Spec], seeds: int, what: str = "trials") -> list[list[Trial]]:
    """Run every setting with this many seeds; return its trials that did not crash, in order of seeds."""
    numbers = range(bench.seed, bench.seed + seeds)
    jobs = [(spec, seed) for spec in specs for seed in numbers]
    trials = {job: trial for job, trial in bench.tools.run(jobs, what).items() if trial.status == "ok"}
    return [[trials[spec, seed] for seed in numbers if (spec, seed) in trials] for spec in specs]


def pool_rows(bases: Sequence[Numbers], *keys: str) -> list[Numbers]:
    """The rows of the first base seed, whose lists of seeds under `keys` are joined with those of all others."""
    joined = []
    for rows in zip(*(numbers["rows"] for numbers in bases), strict=True):
        joined.append({**rows[0], **{key: _join([row[key] for row in rows]) for key in keys}})
    return joined


def _join(parts: Sequence[Any]) -> Any:
    """One list of seeds from several, by name or by place where they come so."""
    if isinstance(parts[0], dict):
        return {name: _join([part[name] for part in parts]) for name in parts[0]}
    if parts[0] and isinstance(parts[0][0], list):
        return [_join(lists) for lists in zip(*parts, strict=True)]
    return [value for part in parts for value in part]


def mean_over_seeds(values: Sequence[float | None], draws: float = 1024) -> Numbers:
    """Mean and 95 % interval over seeds."""
    known = [value for value in values if value is not None]
    return {**mean_interval(known, draws).ends("mean"), "seeds": len(known)}


def difference(more: Sequence[Trial], less: Sequence[Trial]) -> Numbers:
    """Mean difference in accuracy, paired by seed, with its 95 % interval."""
    other = {trial.seed: trial.accuracy or 0.0 for trial in less}
    gaps = [(trial.accuracy or 0.0) - other[trial.seed] for trial in more if trial.seed in other]
    return spread(gaps) if len(gaps) > 1 else {"mean": sum(gaps), "low": -1.0, "high": 1.0}


def spread(values: Sequence[float]) -> Numbers:
    """Mean and Student's 95 % interval of any numbers."""
    mean, count = float(np.mean(values)), len(values)
    half = float(stdtrit(count - 1, 0.975)) * float(np.std(values, ddof=1)) / count**0.5
    return {"mean": mean, "low": mean - half, "high": mean + half}


def show(row: Numbers) -> str:
    """A mean with its interval."""
    return str(Estimate.read(row, "mean"))
