r"""Memories whose weights are rounded to a few bits: how many items do they still name?

The matrix is computed in full precision, as a sum of outer products or by training, and then rounded to 2^b levels by
(Q1) of `models/quantisation.py`. Here c is the best of several multiples of the weights' root mean square, for each
memory its own: the answer is an argmax, so that c itself says nothing, and the b d^2 bits of the levels are all. Over
maps that give every item an answer of its own there are N! different ones, each matrix names at most one of them, and
items and answers are drawn without regard to the map. So all N are right with probability at most 2^(b d^2) / N!:

    log2 N! <= b d^2                                                                         (Q2)
"""

import math
from collections.abc import Sequence
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mnemoscope.engine.device import find_device, forget_programs, numerics
from mnemoscope.models.memory import Full, Pairs, construct
from mnemoscope.models.quantisation import ENDS, quantise
from mnemoscope.spec import Memory
from mnemoscope.spec.validators import Device
from mnemoscope.training.memory import MEMORY, draw_streams


def recall_by_bits(
    spec: Memory, seeds: Sequence[int], bits: Sequence[int], *, steps: int = 1024, device: Device = "auto"
) -> np.ndarray:
    """The share of right items by seed and number of bits; the last column is full precision.

    Training takes `steps` steps even if all items are right earlier: what rounding leaves depends on the margin of the
    right answer.
    """
    place = find_device(device)
    program = MEMORY.program(spec, place.platform)
    # All seeds at once on a GPU; on a CPU, batches of matrix products are slow.
    groups = [[seed] for seed in seeds] if place.platform == "cpu" else [list(seeds)]
    shares = []
    with numerics("float32", place):
        forget_programs()
        for group in groups:
            pairs, weights = _weights(program, spec, group, steps)
            shares.append(_shares(program, pairs, weights, tuple(bits)))
    return np.concatenate(shares)


def _weights(program: Memory, spec: Memory, seeds: Sequence[int], steps: int) -> tuple[Pairs, Float[Array, "n d d"]]:
    keys, items = draw_streams([(spec, seed) for seed in seeds])
    pairs, state = MEMORY.start(program, (keys, items))
    if spec.method == "trained":
        rate = jnp.full(len(seeds), spec.rate)
        for _ in range(0, steps, MEMORY.check):
            state, _ = MEMORY.advance(program, MEMORY.check, pairs, state, rate)
        weights = state.weights
    else:
        weights = jax.vmap(partial(construct, program))(keys, pairs)
    assert isinstance(weights, Full)
    return pairs, weights.W


def _shares(program: Memory, pairs: Pairs, W: Float[Array, "n d d"], bits: tuple[int, ...]) -> np.ndarray:
    scale = jnp.sqrt(jnp.mean(W**2, axis=(1, 2)))
    columns = []
    for b in bits:
        tried = [
            _accuracy(program, pairs, jax.vmap(partial(quantise, bits=b))(W, end=end * scale))
            for end in (ENDS if b > 1 else ENDS[:1])
        ]
        columns.append(np.max(np.stack(tried), axis=0))
    columns.append(np.asarray(_accuracy(program, pairs, W)))
    return np.stack(columns, axis=1)


def _accuracy(program: Memory, pairs: Pairs, W: Float[Array, "n d d"]) -> Float[Array, "n"]:
    return MEMORY.measured(program, pairs, Full(W))["accuracy"]


def bits_of_map(items: float) -> float:
    """log2 N!: what naming one map of N items to N answers takes; (Q2)."""
    return math.lgamma(items + 1) / math.log(2)


def most_items(weights: int, bits: float) -> float:
    """The N at which (Q2) is used up."""
    low, high = 1.0, 2.0 + weights * bits
    for _ in range(60):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if bits_of_map(middle) <= weights * bits else (low, middle)
    return low
