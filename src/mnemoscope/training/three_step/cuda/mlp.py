"""The first two steps with an MLP as operations of JAX, for float32 on an NVIDIA GPU."""

from collections.abc import Callable
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Float16, Float32

from mnemoscope.engine.layout import Layout
from mnemoscope.models.activations import named
from mnemoscope.models.retrieval import Frozen
from mnemoscope.spec import Retrieval
from mnemoscope.spec.token_laws import UNIFORM
from mnemoscope.training.three_step.cuda.calls import Buffer, Frame, register
from mnemoscope.training.three_step.cuda.passes import (
    HOT_WORDS,
    Ordered,
    carry_over,
    is_uneven,
    like,
    say_why_not,
    trial_count,
    usable,
)
from mnemoscope.training.three_step.cuda.products import power_of_two, split
from mnemoscope.training.three_step.cuda.toolkit import CudaError, Module

# The activations that mlp.cu has, by their number there.
PHI = ("relu", "gelu", "tanh", "linear", "hermite2", "hermite3")
MOST_DIM = 256
WARPS, HELD = 4, 32
# Columns of Z that a block may have in shared memory, and what the kernels that do so keep there besides.
SLICES, BESIDE = (32, 16, 8), 10_240


def serves(program: Retrieval, layout: Layout, frozen: Frozen) -> bool:
    """Whether the kernels can take this program's steps; elsewhere XLA compiles them."""
    if layout.platform != "gpu" or frozen.W_in is None or frozen.Z.dtype != jnp.float32:
        return False
    uneven = program.tokens != UNIFORM
    fits = program.dim % 4 == 0 and program.dim <= MOST_DIM and program.width % 2 == 0
    if not fits or program.activation not in PHI or not usable(uneven):
        return False
    return _loads(_padded(program.dim), PHI.index(program.activation), uneven)


def add_hidden(
    program: Retrieval, frozen: Frozen, ordered: Ordered, total: Float32[Array, "V m"]
) -> Float32[Array, "V m"]:
    """total[y] + the sum over samples i of label y of phi(W_in xbar_i)."""
    call = jax.ffi.ffi_call(
        "mnemoscope_add_hidden", like(total), vmap_method="broadcast_all", input_output_aliases={7: 0}
    )
    pooled, scale = _pool(program, frozen, ordered)
    return call(*ordered[2:], pooled, _weights(frozen), scale, total, **_numbers(program))


def pull_back(
    program: Retrieval,
    frozen: Frozen,
    M: Float32[Array, "V m"],
    ordered: Ordered,
    sums: tuple[Float32[Array, "V"], Float32[Array, ""]],
) -> tuple[Float32[Array, "V"], Float32[Array, ""]]:
    """beta and tau of `by_sample.attention_direction`, with what these samples add."""
    pooled, scale = _pool(program, frozen, ordered)
    errors = M - M.mean(axis=0)
    scale = scale.at[1].set(power_of_two(jnp.max(jnp.abs(errors)) * _steepest(program, frozen)))
    rows = ordered.order.shape[0]
    shapes = [jax.ShapeDtypeStruct(shape, jnp.float32) for shape in ((rows, _padded(program.dim)), (rows,))]
    call = jax.ffi.ffi_call("mnemoscope_pull_back", shapes, vmap_method="broadcast_all")
    pulls = call(*ordered[2:], pooled, _weights(frozen), scale, errors, **_numbers(program))
    call = jax.ffi.ffi_call(
        "mnemoscope_add_pulls",
        [like(part) for part in sums],
        vmap_method="broadcast_all",
        input_output_aliases={8: 0, 9: 1},
    )
    beta, tau = call(*ordered[:4], frozen.Z, frozen.trigger, *pulls, *sums, **_numbers(program))
    return beta, tau


def _pool(program: Retrieval, frozen: Frozen, ordered: Ordered) -> tuple[Float16[Array, "2 n D"], Float32[Array, "2"]]:
    """xbar of the samples in their order, as float16 pairs, and the kernels' `scale`: theirs, and 1 for errors."""
    # A bound on the entries of pooled vectors.
    own = power_of_two(jnp.max(jnp.abs(frozen.Z)) + jnp.max(jnp.abs(frozen.trigger)))
    scale = jnp.stack([own, jnp.ones_like(own)])
    shape = jax.ShapeDtypeStruct((2, ordered.order.shape[0], _padded(program.dim)), jnp.float16)
    call = jax.ffi.ffi_call("mnemoscope_pool", shape, vmap_method="broadcast_all")
    return call(*ordered[:4], frozen.Z, frozen.trigger, scale, **_numbers(program)), scale


def _steepest(program: Retrieval, frozen: Frozen) -> Float[Array, ""]:
    """A bound on |phi'(a)|: the activations above are steepest at zero or at the largest |a|; gelu is below 1.2."""
    assert frozen.W_in is not None
    length = jnp.max(jnp.linalg.norm(frozen.Z, axis=1)) + jnp.linalg.norm(frozen.trigger)
    largest = jnp.max(jnp.linalg.norm(frozen.W_in, axis=1)) * length
    slope = jax.vmap(jax.grad(named(program.activation)))(jnp.stack([-largest, jnp.zeros_like(largest), largest]))
    return jnp.maximum(1.2, jnp.max(jnp.abs(slope)))


