"""Trials whose further training ends once it has settled.

    begin      embeddings, three steps, measurements      one call, or several if the three steps are long
    advance    many steps in a compiled loop              calls of about half a second
    measure    on fresh sequences, and the final loss     one call

On a CPU a call holds one training, and every core runs trainings of its own: a compiled loop of small steps uses one
core. On a GPU a call holds many, and when half of them have settled, the rest goes on in a smaller batch. The compiled
programs take N, d (within a bucket), rates and the number of steps as arguments.
"""

import os
import queue
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from mnemoscope.engine import random
from mnemoscope.engine.device import Place, Precision, numerics
from mnemoscope.engine.early_stopping import LEAST_ON_GPU, round_up
from mnemoscope.engine.interrupts import stop_if_asked
from mnemoscope.engine.layout import Layout, needed_bytes
from mnemoscope.engine.memory_budget import MemoryBudget, plan_memory
from mnemoscope.engine.record import Job, Step, Trial
from mnemoscope.models.embeddings import pads
from mnemoscope.models.frozen import make_frozen
from mnemoscope.models.quantisation import round_weights
from mnemoscope.models.retrieval import Parameters, draw_frozen
from mnemoscope.spec import Retrieval
from mnemoscope.training import full_batch
from mnemoscope.training.full_batch import Further
from mnemoscope.training.settled import Bounds, Task, Training, advance, first_training, under_way
from mnemoscope.training.side_by_side import over_rows
from mnemoscope.training.three_step.algorithm import Rates, three_steps, train_three_steps
from mnemoscope.training.three_step.call import Call, Result, arguments_of, steps_call
from mnemoscope.training.three_step.evaluation import ROUNDED, Measurement, measure_softmax, measure_steps
from mnemoscope.training.three_step.records import make_step, make_trial, read_steps
from mnemoscope.training.three_step.streaming import Count, Source

# Samples in a chunk of a step on a CPU: their vectors stay in the cache.
CHUNK_ON_CPU = 64
# How long a call of `advance` should take, and so the delay of Ctrl-C.
SECONDS_IN_A_CALL = 0.5
FIRST_STEPS = 16
# The fewest rows of a smaller batch.
LEAST_ROWS = LEAST_ON_GPU
# How often the main thread looks for news.
LOOK_SECONDS = 0.1

# report(number of the job, share of its passes over the samples that is done)
Report = Callable[[int, float], None]


class Halted(Exception):  # noqa: N818 - it ends a thread, it is not an error
    """Another thread asked this one to stop."""


class Plan(NamedTuple):
    """How to run trainings that share compiled programs; `begin` says whether they may begin in one call."""

    call: Call
    further: Further
    begin: bool

    @property
    def training_layout(self) -> Layout:
        """The layout of the training steps."""
        layout = self.call.layout
        if layout.platform != "cpu":
            return layout
        return layout._replace(by_sample=min(layout.by_sample, CHUNK_ON_CPU))


class Begun(NamedTuple):
    """Trainings before their first step: what they need, and what was measured so far. Every part has rows."""

    tasks: Task
    trainings: Training
    test: Source
    fresh: jax.Array
    result: Result


def plan_for(spec: Retrieval, precision: Precision, memory: MemoryBudget, place: Place) -> Plan:
    """The plan for one trial; a trial that does not fit in memory is refused."""
    exact = plan_memory(spec, precision, memory)
    further = Further.of(spec)
    call = steps_call(spec, exact, precision, memory, place)
    if call is not None:
        return Plan(call, further, begin=True)
    return Plan(Call(spec.program(), exact, spec.embedding, 1, precision, place), further, begin=False)


def train_one(
    job: Job, precision: Precision, place: Place, memory: MemoryBudget, report: Callable[[float], None]
) -> Trial:
    """One trial, in the calling thread."""
    plan = plan_for(job[0], precision, memory, place)
    (trial,) = _train(plan, [job], lambda _, share: report(share), stop_if_asked)
    return trial


