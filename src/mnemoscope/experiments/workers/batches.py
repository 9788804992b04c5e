"""Batches of trials: the unit of work, on this machine or on another.

`run_batch` is in an importable module, so that a worker process compiles a program once and not for every task.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, partial

from mnemoscope.engine.device import Precision, find_device
from mnemoscope.engine.kinds import Hear, kind_of
from mnemoscope.engine.record import AnyJob, Trial, crashed
from mnemoscope.spec import Retrieval, Spec, SpecError
from mnemoscope.spec.validators import Device
from mnemoscope.training.three_step.simulation import simulate

Report = Callable[[int, float], None]

log = logging.getLogger(__name__)
# The most trials in a batch, and so the most that is lost when the driver dies.
MOST_IN_A_BATCH = {"cpu": 8, "gpu": 128}


def run_batch(
    jobs: Sequence[AnyJob], device: Device = "auto", budget: int | None = None, hear: Hear | None = None
) -> list[Trial]:
    """Run a batch, all of one kind. `hear(spec, seed, share)` is called with the share of a trial that is done."""
    kind = kind_of(jobs[0][0])
    return run_guarded(jobs, lambda part: kind.run(part, device, budget, hear), device)


def run_guarded(
    jobs: Sequence[AnyJob],
    run: Callable[[Sequence[AnyJob]], Sequence[Trial]],
    device: Device,
    precision: Precision = "float32",
) -> list[Trial]:
    """`run(jobs)`; if it fails, run each half, and record a job that fails on its own as crashed.

    A setting that cannot be run at all raises.
    """
    try:
        return [*run(jobs)]
    except SpecError:
        raise
    except Exception as error:
        reason = f"{type(error).__name__}: {error}".splitlines()[0]
    # Out here the error is freed, and with it the arrays it held: the batch may have run out of memory.
    if len(jobs) == 1:
        return [crashed(*jobs[0], reason, find_device(device).device_kind, precision)]
    log.info("a batch of %d trials failed and is tried by halves: %s", len(jobs), reason)
    half = len(jobs) // 2
    return [record for part in (jobs[:half], jobs[half:]) for record in run_guarded(part, run, device, precision)]


def run_trials(
    spec: Retrieval,
    seeds: Iterable[int],
    *,
    precision: Precision = "float32",
    device: Device = "auto",
    budget: int | None = None,
    report: Report | None = None,
) -> Iterator[Trial]:
    """One trial a seed, yielded as soon as it is done.

    `report(seed, share)` is called after each pass over the samples. A trial that fails is yielded as `crashed`, with
    the reason; a setting that cannot be run at all raises.
    """
    for seed in seeds:
        progress = None if report is None else lambda share, seed=seed: report(seed, share)
        trial = partial(simulate, spec, seed, precision=precision, device=device, budget=budget, progress=progress)
        yield from run_guarded([(spec, seed)], lambda _, trial=trial: [trial()], device, precision)


def batches(jobs: Sequence[AnyJob], most: int) -> Iterator[list[AnyJob]]:
    """Cut jobs into batches of at most `most`, each of one program and of similar jobs."""

    @cache  # a sweep has many seeds of few specs
    def rank(spec: Spec) -> tuple[str, float, float]:
        # A program serves more settings on a GPU; batches cut for a GPU suit a CPU as well.
        kind = kind_of(spec)
        cost = kind.cost(spec, "gpu")
        return f"{spec.kind} {kind.program_id(spec, 'gpu')}", cost.order, cost.share

    batch: list[AnyJob] = []
    program, filled = "", 0.0
    for job in sorted(jobs, key=lambda job: rank(job[0])):
        own, _, share = rank(job[0])
        if batch and (own != program or len(batch) >= most or filled + share > 1):
            yield batch
            batch, filled = [], 0.0
        batch.append(job)
        program, filled = own, filled + share
    if batch:
        yield batch
