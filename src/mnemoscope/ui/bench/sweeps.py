"""How many trials a second a sweep runs, beside a loop that runs the same trials one by one."""

import time
from collections.abc import Callable
from typing import Any

from mnemoscope.engine.record import Job, Trial
from mnemoscope.spec import Retrieval
from mnemoscope.spec.validators import Device
from mnemoscope.training.three_step.batch import simulate_many
from mnemoscope.training.three_step.simulation import simulate

# V, and N there at most. Dimensions are 24, 48, 96 and 192; N is the most and a half, a quarter and an eighth of it.
SIZES = ((128, 4_096), (512, 16_384), (2_048, 65_536))
DIMS, SHARES, LENGTH = (24, 48, 96, 192), (8, 4, 2, 1), 32
# Seeds of each setting: a GPU runs many trials in a call.
SEEDS = {"cpu": 1, "gpu": 16}


def sweep_jobs(vocab: int, samples: int, platform: str) -> list[Job]:
    """The trials of a size."""
    specs = [
        Retrieval(vocab=vocab, dim=dim, length=LENGTH, samples=samples // share) for dim in DIMS for share in SHARES
    ]
    return [(spec, seed) for spec in specs for seed in range(SEEDS["cpu" if platform == "cpu" else "gpu"])]


def time_sweeps(platform: str, device: Device, done: Callable[[], object] = lambda: None) -> list[dict[str, Any]]:
    """For every size: seconds of a sweep that compiles what it needs, of the next one, and of a loop after both."""
    rows = []
    for vocab, samples in SIZES:
        jobs = sweep_jobs(vocab, samples, platform)
        first, _ = _timed(lambda jobs=jobs: simulate_many(jobs, device=device))
        seconds, trials = _timed(lambda jobs=jobs: simulate_many(jobs, device=device))
        simulate(*jobs[0], device=device)  # a loop's own program
        loop, alone = _timed(lambda jobs=jobs: [simulate(*job, device=device) for job in jobs])
        rows.append(
            {
                "vocab": vocab,
                "samples": samples,
                "trials": len(jobs),
                "failed": sum(trial.status != "ok" for trial in (*trials, *alone)),
                "first_seconds": first,
                "seconds": seconds,
                "loop_seconds": loop,
                "trials_per_second": len(jobs) / seconds,
                "loop_trials_per_second": len(jobs) / loop,
                "ratio": loop / seconds,
            }
        )
        done()
    return rows


def _timed(run: Callable[[], list[Trial]]) -> tuple[float, list[Trial]]:
    began = time.perf_counter()
    trials = run()
    return time.perf_counter() - began, trials
