"""The compiled call: one whole trial, or several side by side.

Trials that differ in seed, N, d, step sizes and token probabilities share a program, which takes
these as arguments. (Uniform tokens need no table, and have programs of their own.) d is rounded up to
a bucket, and zeros fill the spare columns of the embeddings, which changes no inner product.

On a CPU a call runs one trial, since several at once would be no faster. The same machine code then
computes a trial alone, among others, or on a cluster, and its numbers are equal to the bit. On a GPU a
call runs many, which changes the order of sums.
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
from mnemoscope.models.embeddings import pads
from mnemoscope.models.retrieval import draw_frozen
from mnemoscope.spec import Retrieval
from mnemoscope.tasks.alias import alias_table
from mnemoscope.training.side_by_side import over_rows
from mnemoscope.training.three_step.algorithm import Rates, three_steps, train_in_one_call
from mnemoscope.training.three_step.evaluation import Measurement, measure_steps
from mnemoscope.training.three_step.streaming import Count, Source

_compiling: dict[Any, threading.Lock] = {}

# Above this size of a product of tables (V^2 d), spare columns cost more than a compilation.
LARGE = 2**34
# Up to this size a GPU has the product of tables in microseconds.
SPARE_ON_GPU = 2**27


class Call(NamedTuple):
    """Everything that the machine code of a compiled call depends on."""

    program: Retrieval
    layout: Layout
    law: str
    size: int
    precision: Precision
    place: Place


class Result(NamedTuple):
    """What a call returns for a trial: the model after each step, and whether V2 is finite.

    Inside the call these are arrays, outside plain numbers where a trial has one of them.
    """

    measurements: dict[str, Measurement]
    finite: Any


def bucket(spec: Retrieval, platform: str) -> Retrieval:
    """The program that serves this spec, with d rounded up to 16, 32, 64, ...

    On a GPU, spare columns of small tables cost less than one more program, so d is rounded up to 512 where V^2 d is
    small. Embeddings that cannot be padded, such as a frame, keep their d; so do large tables.
    """
    program = spec.program()
    by_table = spec.width == 0 and spec.eta == "limit" and spec.then == "none"
    spare = SPARE_ON_GPU // spec.vocab**2 if platform != "cpu" and by_table else 0
    least = min(512, 2 ** int(math.log2(spare))) if spare else 16
    dim = max(16, least, 2 ** math.ceil(math.log2(spec.dim)))
    if not pads(spec.embedding) or spec.vocab**2 * dim > LARGE:
        return program
    return program.replace(dim=dim)


def call_for(spec: Retrieval, precision: Precision, memory: MemoryBudget, place: Place) -> Call | None:
    """The call that runs one trial of this spec, or None if the trial takes more than one call.

    A trial that does not fit in memory is refused.
    """
    exact = plan_memory(spec, precision, memory)
    return None if spec.then != "none" else steps_call(spec, exact, precision, memory, place)


def steps_call(spec: Retrieval, exact: Layout, precision: Precision, memory: MemoryBudget, place: Place) -> Call | None:
    """The call for the three steps alone; `exact` is the layout without spare columns."""
    if spec.from_file:
        return None
    program = bucket(spec, memory.platform)
    layout = choose_layout(program, precision, memory.platform, memory.planned)._replace(
        ordered=exact.ordered, orders=exact.orders
    )
    needed = sum(needed_bytes(program, layout, precision).values())
    if any(most is not None and needed > most for most in (memory.free, memory.budget)):
        program, layout = spec.program(), exact
    if not train_in_one_call(spec, layout):
        return None
    return Call(program, layout, spec.embedding, 1, precision, place)


def run_call(call: Call, jobs: Sequence[Job]) -> list[Result]:
    """Run the jobs in one call; there may be fewer of them than the call has room for."""
    return read_results(start_call(call, jobs), jobs)


def start_call(call: Call, jobs: Sequence[Job]) -> Any:
    """Hand the jobs to the device, which may still be at work on those before."""
    program = compiled(call, jobs[0])
    with numerics(call.precision, call.place):
        return program(*arguments_of(call, jobs))


def read_results(started: Any, jobs: Sequence[Job]) -> list[Result]:
    """Wait for what `start_call` began."""
    results = jax.device_get(started)
    leaves, tree = jax.tree.flatten(results)
    rows = zip(*(leaf.tolist() if leaf.ndim == 1 else leaf for leaf in leaves), strict=True)
    return [tree.unflatten(row) for row, _ in zip(rows, jobs, strict=False)]


def compiled(call: Call, example: Job) -> Any:
    """The call's program, compiled on first use. Any of its jobs may serve as the example."""
    spec, _ = example
    # The example only gives shapes, so all jobs of a call share one.
    shared = call.program.replace(embedding=spec.embedding), 0
    with _compiling.setdefault((call, shared), threading.Lock()):  # a second caller waits
        return _compile_once(call, shared)