def train_many(
    jobs: Sequence[Job],
    precision: Precision,
    place: Place,
    memory: MemoryBudget,
    size_of: Callable[[Call, int], int],
    report: Report,
) -> Iterator[tuple[int, Trial]]:
    """Trials with the numbers of their jobs, as they finish. `size_of(call, jobs)` is how many share a call."""
    plans: dict[Plan, list[int]] = {}
    for number, (spec, _) in enumerate(jobs):
        plans.setdefault(plan_for(spec, precision, memory, place), []).append(number)
    parts: list[tuple[Plan, list[int]]] = []
    for plan, numbers in plans.items():
        numbers.sort(key=lambda number: jobs[number][0].samples)
        size = size_of(plan.call, len(numbers)) if plan.begin else 1
        sized = plan._replace(call=plan.call._replace(size=size))
        parts += [(sized, numbers[first : first + size]) for first in range(0, len(numbers), size)]
    news: queue.SimpleQueue[tuple[int, float]] = queue.SimpleQueue()
    halt = threading.Event()

    def check() -> None:
        if halt.is_set():
            raise Halted

    def run(plan: Plan, numbers: list[int]) -> list[Trial]:
        check()
        return _train(plan, [jobs[n] for n in numbers], lambda at, share: news.put((numbers[at], share)), check)

    with ThreadPoolExecutor(_thread_count(parts, memory)) as pool:
        futures: dict[Future[list[Trial]], list[int]] = {pool.submit(run, *part): part[1] for part in parts}
        left = set(futures)
        try:
            while left:
                done, left = wait(left, LOOK_SECONDS, FIRST_COMPLETED)
                while not news.empty():
                    report(*news.get())
                for future in done:
                    yield from zip(futures[future], future.result(), strict=True)
                stop_if_asked()
        finally:
            halt.set()


