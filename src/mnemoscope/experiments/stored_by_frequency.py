r"""Outer products whose terms are weighted by how often their items were seen.

With c_x of T samples on item x, or T p_x of them with T infinite, a linear memory stores

    W = sum_x q_x u_f(x) e_x^T                                                               (S1)

    counts      q_x = c_x
    power       q_x = c_x^rho, a milder weight
    threshold   q_x = 1 for the P items that were seen most, and 0 for the others

The error is the frequency of the items that are answered wrong: what a fresh sample costs. In NumPy; W itself is not
formed, since with few answers the logits u_y^T W e_x need only its product with them.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from mnemoscope.engine.device import find_device, numerics
from mnemoscope.models.memory import draw_pairs
from mnemoscope.spec import Memory
from mnemoscope.tasks.alias import alias_table
from mnemoscope.tasks.items import ItemStreams, draw_items
from mnemoscope.training.memory import draw_streams

# Logits at once.
ROWS = 2**16


# Compiled once for all seeds of a setting; operation by operation it takes fifty times as long.
_draw_pairs = jax.jit(draw_pairs, static_argnames="program")


class Seen(NamedTuple):
    """Items and answers, the frequency of every item, and the share of the samples that it has."""

    E: np.ndarray
    U: np.ndarray
    label: np.ndarray
    frequency: np.ndarray
    share: np.ndarray


def see(spec: Memory, seed: int, samples: int = 0) -> Seen:
    """What a seed's samples show of the items; 0 samples are infinitely many."""
    with numerics("float32", find_device("cpu")):
        keys, items = draw_streams([(spec, seed)])
        own = {name: part[0] for name, part in keys.items()}
        pairs = jax.device_get(_draw_pairs(spec, own, items[0]))
        share = spec.probabilities
        if samples:
            table = alias_table(spec.frequencies, spec.items)
            streams = ItemStreams(own["sample"], own["noise"])
            entries = None if table is None else jnp.asarray(table)
            rows = jnp.arange(samples, dtype=jnp.uint32)
            drawn = draw_items(
                streams, rows, items[0], jnp.asarray(pairs.label), jnp.uint32(spec.labels), table=entries
            )
            share = np.bincount(np.asarray(drawn.item), minlength=spec.items) / samples
    return Seen(np.asarray(pairs.E), np.asarray(pairs.U), np.asarray(pairs.label), spec.probabilities, share)


def error(seen: Seen, weight: np.ndarray) -> float:
    """The frequency of the items that (S1) with these weights answers wrong."""
    E, U, label, frequency, _ = seen
    stored = np.flatnonzero(weight)
    # W^T U^T, d x M: all that the logits need.
    answers = (U[label[stored]] @ U.T) * weight[stored, None]
    read_out = E[stored].T.astype(float) @ answers
    right = np.concatenate(
        [
            np.argmax(E[first : first + ROWS] @ read_out, axis=1) == label[first : first + ROWS]
            for first in range(0, len(E), ROWS)
        ]
    )
    return float(frequency[~right].sum())


def threshold(seen: Seen, kept: int) -> np.ndarray:
    """Weight 1 for the items that were seen most, as many as are kept, and that were seen at all."""
    order = np.argsort(-seen.share, kind="stable")[:kept]
    weight = np.zeros(len(seen.share))
    weight[order] = seen.share[order] > 0
    return weight
