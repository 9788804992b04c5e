"""Batches of trials: the unit of work, on this machine or on another.

`run_batch` stands in an importable module, so that a worker process compiles a program once and
not for every task.
"""

import logging
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from mnemoscope.engine.device import find_device
from mnemoscope.engine.early_stopping import Hear
from mnemoscope.engine.record import AnyJob, Record, crashed
from mnemoscope.spec import Facts, Memory, Retrieval, Spec, SpecError
from mnemoscope.spec.validators import Device
from mnemoscope.training import facts_trials, memory_trials
from mnemoscope.training.three_step.batch import simulate_many
from mnemoscope.training.three_step.call import bucket

log = logging.getLogger(__name__)
# Trials to a batch: what is lost when the driver dies in the middle of one.
MOST_IN_A_BATCH = {"cpu": 8, "gpu": 128}
# A batch of long trials is cut shorter, to be acknowledged about this often.
TOKENS_IN_A_BATCH = 2e9


def run_batch(
    jobs: Sequence[AnyJob], device: Device = "auto", budget: int | None = None, hear: Hear | None = None
) -> list[Record]:
    """The trials of a batch. If it fails, it is tried by halves; what fails alone has crashed.

    `hear(spec, seed, share)` is told what share of a trial is done.
    """
    try:
        return _run_together(jobs, device, budget, hear)
    except SpecError:
        raise
    except Exception as error:
        reason = f"{type(error).__name__}: {error}".splitlines()[0]
    # Out here the error is gone, and with it the arrays that it held: memory may be what was short.
    if len(jobs) == 1:
        return [crashed(*jobs[0], reason, find_device(device).device_kind)]
    log.info("a batch of %d trials failed and is tried by halves: %s", len(jobs), reason)
    half = len(jobs) // 2
    return [record for part in (jobs[:half], jobs[half:]) for record in run_batch(part, device, budget, hear)]


def _run_together(jobs: Sequence[AnyJob], device: Device, budget: int | None, hear: Hear | None) -> list[Record]:
    """Jobs of one kind, as that kind is run."""
    facts = [(spec, seed) for spec, seed in jobs if isinstance(spec, Facts)]
    if facts:
        return list(facts_trials.train_many(facts, device=device, hear=hear))
    memories = [(spec, seed) for spec, seed in jobs if isinstance(spec, Memory)]
    if memories:
        return list(memory_trials.recall_many(memories, device=device, hear=hear))
    trials = [(spec, seed) for spec, seed in jobs if isinstance(spec, Retrieval)]
    return list(simulate_many(trials, device=device, budget=budget, hear=hear))


def batches(jobs: Sequence[AnyJob], most: int) -> Iterator[list[AnyJob]]:
    """Jobs cut into batches of at most so many, of one program each and about the same work."""
    known: dict[str, _Rank] = {}

    def rank(job: AnyJob) -> _Rank:
        spec, _ = job
        if spec.id not in known:  # a sweep has many seeds of few specs
            known[spec.id] = _rank(spec)
        return known[spec.id]

    batch: list[AnyJob] = []
    taken = 0.0
    for job in sorted(jobs, key=rank):
        program, _, share = rank(job)
        full = len(batch) >= most or taken + share > 1
        if batch and (full or rank(batch[0]).program != program):
            yield batch
            batch, taken = [], 0.0
        batch.append(job)
        taken += share
    if batch:
        yield batch


class _Rank(NamedTuple):
    """Where a job comes among others: what is compiled for it, how long it takes beside others of
    that program, and what share of a batch it fills."""

    program: str
    length: float
    share: float


def _rank(spec: Spec) -> _Rank:
    if isinstance(spec, Retrieval):
        tokens = float(spec.samples * spec.length)
        program = f"{spec.embedding} {bucket(spec).canonical()}"
        return _Rank(program, tokens, tokens / TOKENS_IN_A_BATCH)
    if isinstance(spec, Facts):
        # Those that are about as hard come together, and end together.
        program = facts_trials.program_of(spec, "gpu")
        hard = spec.facts / spec.parameters
        return _Rank(program.canonical(), hard, 1 / facts_trials.enough_rows(program))
    if isinstance(spec, Memory):  # gains from running side by side: not cut
        return _Rank(memory_trials.program_of(spec, "gpu").canonical(), float(spec.items), 0.0)
    return _Rank(spec.kind, 0.0, 0.0)
