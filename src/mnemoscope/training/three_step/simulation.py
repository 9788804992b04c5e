"""One spec and one seed in, one record out.

    spec, seed -> streams -> frozen vectors -> three steps [-> more training] -> record

A short trial is one compiled call (`call`); a long one runs the same functions in parts. The model's
formulas are in `models.retrieval`, those of the steps in `algorithm` and, in the form that is computed,
in `by_token`, `by_sample` and `by_winner`.
"""

import time
from collections.abc import Iterator

import jax
import jax.numpy as jnp

from mnemoscope.engine import random
from mnemoscope.engine.device import Precision, find_device, numerics
from mnemoscope.engine.interrupts import stop_if_asked
from mnemoscope.engine.layout import Layout
from mnemoscope.engine.memory_budget import MemoryBudget, plan_memory
from mnemoscope.engine.record import Step, Trial
from mnemoscope.models.frozen import make_frozen
from mnemoscope.models.quantisation import round_weights
from mnemoscope.models.retrieval import Frozen, Parameters
from mnemoscope.spec import Retrieval
from mnemoscope.spec.validators import Device
from mnemoscope.training import full_batch
from mnemoscope.training.three_step import algorithm
from mnemoscope.training.three_step.algorithm import Rates, ThreeSteps, train_three_steps
from mnemoscope.training.three_step.call import call_for, run_call
from mnemoscope.training.three_step.evaluation import ROUNDED, Measurement, measure_softmax, measure_steps
from mnemoscope.training.three_step.records import make_step, make_trial, read_steps, trial_of
from mnemoscope.training.three_step.settling import train_one
from mnemoscope.training.three_step.streaming import Count, Progress, Source

# Measurements during training beyond the three steps.
CHECKPOINTS = 10

_measure_softmax = jax.jit(measure_softmax, static_argnames=("program", "layout"))
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

    `budget` is the memory to use, in bytes; by default, about half of what is free. `progress` is
    called from time to time with the share of one pass over the samples that was completed since
    the last call. There are `passes(spec)` passes.
    """
    began = time.perf_counter()
    place = find_device(device)
    memory = MemoryBudget.of(place, budget)
    call = call_for(spec, precision, memory, place)
    if spec.settles:
        told = 0.0

        def report(share: float) -> None:
            nonlocal told
            if progress is not None:
                progress((share - told) * passes(spec))
            told = share

        return train_one((spec, seed), precision, place, memory, report)
    if call is not None:
        (result,) = run_call(call, [(spec, seed)])
        if progress is not None:
            progress(passes(spec))
        return trial_of((spec, seed), result, time.perf_counter() - began, precision, place)
    with numerics(precision, place):
        layout = plan_memory(spec, precision, memory)
        steps, finite = _in_parts(spec, seed, layout, progress)
    return make_trial((spec, seed), steps, finite, time.perf_counter() - began, precision, place)


def _in_parts(spec: Retrieval, seed: int, layout: Layout, progress: Progress | None) -> tuple[list[Step], bool]:
    """Run a trial in several compiled calls, with progress reports and chances to stop."""
    streams = random.streams(spec, seed)
    frozen = make_frozen(spec, streams)
    train = Source.of(spec, streams["train"], frozen.permutation)
    test = Source.of(spec, streams["test"], frozen.permutation)
    learned = train_three_steps(spec, layout, frozen, train, progress)
    count = Count.of(spec.test_samples)
    measurements = _measure_steps(spec.program(), layout, frozen, test, learned, Rates.of(spec), count)
    steps = read_steps(spec, measurements)
    if spec.then != "none":
        further = full_batch.Further.of(spec)
        seen = further.sees(train, streams["noise"], jnp.uint32(spec.samples))
        steps += _train_on(spec, layout, further, frozen, seen, test, learned, progress)
    return steps, bool(jnp.all(jnp.isfinite(learned.V2)))


def passes(spec: Retrieval) -> int:
    """The number of passes over the training samples, for a progress bar."""
    return algorithm.passes(spec) + spec.steps


def _train_on(
    spec: Retrieval,
    layout: Layout,
    further: full_batch.Further,
    frozen: Frozen,
    train: Source,
    test: Source,
    learned: ThreeSteps,
    progress: Progress | None,
) -> Iterator[Step]:
    """Train beyond the three steps, and measure about CHECKPOINTS times, from the start on."""
    state = full_batch.start(spec, frozen, learned)
    every = -(-spec.steps // CHECKPOINTS)
    for taken in range(spec.steps + 1):
        # The loss belongs to the parameters before the step, so the last measurement needs one more.
        samples, lr = jnp.uint32(spec.samples), jnp.asarray(spec.learning_rate, frozen.Z.dtype)
        count = jnp.uint32(taken)
        after, info = full_batch.step(spec.program(), layout, further, frozen, train, state, samples, lr, count)
        if taken % every == 0 or taken == spec.steps:
            measurement = _measured(spec, layout, frozen, test, state.parameters)
            yield make_step(spec, f"{spec.then} {taken}", measurement, float(info.loss))
            if spec.bits and taken == spec.steps:
                rounded = round_weights(state.parameters, spec.bits)
                yield make_step(spec, ROUNDED, _measured(spec, layout, frozen, test, rounded))
        jax.block_until_ready(after)
        stop_if_asked()
        if progress is not None and taken < spec.steps:
            progress(1.0)
        state = after


def _measured(spec: Retrieval, layout: Layout, frozen: Frozen, test: Source, parameters: Parameters) -> Measurement:
    """The model with these parameters, on fresh sequences."""
    count = Count.of(spec.test_samples)
    w = parameters.key_query @ frozen.query
    return _measure_softmax(spec.program(), layout, frozen, test, parameters.value, w, count)
