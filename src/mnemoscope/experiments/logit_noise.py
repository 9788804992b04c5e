r"""How much a linear memory's own logits vary: u_f(x)^T W e_x about 1, over items and seeds.

Paper B's account of outer products: items with the same answer add an overlap of their own, those
with another answer the product of two,

    Var = (same - 1)/d + other/d^2,     same = N/M,  other = N - N/M                         (V1)
"""

from collections.abc import Sequence
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, UInt32

from mnemoscope.engine.device import find_device, forget_programs, numerics
from mnemoscope.models.memory import construct, draw_pairs, logits
from mnemoscope.spec import Memory
from mnemoscope.spec.validators import Device
from mnemoscope.training.memory import draw_streams


def own_variances(spec: Memory, seeds: Sequence[int], device: Device = "auto") -> np.ndarray:
    """The mean square of the own logit less 1, over the items of each seed."""
    with numerics("float32", find_device(device)):
        forget_programs()
        keys, items = draw_streams([(spec, seed) for seed in seeds])
        return np.asarray(_variances(spec, keys, items))


@partial(jax.jit, static_argnames="spec")
def _variances(spec: Memory, keys: dict[str, UInt32[Array, "n 2"]], items: UInt32[Array, "n"]) -> Float[Array, "n"]:
    def of_seed(row: tuple[dict[str, Array], Array]) -> Float[Array, ""]:
        keys, items = row
        pairs = draw_pairs(spec, keys, items)
        scores = logits(spec, pairs, construct(spec, keys, pairs), pairs.E)
        own = jnp.take_along_axis(scores, pairs.label[:, None], axis=1)[:, 0]
        return jnp.mean((own - 1) ** 2)

    return jax.lax.map(of_seed, (keys, items))


def expected_variance(spec: Memory) -> float:
    """(V1)."""
    same = spec.items / spec.labels
    return (same - 1) / spec.dim + (spec.items - same) / spec.dim**2
