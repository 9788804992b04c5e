"""How long a whole phase diagram takes, compilation and all."""

import time
from typing import Any

import numpy as np

from mnemoscope.engine.record import Job
from mnemoscope.spec import Retrieval
from mnemoscope.spec.validators import Device
from mnemoscope.training.three_step.batch import simulate_many

# A d-N diagram for a small machine and for a GPU: points a side, seeds, and the rest.
DIAGRAMS: dict[str, dict[str, int]] = {
    "cpu": dict(vocab=256, length=16, points=12, seeds=8, dims=192, samples=32_768),
    "gpu": dict(vocab=512, length=32, points=32, seeds=16, dims=512, samples=65_536),
}


def diagram_jobs(vocab: int, length: int, points: int, seeds: int, dims: int, samples: int) -> list[Job]:
    """Trials on a grid of `points` dimensions up to `dims` and as many N up to `samples`."""
    return [
        (Retrieval(vocab=vocab, dim=int(d), length=length, samples=int(n)), seed)
        for d in np.geomspace(16, dims, points).round()
        for n in np.geomspace(samples / 128, samples, points).round()
        for seed in range(seeds)
    ]


def time_diagram(platform: str, device: Device, budget: int | None = None) -> dict[str, Any]:
    """Seconds for the standing diagram of this platform, from nothing compiled."""
    setting = DIAGRAMS["cpu" if platform == "cpu" else "gpu"]
    jobs = diagram_jobs(**setting)
    began = time.perf_counter()
    trials = simulate_many(jobs, device=device, budget=budget)
    return {
        **setting,
        "trials": len(trials),
        "failed": sum(trial.status != "ok" for trial in trials),
        "seconds": time.perf_counter() - began,
    }
