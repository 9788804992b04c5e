"""The passes over the samples as operations of JAX, for float32 on an NVIDIA GPU.

Each takes one trial; under `vmap` the kernels' grids go over the trials of a batch. Sums are kept where they are: what
an operation adds to is handed in and comes back. Counts are those of XLA's path to the bit, and sums the same to
rounding.
"""

import logging
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float32, Int32, UInt32

from mnemoscope.engine.layout import Layout
from mnemoscope.models.retrieval import Scores
from mnemoscope.tasks.alias import alias_table
from mnemoscope.tasks.retrieval import sample
from mnemoscope.training.three_step.cuda.calls import Frame, register
from mnemoscope.training.three_step.cuda.toolkit import CudaError, Module
from mnemoscope.training.three_step.streaming import Source, Span

log = logging.getLogger(__name__)

Carry = TypeVar("Carry")

# Blocks that a kernel has for each multiprocessor, where there is enough to do.
BLOCKS = 8
# Threads to a sample in the kernels `spread_*`, and how many counters each of them keeps.
LANES, KEPT = 8, (3, 5, 9, 17, 33)
# Words of the sums that frequent tokens have besides: 32 lanes of HOT tokens in draws.cuh.
HOT_WORDS = 32 * 32
# Samples of a label up to which its row of R is read where it is.
FEW = 32


@cache
def usable(uneven: bool = False) -> bool:
    """Whether the kernels can be compiled and give the counts that they should; says why not, once.

    Those for tokens that are not uniform are a module of their own.
    """
    if os.environ.get("MNEMOSCOPE_KERNELS") == "0":
        return False
    try:
        _register()
        # In a thread of its own: this may be asked for while a program is traced, which would take the check in.
        with ThreadPoolExecutor(1) as pool:
            pool.submit(_check, uneven).result()
    except Exception as error:  # whatever is missing or too old, XLA's own path goes on
        say_why_not(error)
        return False
    return True


def say_why_not(error: Exception) -> None:
    """One line on what keeps kernels from being used."""
    reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    log.warning("CUDA kernels cannot be used (%s): continuing without them, more slowly", reason[:160])


def by_label(
    add: Callable[["Ordered", Carry], Carry], carry: Carry, source: Source, span: Span, length: int, layout: Layout
) -> Carry:
    """add(ordered, carry) over the samples of a span, `layout.ordered` at a time.

    How often is known when the program is compiled, so that the GPU need not ask the host whether to go on.
    """

    def add_part(number: Array | int, carry: Carry) -> Carry:
        first = span.first + jnp.uint32(number) * jnp.uint32(layout.ordered)
        return add(order_by_label(source, first, span.stop, length, layout.ordered), carry)

    return add_part(0, carry) if layout.orders == 1 else lax.fori_loop(0, layout.orders, add_part, carry)


class Ordered(NamedTuple):
    """Samples first, first + 1, ... of a stream by label: label y has order[start[y]:start[y + 1]].

    `label[k]` is the label of sample first + k. `table` is the alias table of tokens, and empty where they are uniform.
    """

    key: UInt32[Array, "2"]
    table: UInt32[Array, "_"]
    order: UInt32[Array, "n"]
    start: UInt32[Array, "V+1"]
    label: UInt32[Array, "n"]
    first: UInt32[Array, ""]


def order_by_label(source: Source, first: Array, stop: Array, length: int, size: int) -> Ordered:
    """Samples first..stop-1, at most `size` of them, by label."""
    V = source.permutation.shape[0]
    shapes = [jax.ShapeDtypeStruct((length_of,), jnp.uint32) for length_of in (size, V + 1, size, V)]
    call = jax.ffi.ffi_call("mnemoscope_order", shapes, vmap_method="broadcast_all")
    table = table_of(source)
    order, start, label, _ = call(source.key, table, source.permutation, first, stop, length=np.int64(length))
    return Ordered(source.key, table, order, start, label, first)


def table_of(source: Source) -> UInt32[Array, "_"]:
    """The alias table as an array in any case."""
    return jnp.zeros(0, jnp.uint32) if source.table is None else source.table


def count_pairs(
    ordered: Ordered, pairs: Int32[Array, "V V"], labels: Int32[Array, "V"], length: int
) -> tuple[Int32[Array, "V V"], Int32[Array, "V"]]:
    """Add how often each token stands beside each label, and each label's samples."""
    call = jax.ffi.ffi_call(
        "mnemoscope_count", [like(pairs), like(labels)], vmap_method="broadcast_all", input_output_aliases={6: 0, 7: 1}
    )
    pairs, labels = call(*ordered, pairs, labels, length=np.int64(length))
    return pairs, labels


