"""Many trials in few compiled calls, for phase diagrams and searches.

Trials that differ in seed, N, d and step sizes share a program: it takes those as arguments, with
d rounded up to a bucket and the spare columns of the embeddings filled with zeros, which changes
no inner product. A batch of them is one call. Its trials have about the same N, since the loop
over samples runs to the largest. A trial's result is the same to rounding as when it runs alone.
"""

import math
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from mnemoscope import keys
from mnemoscope.evaluation import Look, look_at_steps
from mnemoscope.fields import Device
from mnemoscope.layout import Layout, needed_bytes
from mnemoscope.models.transformer import draw_frozen
from mnemoscope.numerics import (
    Place,
    Precision,
    find_device,
    forget_programs,
    numerics,
    programs_crowd,
)
from mnemoscope.record import Job, Trial
from mnemoscope.room import Room, plan_memory
from mnemoscope.simulation import judge, read_steps, simulate
from mnemoscope.spec import Retrieval
from mnemoscope.stopping import handing_on, stop_if_asked
from mnemoscope.training.streaming import Count, Source
from mnemoscope.training.three_step import Rates, three_steps, train_in_one_call

Message = Callable[[str], None]
# Threads run their batches one after the other, and wait for a program that another compiles.
_turn = threading.Lock()
_compiling: dict[Any, threading.Lock] = {}

# Trials to a call, at most: more only wait for each other.
MOST_AT_ONCE = {"cpu": 4, "gpu": 256}
# Where tables are smaller than this (V^2 d), a short batch is filled up rather than compiled anew:
# to at least so many.
CHEAP_TO_FILL = {"cpu": 2**30, "gpu": 2**34}
FILLED = {"cpu": MOST_AT_ONCE["cpu"], "gpu": 8}


def simulate_many(
    jobs: Sequence[Job],
    *,
    precision: Precision = "float32",
    device: Device = "auto",
    budget: int | None = None,
    say: Message | None = None,
) -> list[Trial]:
    """One trial for each (spec, seed), in the order asked for. `budget` is in bytes."""
    if programs_crowd():
        _compile_once.cache_clear()
        forget_programs()
    place = find_device(device)
    done: dict[int, Trial] = {}
    room = Room.of(place, budget)
    groups: dict[tuple[Retrieval, Layout, str], list[int]] = {}
    for number, (spec, seed) in enumerate(jobs):
        program = bucket(spec)
        layout = plan_memory(program, precision, room)
        if spec.then != "none" or spec.from_file or not train_in_one_call(spec, layout):
            with _turn, handing_on(done):
                done[number] = simulate(
                    spec, seed, precision=precision, device=device, budget=budget
                )
        else:
            groups.setdefault((program, layout, spec.embedding), []).append(number)
    for numbers in groups.values():
        numbers.sort(key=lambda number: jobs[number][0].samples)
    plans = [
        (Call(program, layout, law, size, precision, place), numbers)
        for (program, layout, law), numbers in groups.items()
        for size in [batch_size(program, layout, len(numbers), precision, room)]
    ]
    # Programs of different shape are compiled side by side, while the first ones run. What runs may
    # take all of the memory that was planned with, so that calls from several threads take turns.
    with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        ready = [pool.submit(compiled, call, jobs[numbers[0]]) for call, numbers in plans]
        for (call, numbers), program in zip(plans, ready, strict=True):
            program.result()
            with _turn, handing_on(done):
                done.update(_run_group(call, jobs, numbers, say))
    return [done[number] for number in range(len(jobs))]