def _thread_count(parts: Sequence[tuple[Plan, list[int]]], memory: MemoryBudget) -> int:
    """How many calls run at once: one for each core of a CPU, as far as memory goes; one on a GPU."""
    if memory.platform != "cpu" or not parts:
        return 1
    each = max(sum(needed_bytes(plan.call.program, plan.call.layout).values()) for plan, _ in parts)
    fits = max(1, (memory.planned or 2**30) // each)
    return min(os.cpu_count() or 1, fits, len(parts))


def _train(plan: Plan, jobs: Sequence[Job], report: Report, check: Callable[[], None]) -> list[Trial]:
    """The trials of one batch. `check` raises if the work is to stop."""
    began = time.perf_counter()
    call = plan.call
    with numerics(call.precision, call.place):
        with _compiling_alone(plan):
            begun = _begin_in_one_call(plan, jobs) if plan.begin else _begin_in_parts(plan, jobs)
            first = _measure(plan, begun.tasks, begun.trainings, begun.test, begun.fresh)
            trainings = _advance(plan, begun.tasks, begun.trainings, 1)
        last: dict[int, tuple[Training, Any, Any]] = {}
        begun = begun._replace(trainings=trainings)
        for row, training, measured, rounded in _until_settled(plan, jobs, begun, report, check):
            last[row] = training, measured, rounded
    seconds = (time.perf_counter() - began) / len(jobs)
    result, measured_first = jax.device_get((begun.result, first))
    trials = []
    for row, (spec, seed) in enumerate(jobs):
        training, measured, rounded = last[row]
        steps = read_steps(spec, _row(result.measurements, row))
        steps.append(_named(spec, 0, _row(measured_first, row)))
        steps.append(_named(spec, int(training.taken), measured))
        if spec.bits:
            steps.append(make_step(spec, ROUNDED, rounded[0], float(rounded[1])))
        finite, settled = bool(result.finite[row]), bool(training.settled)
        trials.append(make_trial((spec, seed), steps, finite, seconds, call.precision, call.place, settled=settled))
        report(row, 1.0)
    return trials


def _named(spec: Retrieval, taken: int, measured: tuple[Measurement, Any]) -> Step:
    measurement, loss = measured
    return make_step(spec, f"{spec.then} {taken}", measurement, float(loss))


def _row(rows: Any, row: int) -> Any:
    return jax.tree.map(lambda part: part[row], rows)


def _until_settled(
    plan: Plan, jobs: Sequence[Job], begun: Begun, report: Report, check: Callable[[], None]
) -> Iterator[tuple[int, Training, tuple[Measurement, Any], tuple[Measurement, Any]]]:
    """Rows with their last state and measurement, as they settle or run out of steps.

    The second measurement is of the rounded weights, if the weights are to be rounded.
    """
    tasks, trainings, test, fresh, _ = begun
    # Rows beyond the jobs are padding, and are never asked for.
    rows = list(range(len(jobs)))
    steps = FIRST_STEPS
    while rows:
        check()
        clock = time.perf_counter()
        trainings = _advance(plan, tasks, trainings, steps)
        small = jax.device_get(trainings._replace(state=None))
        seconds = time.perf_counter() - clock
        steps = max(1, min(int(steps * min(4.0, SECONDS_IN_A_CALL / seconds)), 2**30))
        going = np.asarray(under_way(small))
        for at, row in enumerate(rows):
            report(row, float(small.taken[at]) / jobs[row][0].steps)
        left = [at for at in range(len(rows)) if going[at]]
        fewer = min(len(going), max(LEAST_ROWS, round_up(max(1, len(left)), 8)))
        if left and 2 * fewer > len(going):
            continue
        measured = jax.device_get(_measure(plan, tasks, trainings, test, fresh))
        rounded = measured
        if plan.further.bits:
            end = _rounded(plan.further.bits, trainings)
            rounded = jax.device_get(_measure(plan, tasks, end, test, fresh))
        for at, row in enumerate(rows):
            if not going[at]:
                yield row, _row(small, at), _row(measured, at), _row(rounded, at)
        rows = [rows[at] for at in left]
        if left:
            keep = jnp.asarray([*left, *left[-1:] * (fewer - len(left))])
            tasks, trainings, test, fresh = jax.tree.map(
                lambda part, keep=keep: part[keep], (tasks, trainings, test, fresh)
            )


def _advance(plan: Plan, tasks: Task, trainings: Training, steps: int) -> Training:
    program, layout = plan.call.program, plan.training_layout
    most = jnp.max(tasks.samples)
    return jax.block_until_ready(
        advance(program, layout, plan.further, tasks, trainings, most, jnp.asarray(steps, jnp.int32))
    )


@partial(jax.jit, static_argnames="bits")
def _rounded(bits: int, trainings: Training) -> Training:
    """The trainings with every matrix of every row rounded."""
    parameters = round_weights(trainings.state.parameters, bits)
    return trainings._replace(state=trainings.state._replace(parameters=parameters))


def _measure(plan: Plan, tasks: Task, trainings: Training, test: Source, fresh: jax.Array) -> Any:
    """The measurement of every training as it stands, and its loss."""
    layouts = plan.call.layout, plan.training_layout
    return _measured(plan.call.program, *layouts, tasks, trainings.state.parameters, test, fresh)


@partial(jax.jit, static_argnames=("program", "layout", "training_layout"))
def _measured(
    program: Retrieval,
    layout: Layout,
    training_layout: Layout,
    tasks: Task,
    parameters: Parameters,
    test: Source,
    fresh: jax.Array,
) -> tuple[Measurement, jax.Array]:
    most, most_fresh = jnp.max(tasks.samples), jnp.max(fresh)

    def measure_row(task: Task, parameters: Parameters, test: Source, own: jax.Array) -> tuple[Measurement, jax.Array]:
        w = parameters.key_query @ task.frozen.query
        count = Count(own, most_fresh)
        measurement = measure_softmax(program, layout, task.frozen, test, parameters.value, w, count)
        loss, _ = full_batch.loss_and_gradient(
            program, training_layout, task.frozen, task.source, parameters, task.samples, most
        )
        return measurement, loss

    return over_rows(measure_row, tasks, parameters, test, fresh)


def _begin_in_one_call(plan: Plan, jobs: Sequence[Job]) -> Begun:
    call = plan.call
    filled = [*jobs, *[jobs[-1]] * (call.size - len(jobs))]
    bounds = Bounds.of([spec for spec, _ in filled])
    # Rows that pad the batch have no samples, and no steps to take.
    live = jnp.arange(call.size) < len(jobs)
    bounds = bounds._replace(most=jnp.where(live, bounds.most, 0))
    return _begin(call.program, call.layout, call.law, plan.further, bounds, *arguments_of(call, jobs))


@partial(jax.jit, static_argnames=("program", "layout", "law", "further"))
def _begin(
    program: Retrieval,
    layout: Layout,
    law: str,
    further: Further,
    bounds: Bounds,
    streams: dict[str, jax.Array],
    tables: jax.Array | None,
    dims: jax.Array,
    samples: Count,
    fresh: Count,
    rates: Rates,
) -> Begun:
    def begin_row(streams: Any, table: Any, dim: Any, own: Any, tests: Any, rates: Rates, bounds: Bounds) -> Begun:
        frozen = draw_frozen(program, law, streams, dim if pads(law) else None)
        train, test = (Source(streams[name], frozen.permutation, table) for name in ("train", "test"))
        learned = three_steps(program, layout, frozen, train, Count(own, samples.most), rates)
        measurements = measure_steps(program, layout, frozen, test, learned, rates, Count(tests, fresh.most))
        state = full_batch.begin(program, further, frozen, learned, rates, table)
        return Begun(
            Task(frozen, further.sees(train, streams["noise"], own), own, bounds),
            first_training(state, bounds.most),
            test,
            tests,
            Result(measurements, jnp.all(jnp.isfinite(learned.V2))),
        )

    return over_rows(begin_row, streams, tables, dims, samples.samples, fresh.samples, rates, bounds)


_measure_steps = jax.jit(measure_steps, static_argnames=("program", "layout"))


def _begin_in_parts(plan: Plan, jobs: Sequence[Job]) -> Begun:
    """The same for one trial with a user's own matrix, or whose three steps are long."""
    ((spec, seed),), call = jobs, plan.call
    streams = random.streams(spec, seed)
    frozen = make_frozen(spec, streams)
    train, test = (Source.of(spec, streams[name], frozen.permutation) for name in ("train", "test"))
    learned = train_three_steps(spec, call.layout, frozen, train)
    fresh = Count.of(spec.test_samples)
    measurements = _measure_steps(call.program, call.layout, frozen, test, learned, Rates.of(spec), fresh)
    state = full_batch.start(spec, frozen, learned)
    bounds = _row(Bounds.of([spec]), 0)
    samples = jnp.uint32(spec.samples)
    begun = Begun(
        Task(frozen, plan.further.sees(train, streams["noise"], samples), samples, bounds),
        first_training(state, bounds.most),
        test,
        fresh.samples,
        Result(measurements, jnp.all(jnp.isfinite(learned.V2))),
    )
    return jax.tree.map(lambda part: part[None], begun)


_compiled: set[Any] = set()
_compiling: dict[Any, threading.Lock] = {}


class _compiling_alone:  # noqa: N801 - used like a function
    """The first training of its programs compiles them; others wait for that, instead of compiling them too."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.lock = _compiling.setdefault(plan, threading.Lock())

    def __enter__(self) -> None:
        self.held = self.plan not in _compiled
        if self.held:
            self.lock.acquire()

    def __exit__(self, *error: object) -> None:
        if self.held:
            _compiled.add(self.plan)
            self.lock.release()