def spread_values(
    ordered: Ordered,
    R: Float32[Array, "V V"],
    R_trig: Float32[Array, "V"],
    sums: tuple[Float32[Array, "V"], Float32[Array, ""]],
    length: int,
) -> tuple[Float32[Array, "V"], Float32[Array, ""]]:
    """beta and tau of `by_token.attention_direction`, with what these samples add."""
    call = jax.ffi.ffi_call(
        "mnemoscope_spread",
        [like(part) for part in sums],
        vmap_method="broadcast_all",
        input_output_aliases={8: 0, 9: 1},
    )
    beta, tau = call(*ordered, R, R_trig, *sums, length=np.int64(length))
    return beta, tau


def count_winners(
    source: Source,
    scores: Scores,
    span: Span,
    winners: tuple[Int32[Array, "V V"], Int32[Array, "V"]],
    length: int,
    locked: bool,
) -> tuple[Int32[Array, "V V"], Int32[Array, "V"]]:
    """Add which token attention rests on, by label: a noise token, or the informative one."""
    by_rank = jnp.argsort(scores.token, stable=True)
    rank = (
        jnp.zeros_like(by_rank, jnp.int32).at[by_rank].set(lax.iota(jnp.int32, by_rank.shape[0]), unique_indices=True)
    )
    call = jax.ffi.ffi_call(
        "mnemoscope_winners", [*map(like, winners)], vmap_method="broadcast_all", input_output_aliases={9: 0, 10: 1}
    )
    ranks = (rank, by_rank.astype(jnp.uint32))
    reads = (source.key, table_of(source), source.permutation, *ranks, *scores, span.first, span.stop)
    noise, informative = call(*reads, *winners, length=np.int64(length), locked=np.int64(locked))
    return noise, informative


def like(array: Array) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(array.shape, array.dtype)


# --- what XLA calls --------------------------------------------------------------------------


@cache
def _module(uneven: bool) -> Module:
    return Module("passes.cu", UNEVEN=1) if uneven else Module("passes.cu")


def is_uneven(frame: Frame) -> bool:
    """Whether a call that reads a key and an alias table first has tokens that are not uniform."""
    return frame.inputs[1].shape[-1] > 0


@cache
def _register() -> None:
    for name, launch in (("order", _order), ("count", _count), ("spread", _spread), ("winners", _winners)):
        register(f"mnemoscope_{name}", launch)


def trial_count(shape: tuple[int, ...], own: int) -> int:
    """How many trials an array holds of which one has `own` axes."""
    return int(np.prod(shape[: len(shape) - own]))


