"""How long a whole phase diagram takes: in a process that finds nothing compiled, and in the next one.

Reads one JSON request on standard input and answers on standard output, where it runs as a process of its own.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from typing import Any

import numpy as np

from mnemoscope.engine.device import find_device
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
    """Seconds for this platform's standing diagram: from nothing compiled, and with what that left in the cache."""
    setting = DIAGRAMS["cpu" if platform == "cpu" else "gpu"]
    with tempfile.TemporaryDirectory() as cache:
        cold, warm = (_in_a_process({"setting": setting, "device": device, "budget": budget}, cache) for _ in range(2))
    return {**setting, **cold, "warm_seconds": warm["seconds"]}


def _in_a_process(request: dict[str, Any], cache: str) -> dict[str, Any]:
    environment = {
        **os.environ,
        "JAX_COMPILATION_CACHE_DIR": cache,
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0.1",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "0",
    }
    done = subprocess.run(
        [sys.executable, "-m", "mnemoscope.ui.bench.diagram"],
        input=json.dumps(request),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        env=environment,
    )
    return json.loads(done.stdout)


def main() -> None:
    """Run the diagram of a request."""
    request = json.load(sys.stdin)
    jobs = diagram_jobs(**request["setting"])
    find_device(request["device"])  # starting the device is no part of it
    began = time.perf_counter()
    trials = simulate_many(jobs, device=request["device"], budget=request["budget"])
    seconds = time.perf_counter() - began
    failed = sum(trial.status != "ok" for trial in trials)
    print(json.dumps({"trials": len(trials), "failed": failed, "seconds": seconds}))


if __name__ == "__main__":
    main()
