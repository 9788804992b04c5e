"""The compiled call: the whole of one trial, or of several side by side.

Trials that differ in seed, N, d and step sizes share a program: it takes those as arguments, with
d rounded up to a bucket and the spare columns of the embeddings filled with zeros, which changes
no inner product.

On a CPU a call is of one trial: side by side they would not be done sooner. So a trial is computed
by the same machine code whether it is asked for alone, with others, or by a worker on a cluster,
and its numbers are the same to the bit. A GPU is filled with many, which changes the order of sums.
"""

import math
import threading
from collections.abc import Sequence
from functools import lru_cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from mnemoscope.engine import random
from mnemoscope.engine.device import Place, Precision, numerics
from mnemoscope.engine.layout import Layout, choose_layout, needed_bytes
from mnemoscope.engine.memory_budget import MemoryBudget, plan_memory
from mnemoscope.engine.record import Job
from mnemoscope.models.retrieval import draw_frozen
from mnemoscope.spec import Retrieval
from mnemoscope.training.side_by_side import over_rows
from mnemoscope.training.three_step.algorithm import Rates, three_steps, train_in_one_call
from mnemoscope.training.three_step.evaluation import Measurement, measure_steps
from mnemoscope.training.three_step.streaming import Count, Source

_compiling: dict[Any, threading.Lock] = {}

# Where products of tables (V^2 d) are larger than this, spare columns cost more than a compilation.
LARGE = 2**34


class Call(NamedTuple):
    """What a compiled call is for: everything that its machine code depends on."""

    program: Retrieval
    layout: Layout
    law: str
    size: int
    precision: Precision
    place: Place


class Seen(NamedTuple):
    """What a call tells of a trial: the model after each step, and whether V2 is of numbers."""

    looks: dict[str, Measurement]
    finite: jax.Array


def bucket(spec: Retrieval) -> Retrieval:
    """The program that serves this spec: d goes up to the next of 16, 32, 64, ...

    Orthonormal embeddings keep their d, since a frame cannot be padded, as do large tables.
    """
    program = spec.program()
    dim = max(16, 2 ** math.ceil(math.log2(spec.dim)))
    if spec.embedding == "orthonormal" or spec.vocab**2 * dim > LARGE:
        return program
    return program.replace(dim=dim)


def call_for(spec: Retrieval, precision: Precision, memory: MemoryBudget, place: Place) -> Call | None:
    """The call of one trial that serves this spec; None where the trial is more than one call.

    A trial that does not fit in memory is refused.
    """
    exact = plan_memory(spec, precision, memory)
    if spec.then != "none" or spec.from_file:
        return None
    program = bucket(spec)
    layout = choose_layout(program, precision, memory.platform, memory.planned)._replace(orders=exact.orders)
    needed = sum(needed_bytes(program, layout, precision).values())
    if any(most is not None and needed > most for most in (memory.free, memory.budget)):
        program, layout = spec.program(), exact
    if not train_in_one_call(spec, layout):
        return None
    return Call(program, layout, spec.embedding, 1, precision, place)


def run_call(call: Call, jobs: Sequence[Job]) -> list[Seen]:
    """What is seen of each job, in one call; there may be fewer jobs than the call is for."""
    program = compiled(call, jobs[0])
    with numerics(call.precision, call.place):
        seen = jax.device_get(program(*_arguments(call, jobs)))
    return [jax.tree.map(lambda part, at=at: part[at], seen) for at in range(len(jobs))]


def compiled(call: Call, example: Job) -> Any:
    """The call's program, compiled if it was not yet. Any job of its kind will do as example."""
    spec, _ = example
    # The example only shows shapes: one and the same for all jobs of a call.
    shown = call.program.replace(embedding=spec.embedding), 0
    with _compiling.setdefault((call, shown), threading.Lock()):  # the second to ask waits
        return _compile_once(call, shown)


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


def forget_calls() -> None:
    """Let go of compiled calls."""
    _compile_once.cache_clear()


def _arguments(call: Call, jobs: Sequence[Job]) -> tuple[Any, ...]:
    """Streams, dimensions, counts and rates of a batch, filled up to its size.

    A short batch is filled with trials of no samples, so that its shape is compiled already.
    """
    filled = [*jobs, *[jobs[-1]] * (call.size - len(jobs))]
    streams = {
        name: jnp.asarray(np.stack([random.stream(spec, seed, name) for spec, seed in filled]))
        for name in random.STREAMS
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


@partial(jax.jit, static_argnames=("program", "layout", "law"))
def _trials(
    program: Retrieval,
    layout: Layout,
    law: str,
    streams: dict[str, jax.Array],
    dims: jax.Array,
    samples: Count,
    fresh: Count,
    rates: Rates,
) -> Seen:
    def run_row(streams: dict[str, jax.Array], dim: jax.Array, own: jax.Array, tests: jax.Array, rates: Rates) -> Seen:
        exact = None if law == "orthonormal" else dim
        frozen = draw_frozen(program, law, streams, exact)
        train = Source(streams["train"], frozen.permutation)
        test = Source(streams["test"], frozen.permutation)
        # Every trial counts its own samples; the loop over chunks, and its end, is shared.
        learned = three_steps(program, layout, frozen, train, Count(own, samples.most), rates)
        count = Count(tests, fresh.most)
        looks = measure_steps(program, layout, frozen, test, learned, rates, count)
        return Seen(looks, jnp.all(jnp.isfinite(learned.V2)))

    return over_rows(run_row, streams, dims, samples.samples, fresh.samples, rates)