def _order(frame: Frame) -> None:
    key, table, permutation, first, stop = (buffer.address for buffer in frame.inputs)
    order, start, label, cursor = (buffer.address for buffer in frame.outputs)
    trials, V = trial_count(frame.inputs[0].shape, 1), frame.inputs[2].shape[-1]
    module, L, stream = _module(is_uneven(frame)), frame.attributes["length"], frame.stream
    size = frame.outputs[0].shape[-1]
    blocks = (min(-(-size // 256), 4 * _blocks(module, trials)), trials, 1)
    module.zero(cursor, trials * V, stream)
    drawn = (key, table, permutation, first, stop, label, cursor)
    module.launch("draw_labels", blocks, 256, 0, stream, drawn, V, L, size)
    module.launch("start_labels", (1, trials, 1), 1024, 0, stream, (cursor, start), V)
    module.launch("order_samples", blocks, 256, 0, stream, (first, stop, label, cursor, order), V, size)


def _count(frame: Frame) -> None:
    ordered, sums = ([buffer.address for buffer in part] for part in (frame.inputs[:6], frame.outputs))
    trials, V = trial_count(frame.inputs[0].shape, 1), frame.inputs[6].shape[-1]
    L, size, module = frame.attributes["length"], frame.inputs[2].shape[-1], _module(is_uneven(frame))
    carry_over(module, frame, {6: 0, 7: 1})
    if is_uneven(frame):
        words = module.shared_bytes // 4
        kept = words >= 2 * V  # the alias table beside a part of the histogram that is no smaller
        tile = min(V, words - V if kept else words)
        grid = (_blocks(module, trials), trials, 1)
        shared = 4 * (tile + V * kept)
        module.launch("count_ranges", grid, 256, shared, frame.stream, [*ordered, *sums], V, L, size, tile, int(kept))
        return
    addresses = [*ordered[:4], *sums]
    if _sparse(size, L, V):
        grid = (4 * _blocks(module, trials), trials, 1)
        module.launch("count_pairs_global", grid, 256, 0, frame.stream, addresses, V, L, size)
        return
    tile = min(V, module.shared_bytes // 4)
    shares = max(1, min(64, module.multiprocessors * BLOCKS // (V * trials)))
    module.launch("count_pairs", (V, trials, shares), 256, 4 * tile, frame.stream, addresses, V, L, size, tile)


def _spread(frame: Frame) -> None:
    ordered, tables = ([buffer.address for buffer in part] for part in (frame.inputs[:6], frame.inputs[6:8]))
    sums = [buffer.address for buffer in frame.outputs]
    trials, V = trial_count(frame.inputs[0].shape, 1), frame.inputs[8].shape[-1]
    L, size, module = frame.attributes["length"], frame.inputs[2].shape[-1], _module(is_uneven(frame))
    carry_over(module, frame, {8: 0, 9: 1})
    counters = -(-((L + 2) // 2) // LANES)
    kept = next((pairs for pairs in KEPT if counters <= pairs), KEPT[0])
    grid = (_blocks(module, trials), trials, 1)
    if is_uneven(frame):
        shared, addresses = 4 * (3 * V + HOT_WORDS), [*ordered, *tables, *sums]
        fits = module.shared_bytes >= shared
        name = f"spread_ranges_{kept if fits else 'global'}"
        module.launch(name, grid, 256, shared if fits else 0, frame.stream, addresses, V, L, size, FEW)
        return
    fits = module.shared_bytes >= 8 * V and not _sparse(size, L, V)
    name = f"spread_{kept}" if fits else "spread_global"
    grid = (min(V, grid[0]), trials, 1)
    module.launch(name, grid, 256, 8 * V if fits else 0, frame.stream, [*ordered[:4], *tables, *sums], V, L, size)


def _winners(frame: Frame) -> None:
    addresses = [buffer.address for buffer in (*frame.inputs[:9], *frame.outputs)]
    trials, V = trial_count(frame.inputs[0].shape, 1), frame.inputs[2].shape[-1]
    uneven = is_uneven(frame)
    module, shared = _module(uneven), 8 * V if uneven else 4 * V
    carry_over(module, frame, {9: 0, 10: 1})
    fits = module.shared_bytes >= shared
    numbers = (V, frame.attributes["length"], frame.attributes["locked"], int(fits))
    grid = (_blocks(module, trials), trials, 1)
    module.launch("count_winners", grid, 256, shared if fits else 0, frame.stream, addresses, *numbers)


def _sparse(samples: int, length: int, vocab: int) -> bool:
    """Whether a label's row of a table has more entries than its samples have tokens: then it is not worth copying."""
    return samples * length < vocab * vocab


def _blocks(module: Module, trials: int) -> int:
    """Blocks to a trial that fill the device."""
    return max(1, -(-module.multiprocessors * BLOCKS // trials))


def carry_over(module: Module, frame: Frame, aliases: dict[int, int]) -> None:
    """Copy what is added to into the result, where XLA did not give both the same memory."""
    for given, result in aliases.items():
        source, target = frame.inputs[given], frame.outputs[result]
        if source.address != target.address:
            module.copy(target.address, source.address, 4 * int(np.prod(target.shape)), frame.stream)


# --- the check before first use --------------------------------------------------------------


def _check(uneven: bool) -> None:
    """Count a few samples and compare, so that a driver or a version that misbehaves is found here, not in results."""
    V, L, samples = 8, 5, 1000
    entries = alias_table("zipf:1", V) if uneven else None

    @jax.jit  # as one program: a dozen small ones take seconds to compile, and more than one to load
    def agrees(key: Array) -> Array:
        permutation = jnp.roll(lax.iota(jnp.uint32, V), 3)
        table = None if entries is None else jnp.asarray(entries)
        ordered = order_by_label(Source(key, permutation, table), jnp.uint32(0), jnp.uint32(samples), L, 1024)
        pairs, labels = count_pairs(ordered, jnp.zeros((V, V), jnp.int32), jnp.zeros(V, jnp.int32), L)
        batch = sample(key, lax.iota(jnp.uint32, samples), permutation, L, table)
        expected = jnp.zeros((V, V), jnp.int32).at[batch.label[:, None], batch.tokens].add(1)
        return (pairs == expected).all() & (labels.sum() == samples)

    if not bool(agrees(np.array([7, 11], np.uint32))):
        raise CudaError("a test of the kernels gave other counts than expected")
