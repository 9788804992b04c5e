"""Trainings side by side: what three learning rates and four seeds cost beside one training."""

import time
from typing import Any

from mnemoscope.engine.record import Trial
from mnemoscope.spec import Facts
from mnemoscope.spec.validators import Device
from mnemoscope.training.facts import FACTS

SETTING = Facts(subjects=16, relations=16, answers=8, dim=32, heads=4, head_dim=8, width=64)
RATES = (1e-3, 3e-3, 1e-2)
SEEDS = 4


def time_facts(device: Device) -> dict[str, Any]:
    """Seconds of all trainings in one call and of the longest of them alone, both compiled before.

    Each stops where it reaches its target, so the one that goes on longest is what all wait for.
    """
    jobs = [(SETTING.replace(lr=rate), seed) for rate in RATES for seed in range(SEEDS)]
    together, trials = _time(jobs, device)
    steps = [int(trial.metrics["steps"] or 0) for trial in trials]
    longest = jobs[steps.index(max(steps))]
    alone, _ = _time([longest], device)
    return {
        "spec": SETTING.model_dump(),
        "trainings": len(jobs),
        "steps": steps,
        "seconds": together,
        "alone_seconds": alone,
        "ratio": together / alone,
    }


def _time(jobs: list[tuple[Facts, int]], device: Device) -> tuple[float, list[Trial]]:
    FACTS.run(jobs, device)  # compiles
    began = time.perf_counter()
    trials = FACTS.run(jobs, device)
    return time.perf_counter() - began, trials
