"""Batches of trials: the unit of work, on this machine or on another.

`run_batch` stands in an importable module, so that a worker process compiles a program once and
not for every task.
"""

import os
from collections.abc import Iterator, Sequence

from mnemoscope.batch import bucket, simulate_many
from mnemoscope.experiments.trials import run_trials
from mnemoscope.fields import Device
from mnemoscope.record import Job, Trial
from mnemoscope.spec import SpecError

# Trials to a batch: what is lost when the driver dies in the middle of one.
MOST_IN_A_BATCH = {"cpu": 8, "gpu": 128}
# A batch of long trials is cut shorter, to be acknowledged about this often.
TOKENS_IN_A_BATCH = 2e9


def run_batch(
    jobs: Sequence[Job], device: Device = "auto", budget: int | None = None
) -> list[Trial]:
    """The trials of a batch. What fails is tried alone, and kept as crashed if it fails again."""
    try:
        return simulate_many(jobs, device=device, budget=budget)
    except SpecError:
        raise
    except Exception:
        found: list[Trial] = []
        for spec, seed in jobs:
            found += run_trials(spec, [seed], device=device, budget=budget)
        return found


def batches(jobs: Sequence[Job], most: int) -> Iterator[list[Job]]:
    """Jobs cut into batches of at most so many, of one program each and about the same N."""

    known: dict[str, tuple[str, str, int]] = {}

    def order(job: Job) -> tuple[str, str, int]:
        spec, _ = job
        if spec.id not in known:  # a sweep has many seeds of few specs
            known[spec.id] = (bucket(spec).canonical(), spec.embedding, spec.samples)
        return known[spec.id]

    batch: list[Job] = []
    tokens = 0.0
    for job in sorted(jobs, key=order):
        spec, _ = job
        work = spec.samples * spec.length
        full = len(batch) >= most or tokens + work > TOKENS_IN_A_BATCH
        if batch and (full or order(batch[0])[:2] != order(job)[:2]):
            yield batch
            batch, tokens = [], 0.0
        batch.append(job)
        tokens += work
    if batch:
        yield batch


def estimate_seconds(jobs: Sequence[Job], platform: str) -> float:
    """Roughly how long the jobs take, to warn before days of work. Within a factor of a few.

    Passes over tokens, products of tables, and hidden units, at rates of the order that `bench`
    prints; on a CPU for two cores.
    """
    tokens_rate, flop_rate = (6e7, 5e10) if platform == "cpu" else (5e9, 2e13)
    cores = 1.0 if platform != "cpu" else max(1.0, (os.cpu_count() or 1) / 2)
    total = 0.0
    for spec, _ in jobs:
        V, d, m = spec.vocab, spec.dim, spec.width
        passes = 3 + spec.steps
        tokens = spec.samples * spec.length * passes
        flops = 6.0 * V**2 * d + 4.0 * spec.samples * m * d * passes
        if spec.eta != "limit" or spec.steps:
            flops += 4.0 * spec.samples * V * (m or d) * passes
        total += tokens * (1 if not m else d / 16) / tokens_rate + flops / flop_rate + 0.005
    return total / cores
