r"""Decoders that see the first gradient and the embeddings, and nothing else.

G = -grad_V Lhat(0, 0) = U^T C. Each decoder scores every (token, label):

    matched filter   u_y^T G z_v
    least squares    u_y^T (U'^T U')^-1 G (Z^T Z)^-1 z_v, which undoes the overlaps that G can undo
    assignment       the permutation with the largest total of a decoder's scores: the most likely
                     one where the scores' noise is even, since Pi* gives every label once
"""

from typing import NamedTuple

import jax
import numpy as np
from scipy.optimize import linear_sum_assignment

from mnemoscope import keys
from mnemoscope.memory import Room, plan_memory
from mnemoscope.models.transformer import draw_frozen
from mnemoscope.numerics import Device, find_device, numerics
from mnemoscope.spec import Retrieval, SpecError
from mnemoscope.training.streaming import Count, Source
from mnemoscope.training.three_step import first_gradient

# An assignment takes about V^3 steps: above this it is left out.
MOST_ASSIGNED = 2048


class Seen(NamedTuple):
    """What a decoder may look at, and the answer to compare with."""

    gradient: np.ndarray
    Z: np.ndarray
    U: np.ndarray
    permutation: np.ndarray


def see(spec: Retrieval, seed: int, device: Device = "auto") -> Seen:
    """The first gradient of a trial, from the same random numbers as `simulate`."""
    if spec.width:
        raise SpecError("width", f"expected 0: the bound is attention-only, got {spec.width}")
    place = find_device(device)
    with numerics("float32", place):
        layout = plan_memory(spec, "float32", Room.of(place))
        streams = keys.streams(spec, seed)
        program = spec.program()
        frozen = draw_frozen(program, spec.embedding, streams)
        source = Source(streams["train"], frozen.permutation)
        G, _ = _gradient(program, layout, frozen, source, Count.of(spec.samples))
        return Seen(*(np.asarray(part) for part in (G, frozen.Z, frozen.U, frozen.permutation)))


_gradient = jax.jit(first_gradient, static_argnames=("program", "layout"))


def decode(seen: Seen) -> dict[str, float]:
    """The share of tokens that each decoder names right."""
    G, Z, U, truth = seen
    centred = U - U.mean(axis=0)
    scores = {
        "matched": Z @ G.T @ U.T,
        "squares": Z @ np.linalg.pinv(Z.T @ Z) @ G.T @ np.linalg.pinv(centred.T @ centred) @ U.T,
    }
    found = {
        "matched_filter": scores["matched"].argmax(axis=1),
        "least_squares": scores["squares"].argmax(axis=1),
    }
    if len(truth) <= MOST_ASSIGNED:
        for name, score in scores.items():
            found[f"{name}_assignment"] = linear_sum_assignment(score, maximize=True)[1]
    return {name: float(np.mean(labels == truth)) for name, labels in found.items()}
