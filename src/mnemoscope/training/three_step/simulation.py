"""One spec and one seed in, one record out.

    spec, seed -> streams -> frozen vectors -> three steps [-> more training] -> record

A short trial is one compiled call (`call`); a long one goes through the same functions in parts.
The model's formulas stand in `models.retrieval`, those of the steps in `algorithm` and, as computed, in
`by_token` and `by_sample`.
"""

import math
import time
from collections.abc import Iterator

import jax
import jax.numpy as jnp

from mnemoscope.engine import random
from mnemoscope.engine.device import Place, Precision, find_device, numerics
from mnemoscope.engine.interrupts import stop_if_asked
from mnemoscope.engine.layout import Layout
from mnemoscope.engine.memory_budget import MemoryBudget, plan_memory
from mnemoscope.engine.record import Job, Status, Step, Trial
from mnemoscope.models.frozen import make_frozen
from mnemoscope.models.retrieval import Frozen
from mnemoscope.spec import Retrieval
from mnemoscope.spec.validators import Device
from mnemoscope.training import full_batch
from mnemoscope.training.three_step import algorithm
from mnemoscope.training.three_step.algorithm import Rates, ThreeSteps, train_three_steps
from mnemoscope.training.three_step.call import Seen, call_for, run_call
from mnemoscope.training.three_step.evaluation import Measurement, look, measure_steps
from mnemoscope.training.three_step.streaming import Count, Progress, Source

# Measurements taken during training that goes on after the three steps.
CHECKPOINTS = 10

_look = jax.jit(look, static_argnames=("program", "layout", "attend"))
_measure_steps = jax.jit(measure_steps, static_argnames=("program", "layout"))


def simulate(
    spec: Retrieval,
    seed: int = 0,
    *,
    precision: Precision = "float32",
    device: Device = "auto",
    budget: int | None = None,
    progress: Progress | None = None,
) -> Trial:
    """Train and test the model of `spec` with the random numbers of `seed`.

    `budget` is the memory to keep within, in bytes; without one, about half of what is free.
    `progress`, if given, is told now and then what share of one pass over the samples was done;
    `passes(spec)` of them are made in all.
    """
    began = time.perf_counter()
    place = find_device(device)
    memory = MemoryBudget.of(place, budget)
    call = call_for(spec, precision, memory, place)
    if call is not None:
        (seen,) = run_call(call, [(spec, seed)])
        if progress is not None:
            progress(passes(spec))
        return read_seen((spec, seed), seen, time.perf_counter() - began, precision, place)
    with numerics(precision, place):
        layout = plan_memory(spec, precision, memory)
        steps, finite = _in_parts(spec, seed, layout, progress)
    return _trial((spec, seed), steps, finite, time.perf_counter() - began, precision, place)


def _in_parts(spec: Retrieval, seed: int, layout: Layout, progress: Progress | None) -> tuple[list[Step], bool]:
    """A trial of more than one compiled call, which tells of its progress and can be stopped."""
    streams = random.streams(spec, seed)
    frozen = make_frozen(spec, streams)
    train = Source(streams["train"], frozen.permutation)
    test = Source(streams["test"], frozen.permutation)
    learned = train_three_steps(spec, layout, frozen, train, progress)
    fresh = Count.of(spec.test_samples)
    looks = _measure_steps(spec.program(), layout, frozen, test, learned, Rates.of(spec), fresh)
    steps = read_steps(spec, looks)
    if spec.then != "none":
        steps += _train_on(spec, layout, frozen, train, test, learned, progress)
    return steps, bool(jnp.all(jnp.isfinite(learned.V2)))


def read_seen(job: Job, seen: Seen, seconds: float, precision: Precision, place: Place) -> Trial:
    """The record of what a compiled call saw."""
    return _trial(job, read_steps(job[0], seen.looks), bool(seen.finite), seconds, precision, place)


def _trial(job: Job, steps: list[Step], finite: bool, seconds: float, precision: Precision, place: Place) -> Trial:
    spec, seed = job
    status, message = judge(spec, steps, finite)
    return Trial(
        spec=spec,
        seed=seed,
        status=status,
        message=message,
        history=tuple(steps),
        seconds=seconds,
        precision=precision,
        device=place.device_kind,
    )


def passes(spec: Retrieval) -> int:
    """How often the training samples are gone through, for a progress bar."""
    return algorithm.passes(spec) + spec.steps


def _train_on(
    spec: Retrieval,
    layout: Layout,
    frozen: Frozen,
    train: Source,
    test: Source,
    learned: ThreeSteps,
    progress: Progress | None,
) -> Iterator[Step]:
    """Further training, looked at about CHECKPOINTS times, first where it starts from."""
    state = full_batch.start(spec, frozen, learned)
    every = -(-spec.steps // CHECKPOINTS)
    for taken in range(spec.steps + 1):
        # The loss belongs to the parameters before the step, so the last look needs one step more.
        after, info = full_batch.step(
            spec.program(),
            layout,
            spec.then,
            frozen,
            train,
            state,
            jnp.uint32(spec.samples),
            jnp.asarray(spec.learning_rate, frozen.Z.dtype),
        )
        if taken % every == 0 or taken == spec.steps:
            w = state.parameters.key_query @ frozen.query
            name, loss = f"{spec.then} {taken}", float(info.loss)
            fresh = Count.of(spec.test_samples)
            seen = _look(spec.program(), layout, frozen, test, "softmax", state.parameters.value, w, fresh)
            yield _step(spec, name, seen, loss)
        jax.block_until_ready(after)
        stop_if_asked()
        if progress is not None and taken < spec.steps:
            progress(1.0)
        state = after


def judge(spec: Retrieval, steps: list[Step], finite: bool) -> tuple[Status, str]:
    """Whether these are results: numbers that stayed numbers, and attention that moved."""
    for step in steps:
        if not all(math.isfinite(value) for value in (step.loss, step.signal, step.std) if value is not None):
            return "diverged", f"numbers overflowed by {step.name}"
    if not finite:
        return "diverged", "numbers overflowed by V2"
    end = steps[-1]
    if spec.length > 1 and end.signal == 0 and end.std == 0:
        return "diverged", "attention did not move: the step sizes are too small for float32"
    return "ok", ""


def read_steps(spec: Retrieval, looks: dict[str, Measurement]) -> list[Step]:
    """Measurements as lines of a record, from before training on."""
    chance = 1 / spec.vocab
    before = [Step("start", chance, 1 / spec.length, chance)] if "V1" in looks else []
    # In the order of training: a dictionary that went through JAX comes back sorted by name.
    return before + [_step(spec, name, looks[name]) for name in ("V1", "W1", "V2") if name in looks]


def _step(spec: Retrieval, name: str, seen: Measurement, loss: float | None = None) -> Step:
    answered, attended, both, tied = (int(count) for count in seen.hits)
    samples = int(seen.samples)
    scored = name != "V1" and spec.attention == "learned"
    return Step(
        name=name,
        accuracy=answered / samples,
        attention_accuracy=1 / spec.length if name == "V1" else attended / samples,
        map_accuracy=float(seen.map_accuracy),
        recall=both / attended if attended else None,
        signal=float(seen.margin.signal) if scored else None,
        std=float(seen.margin.std) if scored else None,
        loss=loss,
        tied=tied,
    )
