"""Many trials, for phase diagrams and searches, grouped by program.

On a GPU one compiled call runs many trials of about the same N, since the loop over samples runs to
the largest. On a CPU each trial is a call of its own. See `call`.
"""

import math
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import jax

from mnemoscope.engine.device import Precision, find_device, forget_programs, programs_crowd
from mnemoscope.engine.interrupts import keeping_partial, stop_if_asked
from mnemoscope.engine.layout import Layout, Platform, needed_bytes
from mnemoscope.engine.memory_budget import MemoryBudget
from mnemoscope.engine.record import Job, Trial
from mnemoscope.spec import Retrieval
from mnemoscope.spec.validators import Device
from mnemoscope.training.three_step.call import Call, call_for, compiled, forget_calls, read_results, start_call
from mnemoscope.training.three_step.records import trial_of
from mnemoscope.training.three_step.settling import train_many
from mnemoscope.training.three_step.simulation import passes, simulate
from mnemoscope.training.three_step.streaming import Progress

Message = Callable[[str], None]
Hear = Callable[[Retrieval, int, float], None]
# Threads take turns to run batches.
_turn = threading.Lock()

# The most trials in a call on a GPU: more only wait for each other.
MOST_AT_ONCE = 256
# Batches that a device has been given beside the one whose results are awaited.
AHEAD: dict[Platform, int] = {"cpu": 0, "gpu": 1}
# Below this size of the tables (V^2 d), padding a short batch is cheaper than another compilation;
# the batch then has at least FILLED rows.
CHEAP_TO_FILL = 2**34
FILLED = 8


def simulate_many(
    jobs: Sequence[Job],
    *,
    precision: Precision = "float32",
    device: Device = "auto",
    budget: int | None = None,
    say: Message | None = None,
    hear: Hear | None = None,
) -> list[Trial]:
    """Return one trial for each (spec, seed), in order. `budget` is in bytes.

    `hear(spec, seed, share)` reports the share of a trial that is done.
    """
    if programs_crowd():
        forget_calls()
        forget_programs()
    place = find_device(device)
    done: dict[int, Trial] = {}
    memory = MemoryBudget.of(place, budget)
    groups: dict[Call, list[int]] = {}
    calls: dict[Retrieval, Call | None] = {}  # a diagram has many seeds of few specs
    settling = [number for number, (spec, _) in enumerate(jobs) if spec.settles]
    for number, (spec, seed) in enumerate(jobs):
        if spec.settles:
            continue
        if spec not in calls:
            calls[spec] = call_for(spec, precision, memory, place)
        call = calls[spec]
        if call is None:
            with _turn, keeping_partial(done):
                done[number] = simulate(
                    spec,
                    seed,
                    precision=precision,
                    device=device,
                    budget=budget,
                    progress=None if hear is None else shares(spec, seed, hear),
                )
        else:
            groups.setdefault(call, []).append(number)
    plans: list[tuple[Call, list[int]]] = []
    for call, numbers in groups.items():
        numbers.sort(key=lambda number: jobs[number][0].samples)
        size = batch_size(call.program, call.layout, len(numbers), precision, memory)
        plans.append((call._replace(size=size), numbers))
    # Programs of different shape compile in parallel, while the first ones run. A running call may use
    # the whole memory budget, so calls from several threads take turns.
    with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        compilations = [pool.submit(compiled, call, jobs[numbers[0]]) for call, numbers in plans]
        for (call, numbers), compilation in zip(plans, compilations, strict=True):
            compilation.result()
            with _turn, keeping_partial(done):
                for number, trial in _run_group(call, jobs, numbers, say):
                    done[number] = trial
                    if hear is not None:
                        hear(trial.spec, trial.seed, 1.0)
    if settling:

        def size_of(call: Call, count: int) -> int:
            return batch_size(call.program, call.layout, count, precision, memory)

        def report(at: int, share: float) -> None:
            if hear is not None:
                hear(*jobs[settling[at]], share)

        with _turn, keeping_partial(done):
            part = [jobs[number] for number in settling]
            for at, trial in train_many(part, precision, place, memory, size_of, report):
                done[settling[at]] = trial
                report(at, 1.0)
    return [done[number] for number in range(len(jobs))]


def shares(spec: Retrieval, seed: int, hear: Hear) -> Progress:
    """A progress callback that adds up passes over a trial's samples and reports their share to `hear`."""
    done, total = 0.0, passes(spec)

    def report(share: float) -> None:
        nonlocal done
        done += share
        hear(spec, seed, min(1.0, done / total))

    return report


def _run_group(call: Call, jobs: Sequence[Job], numbers: list[int], say: Message | None) -> Iterator[tuple[int, Trial]]:
    """Run the jobs of one program batch by batch; halve the batch when memory runs out.

    A GPU has the next batch before this process reads the last one's results, so that neither waits for the other.
    """
    ahead = AHEAD["cpu" if call.place.platform == "cpu" else "gpu"]
    running: deque[_Batch] = deque()
    since = 0.0  # when the device was done with the batch before
    while numbers or running:
        stop_if_asked()
        try:
            while numbers and len(running) <= ahead:
                running.append(_start_batch(call, jobs, numbers[: call.size]))
                numbers = numbers[call.size :]
            trials = _read_batch(running[0], jobs, since)
        except jax.errors.JaxRuntimeError as error:
            if call.size == 1 or "RESOURCE_EXHAUSTED" not in str(error):
                raise
            # Whatever is not read yet is run again, which gives the same trials.
            numbers = [number for batch in running for number in batch.numbers] + numbers
            running.clear()
            call = call._replace(size=call.size // 2)
            if say is not None:
                say(f"out of memory: continuing with {call.size} trials at a time")
            continue
        since = time.perf_counter()
        yield from zip(running.popleft().numbers, trials, strict=True)


class _Batch(NamedTuple):
    """Jobs that a device has been given."""

    call: Call
    numbers: list[int]
    started: Any
    began: float


def _start_batch(call: Call, jobs: Sequence[Job], numbers: list[int]) -> _Batch:
    began = time.perf_counter()
    return _Batch(call, numbers, start_call(call, [jobs[number] for number in numbers]), began)


def _read_batch(batch: _Batch, jobs: Sequence[Job], since: float) -> list[Trial]:
    """The batch's trials. Their seconds begin where the device was free for them."""
    part = [jobs[number] for number in batch.numbers]
    results = read_results(batch.started, part)
    seconds = (time.perf_counter() - max(batch.began, since)) / len(part)
    pairs = zip(part, results, strict=True)
    return [trial_of(job, result, seconds, batch.call.precision, batch.call.place) for job, result in pairs]


def batch_size(program: Retrieval, layout: Layout, jobs: int, precision: Precision, memory: MemoryBudget) -> int:
    """Trials in a call: a power of two that fits in the memory budget; one on a CPU."""
    if memory.platform == "cpu":
        return 1
    each = sum(needed_bytes(program, layout, precision).values())
    planned = 2**30 if memory.planned is None else memory.planned
    fits = max(1, min(MOST_AT_ONCE, planned // each))
    least = FILLED if program.vocab**2 * program.dim <= CHEAP_TO_FILL else 1
    return min(2 ** int(math.log2(fits)), max(least, 2 ** math.ceil(math.log2(jobs))))