def _weights(frozen: Frozen) -> Float16[Array, "2 units D"]:
    """W_in as float16 pairs, high and low, filled with zeros up to whole pieces."""
    assert frozen.W_in is not None
    m, d = frozen.W_in.shape
    return jnp.stack(split(jnp.pad(frozen.W_in, ((0, -m % HELD), (0, _padded(d) - d)))))


def _padded(dim: int) -> int:
    return -(-dim // 32) * 32


def _numbers(program: Retrieval) -> dict[str, np.int64]:
    numbers = (program.length, program.trigger == "additive", PHI.index(program.activation))
    return dict(zip(("length", "additive", "phi"), map(np.int64, numbers), strict=True))


# --- what XLA calls --------------------------------------------------------------------------


def _tiles(padded: int) -> int:
    """Tiles of 16 samples to a warp, by how much of a warp's registers one takes."""
    return 2 if padded <= 128 else 1


def _shared_bytes(padded: int) -> int:
    rows, pitch = WARPS * 16 * _tiles(padded), padded + 8
    return 4 * (rows * pitch + 2 * HELD * pitch + rows)


@cache
def _loads(padded: int, phi: int, uneven: bool) -> bool:
    """Whether the kernels can be compiled for this size and have the shared memory that they need."""
    try:
        _register()
        return _shared_bytes(padded) <= _module(padded, phi, uneven).shared_bytes
    except CudaError as error:
        say_why_not(error)
        return False


@cache
def _module(padded: int, phi: int, uneven: bool) -> Module:
    return Module("mlp.cu", D=padded, MT=_tiles(padded), PHI=phi, **({"UNEVEN": 1} if uneven else {}))


@cache
def _register() -> None:
    for name, launch in (
        ("pool", _launch_pool),
        ("add_hidden", _launch_add_hidden),
        ("pull_back", _launch_pull_back),
        ("add_pulls", _launch_add_pulls),
    ):
        register(f"mnemoscope_{name}", launch)


def _launch_pool(frame: Frame) -> None:
    V, uneven = frame.inputs[4].shape[-2], is_uneven(frame)
    padded = frame.outputs[0].shape[-1]
    _launch_sliced("pool", frame, padded, frame.inputs, lambda columns: 4 * V * (columns + uneven))


def _launch_add_pulls(frame: Frame) -> None:
    V, uneven, padded = frame.inputs[4].shape[-2], is_uneven(frame), frame.inputs[6].shape[-1]
    module = _module(padded, frame.attributes["phi"], uneven)
    carry_over(module, frame, {8: 0, 9: 1})
    beside = HOT_WORDS + V if uneven else 0  # sums of frequent tokens, and the alias table
    _launch_sliced("add_pulls", frame, padded, frame.inputs[:8], lambda columns: 4 * (V * (columns + 5) + beside))


def _launch_sliced(name: str, frame: Frame, padded: int, read: list[Buffer], bytes_of: Callable[[int], int]) -> None:
    """Launch a kernel that has as many columns of Z in shared memory as fit; where none do, Z stays where it is."""
    module = _module(padded, frame.attributes["phi"], is_uneven(frame))
    V, d = frame.inputs[4].shape[-2:]
    room = module.all_shared_bytes - BESIDE
    columns = next((columns for columns in SLICES if bytes_of(columns) <= room), 0)
    shared = bytes_of(columns) if columns else 0
    trials, slices = trial_count(frame.inputs[0].shape, 1), padded // (columns or 32)
    side_by_side = 2 if 2 * (shared + BESIDE) <= room else 1
    grid = (max(1, -(-module.multiprocessors * side_by_side // (trials * slices))), trials, slices)
    addresses = [buffer.address for buffer in (*read, *frame.outputs)]
    numbers = (V, frame.attributes["length"], d, frame.attributes["additive"], frame.inputs[2].shape[-1])
    module.launch(f"{name}_{columns or 'global'}", grid, 1024, shared, frame.stream, addresses, *numbers)


def _launch_add_hidden(frame: Frame) -> None:
    padded, units = frame.inputs[4].shape[-1], frame.outputs[0].shape[-1]
    carry_over(_module(padded, frame.attributes["phi"], uneven=False), frame, {7: 0})
    _launch_tiled("add_hidden", frame, padded, units, frame.inputs[:7])


def _launch_pull_back(frame: Frame) -> None:
    _launch_tiled("pull_back", frame, frame.inputs[4].shape[-1], frame.inputs[7].shape[-1], frame.inputs)


def _launch_tiled(name: str, frame: Frame, padded: int, units: int, read: list[Buffer]) -> None:
    module = _module(padded, frame.attributes["phi"], uneven=False)  # hidden units do not care how tokens were drawn
    rows, V = frame.inputs[0].shape[-1], frame.inputs[1].shape[-1] - 1
    trials = trial_count(frame.inputs[0].shape, 1)
    grid = (-(-rows // (WARPS * 16 * _tiles(padded))), trials, 1)
    addresses = [buffer.address for buffer in (*read, *frame.outputs)]
    module.launch(name, grid, 32 * WARPS, _shared_bytes(padded), frame.stream, addresses, V, units, rows)