def _run_group(
    call: "Call", jobs: Sequence[Job], numbers: list[int], say: Message | None
) -> Iterator[tuple[int, Trial]]:
    """The jobs of one program, batch by batch; out of memory, by half as many at a time."""
    while numbers:
        stop_if_asked()
        part = numbers[: call.size]
        try:
            trials = _run_batch(call, [jobs[number] for number in part])
        except jax.errors.JaxRuntimeError as error:
            if call.size == 1 or "RESOURCE_EXHAUSTED" not in str(error):
                raise
            call = call._replace(size=call.size // 2)
            if say is not None:
                say(f"out of memory: going on with {call.size} trials at a time")
            continue
        yield from zip(part, trials, strict=True)
        numbers = numbers[call.size :]


class Call(NamedTuple):
    """What a compiled call is for: everything that its machine code depends on."""

    program: Retrieval
    layout: Layout
    law: str
    size: int
    precision: Precision
    place: Place


@lru_cache(maxsize=256)
def _compile_once(call: Call, example: Job) -> Any:
    with numerics(call.precision, call.place):
        arguments = _arguments(call, [example])
        lowered = _trials.lower(call.program, call.layout, call.law, *arguments)
        # Trying out matrix kernels on the GPU takes most of its compile time and gains little on
        # matrices this small.
        options: Any = {}
        if call.place.platform != "cpu":
            options["xla_gpu_autotune_level"] = "0"
        return lowered.compile(compiler_options=options)


def compiled(call: Call, example: Job) -> Any:
    """The call's program, compiled if it was not yet. Any job of its kind will do as example."""
    spec, _ = example
    # The example only shows shapes: one and the same for all jobs of a call.
    shown = call.program.replace(embedding=spec.embedding), 0
    with _compiling.setdefault((call, shown), threading.Lock()):  # the second to ask waits
        return _compile_once(call, shown)


def bucket(spec: Retrieval) -> Retrieval:
    """The program that serves this spec: d goes up to the next of 16, 32, 64, ...

    Orthonormal embeddings keep their d, since a frame cannot be padded.
    """
    program = spec.program()
    if spec.embedding == "orthonormal":
        return program
    return program.replace(dim=max(16, 2 ** math.ceil(math.log2(spec.dim))))


def batch_size(
    program: Retrieval, layout: Layout, jobs: int, precision: Precision, room: Room
) -> int:
    """Trials to a call: a power of two, as many as the memory budget holds."""
    each = sum(needed_bytes(program, layout, precision).values())
    planned = 2**30 if room.planned is None else room.planned
    fits = max(1, min(MOST_AT_ONCE[room.platform], planned // each))
    cheap = program.vocab**2 * program.dim <= CHEAP_TO_FILL[room.platform]
    least = FILLED[room.platform] if cheap else 1
    return min(2 ** int(math.log2(fits)), max(least, 2 ** math.ceil(math.log2(jobs))))


def _arguments(call: Call, jobs: Sequence[Job]) -> tuple[Any, ...]:
    """Streams, dimensions, counts and rates of a batch, filled up to its size.

    A short batch is filled with trials of no samples, so that its shape is compiled already.
    """
    filled = [*jobs, *[jobs[-1]] * (call.size - len(jobs))]
    streams = {
        name: jnp.asarray(np.stack([keys.stream(spec, seed, name) for spec, seed in filled]))
        for name in keys.STREAMS
    }
    alive = np.arange(call.size) < len(jobs)
    samples = np.where(alive, [spec.samples for spec, _ in filled], 0)
    fresh = np.where(alive, [spec.test_samples for spec, _ in filled], 0)
    rates = [Rates.of(spec) for spec, _ in filled]
    return (
        streams,
        jnp.asarray([spec.dim for spec, _ in filled], jnp.uint32),
        Count(jnp.asarray(samples, jnp.uint32), jnp.uint32(samples.max())),
        Count(jnp.asarray(fresh, jnp.uint32), jnp.uint32(fresh.max())),
        Rates(*(jnp.asarray(column, float) for column in zip(*rates, strict=True))),
    )


def _run_batch(call: Call, jobs: Sequence[Job]) -> list[Trial]:
    began = time.perf_counter()
    program = compiled(call, jobs[0])
    with numerics(call.precision, call.place):
        looks = jax.device_get(program(*_arguments(call, jobs)))
    seconds = (time.perf_counter() - began) / len(jobs)
    trials = []
    for at, (spec, seed) in enumerate(jobs):
        own = jax.tree.map(lambda part, at=at: part[at], looks)
        steps = read_steps(spec, own)
        status, message = judge(spec, steps, finite=True)
        trials.append(
            Trial(
                spec=spec,
                seed=seed,
                status=status,
                message=message,
                steps=tuple(steps),
                seconds=seconds,
                precision=call.precision,
                device=call.place.device_kind,
            )
        )
    return trials


@partial(jax.jit, static_argnames=("program", "layout", "law"))
def _trials(
    program: Retrieval, layout: Layout, law: str, streams: dict[str, jax.Array],
    dims: jax.Array, samples: Count, fresh: Count, rates: Rates,
) -> dict[str, Look]:  # fmt: skip
    def one(
        streams: dict[str, jax.Array], dim: jax.Array, samples: Count, fresh: Count, rates: Rates
    ) -> dict[str, Look]:
        exact = None if law == "orthonormal" else dim
        frozen = draw_frozen(program, law, streams, exact)
        train = Source(streams["train"], frozen.permutation)
        test = Source(streams["test"], frozen.permutation)
        learned = three_steps(program, layout, frozen, train, samples, rates)
        return look_at_steps(program, layout, frozen, test, learned, rates, fresh)

    def split(
        streams: dict[str, jax.Array], dim: jax.Array, own: jax.Array, tests: jax.Array,
        rates: Rates,
    ) -> dict[str, Look]:  # fmt: skip
        # Every trial counts its own samples; the loop over chunks, and its end, is shared.
        count, test_count = Count(own, samples.most), Count(tests, fresh.most)
        return one(streams, dim, count, test_count, rates)

    return jax.vmap(split)(streams, dims, samples.samples, fresh.samples, rates)
