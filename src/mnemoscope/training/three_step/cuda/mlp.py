"""The first two steps with an MLP as operations of JAX, for float32 on an NVIDIA GPU."""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float, Float16, Float32

from mnemoscope.engine.layout import ORDERED, Layout
from mnemoscope.models.activations import named
from mnemoscope.models.retrieval import Frozen
from mnemoscope.spec import Retrieval
from mnemoscope.training.three_step.cuda.calls import Frame, register
from mnemoscope.training.three_step.cuda.passes import Ordered, carry_over, like, trial_count, usable
from mnemoscope.training.three_step.cuda.toolkit import Module

# The activations that mlp.cu has, by their number there.
PHI = ("relu", "gelu", "tanh", "linear", "hermite2", "hermite3")
MOST_DIM = 256
WARPS, HELD = 4, 32
# What float16 holds is at most 65504; scaled numbers stay well below.
LARGEST = 2.0**14


def serves(program: Retrieval, layout: Layout, frozen: Frozen) -> bool:
    """Whether the kernels can take this program's steps; elsewhere XLA compiles them."""
    if layout.platform != "gpu" or frozen.W_in is None or frozen.Z.dtype != jnp.float32:
        return False
    fits = program.dim % 4 == 0 and program.dim <= MOST_DIM and program.width % 2 == 0
    if not fits or program.activation not in PHI or not usable():
        return False
    _register()
    padded = _padded(program.dim)
    return _shared_bytes(padded) <= _module(padded, PHI.index(program.activation)).shared_bytes


def add_hidden(
    program: Retrieval, frozen: Frozen, ordered: Ordered, total: Float32[Array, "V m"]
) -> Float32[Array, "V m"]:
    """total[y] + the sum over samples i of label y of phi(W_in xbar_i)."""
    call = jax.ffi.ffi_call(
        "mnemoscope_add_hidden", like(total), vmap_method="broadcast_all", input_output_aliases={9: 0}
    )
    scale = jnp.stack([_power_of_two(_longest(frozen)), jnp.float32(1)])
    return call(*ordered, frozen.Z, frozen.trigger, _weights(frozen), scale, total, **_numbers(program))


def pull_back(
    program: Retrieval,
    frozen: Frozen,
    M: Float32[Array, "V m"],
    ordered: Ordered,
    sums: tuple[Float32[Array, "V"], Float32[Array, ""]],
) -> tuple[Float32[Array, "V"], Float32[Array, ""]]:
    """beta and tau of `by_sample.attention_direction`, with what these samples add."""
    beta, tau = sums
    call = jax.ffi.ffi_call(
        "mnemoscope_pull_back",
        [like(beta), like(tau)],
        vmap_method="broadcast_all",
        input_output_aliases={10: 0, 11: 1},
    )
    errors = M - M.mean(axis=0)
    scale = jnp.stack(
        [_power_of_two(_longest(frozen)), _power_of_two(jnp.max(jnp.abs(errors)) * _steepest(program, frozen))]
    )
    beta, tau = call(
        *ordered, frozen.Z, frozen.trigger, _weights(frozen), scale, errors, beta, tau, **_numbers(program)
    )
    return beta, tau


def _longest(frozen: Frozen) -> Float[Array, ""]:
    """A bound on the entries of pooled vectors."""
    return jnp.max(jnp.abs(frozen.Z)) + jnp.max(jnp.abs(frozen.trigger))


def _steepest(program: Retrieval, frozen: Frozen) -> Float[Array, ""]:
    """A bound on |phi'(a)|: our activations are steepest at zero, at 1.2 (gelu, below 1.2), or at the largest |a|."""
    assert frozen.W_in is not None
    length = jnp.max(jnp.linalg.norm(frozen.Z, axis=1)) + jnp.linalg.norm(frozen.trigger)
    largest = jnp.max(jnp.linalg.norm(frozen.W_in, axis=1)) * length
    slope = jax.vmap(jax.grad(named(program.activation)))(jnp.stack([-largest, jnp.zeros_like(largest), largest]))
    return jnp.maximum(1.2, jnp.max(jnp.abs(slope)))


def _power_of_two(largest: Float[Array, ""]) -> Float[Array, ""]:
    """What to multiply numbers with that are at most `largest`, so that they are at most LARGEST."""
    return jnp.exp2(jnp.floor(jnp.log2(LARGEST / jnp.where(largest > 0, largest, 1))))


def _weights(frozen: Frozen) -> Float16[Array, "2 units D"]:
    """W_in as float16 pairs, high and low, filled with zeros up to whole pieces."""
    assert frozen.W_in is not None
    m, d = frozen.W_in.shape
    W = jnp.pad(frozen.W_in, ((0, -m % HELD), (0, _padded(d) - d)))
    # Not a cast and back, which XLA may take for nothing.
    high = lax.reduce_precision(W, exponent_bits=5, mantissa_bits=10)
    return jnp.stack([high, W - high]).astype(jnp.float16)


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
    return 4 * (rows * pitch + 2 * HELD * pitch + 3 * rows)


@cache
def _module(padded: int, phi: int) -> Module:
    return Module("mlp.cu", D=padded, MT=_tiles(padded), PHI=phi)


@cache
def _register() -> None:
    register("mnemoscope_add_hidden", _add_hidden)
    register("mnemoscope_pull_back", _pull_back)


def _add_hidden(frame: Frame) -> None:
    carry_over(_module(*_which(frame)), frame, {9: 0})
    _launch("add_hidden", frame, [*(buffer.address for buffer in frame.inputs[:9]), frame.outputs[0].address])


def _pull_back(frame: Frame) -> None:
    padded, phi = _which(frame)
    carry_over(_module(padded, phi), frame, {10: 0, 11: 1})
    V = frame.inputs[5].shape[-2]
    addresses = [buffer.address for buffer in (*frame.inputs[:10], *frame.outputs)]
    _launch("pull_back", frame, addresses, int(2 * HELD * (padded + 8) >= V))


def _which(frame: Frame) -> tuple[int, int]:
    return _padded(frame.inputs[5].shape[-1]), frame.attributes["phi"]


def _launch(name: str, frame: Frame, addresses: list[int], *more: int) -> None:
    padded, phi = _which(frame)
    V, d = frame.inputs[5].shape[-2:]
    units = frame.outputs[0].shape[-1] if name == "add_hidden" else frame.inputs[9].shape[-1]
    grid = (-(-ORDERED // (WARPS * 16 * _tiles(padded))), trial_count(frame.inputs[0].shape, 1), 1)
    numbers = (V, frame.attributes["length"], d, units, frame.attributes["additive"], ORDERED, *more)
    module = _module(padded, phi)
    module.launch(name, grid, 32 * WARPS, _shared_bytes(padded), frame.stream, addresses, *numbers)