@lru_cache(maxsize=256)
def _compile_once(call: Call, example: Job) -> Any:
    with numerics(call.precision, call.place):
        arguments = arguments_of(call, [example])
        lowered = _trials.lower(call.program, call.layout, call.law, *arguments)
        # Autotuning takes most of the compile time on a GPU, and gains little on small matrices.
        options: Any = {} if call.place.platform == "cpu" else {"xla_gpu_autotune_level": "0"}
        return lowered.compile(compiler_options=options)


def forget_calls() -> None:
    """Drop all compiled calls."""
    _compile_once.cache_clear()


def arguments_of(call: Call, jobs: Sequence[Job]) -> tuple[Any, ...]:
    """Streams, alias tables, dimensions, counts and rates of a batch, padded to its size.

    Trials without samples pad a short batch, so that it has the compiled shape.
    """
    filled = [*jobs, *[jobs[-1]] * (call.size - len(jobs))]
    # NumPy's arrays: JAX's would be made by small programs of their own, compiled one by one.
    streams = {name: np.stack([random.stream(spec, seed, name) for spec, seed in filled]) for name in random.STREAMS}
    alive = np.arange(call.size) < len(jobs)
    samples: Any = np.where(alive, [spec.samples for spec, _ in filled], 0).astype(np.uint32)
    fresh: Any = np.where(alive, [spec.test_samples for spec, _ in filled], 0).astype(np.uint32)
    rates: Any = np.array([Rates.of(spec) for spec, _ in filled], jax.dtypes.canonicalize_dtype(float))
    tables = [table for spec, _ in filled if (table := alias_table(spec.tokens, spec.vocab)) is not None]
    return (
        streams,
        np.stack(tables) if tables else None,
        np.array([spec.dim for spec, _ in filled], np.uint32),
        Count(samples, samples.max()),
        Count(fresh, fresh.max()),
        Rates(*rates.T),
    )


@partial(jax.jit, static_argnames=("program", "layout", "law"))
def _trials(
    program: Retrieval,
    layout: Layout,
    law: str,
    streams: dict[str, jax.Array],
    tables: jax.Array | None,
    dims: jax.Array,
    samples: Count,
    fresh: Count,
    rates: Rates,
) -> Result:
    def run_row(streams: Any, table: Any, dim: Any, own: Any, tests: Any, rates: Rates) -> Result:
        frozen = draw_frozen(program, law, streams, dim if pads(law) else None)
        train, test = (Source(streams[name], frozen.permutation, table) for name in ("train", "test"))
        # Every trial counts its own samples, but all share the loop over chunks, and its end.
        learned = three_steps(program, layout, frozen, train, Count(own, samples.most), rates)
        measurements = measure_steps(program, layout, frozen, test, learned, rates, Count(tests, fresh.most))
        return Result(measurements, jnp.all(jnp.isfinite(learned.V2)))

    return over_rows(run_row, streams, tables, dims, samples.samples, fresh.samples, rates)
