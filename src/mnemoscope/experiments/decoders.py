r"""Decoders that see the first gradient and the embeddings, and nothing else.

G = -grad_V Lhat(0, 0) = U^T C. Each decoder scores every (token, label):

    matched filter   u_y^T G z_v
    least squares    u_y^T (U'^T U')^-1 G (Z^T Z)^-1 z_v, which undoes the overlaps that G can undo
    assignment       the permutation with the largest total of a decoder's scores: the most likely
                     one where the scores' noise is even, since Pi* gives every label once
    message passing  as in `message_passing`, the label with the largest score, or an assignment
"""

from typing import NamedTuple

import jax
import numpy as np
from scipy.optimize import linear_sum_assignment

from mnemoscope import keys
from mnemoscope.experiments.message_passing import message_passing
from mnemoscope.fields import Device
from mnemoscope.models.own import make_frozen
from mnemoscope.numerics import find_device, forget_programs, numerics
from mnemoscope.room import Room, plan_memory
from mnemoscope.spec import Retrieval, SpecError
from mnemoscope.training.streaming import Count, Source
from mnemoscope.training.three_step import first_gradient

# An assignment takes about V^3 steps: above this it is left out.
MOST_ASSIGNED = 2048
DECODERS = (
    "matched_filter", "squares_filter", "message_passing",
    "matched_assignment", "squares_assignment", "message_assignment",
)  # fmt: skip
NAMES = {"squares_filter": "least_squares"}


class Seen(NamedTuple):
    """What a decoder may look at, and the answer to compare with."""

    gradient: np.ndarray
    Z: np.ndarray
    U: np.ndarray
    permutation: np.ndarray
    length: int
    samples: int


def see(spec: Retrieval, seed: int, device: Device = "auto") -> Seen:
    """The first gradient of a trial, from the same random numbers as `simulate`."""
    if spec.width:
        raise SpecError("width", f"expected 0: the bound is attention-only, got {spec.width}")
    forget_programs()
    place = find_device(device)
    with numerics("float32", place):
        layout = plan_memory(spec, "float32", Room.of(place))
        streams = keys.streams(spec, seed)
        program = spec.program()
        frozen = make_frozen(spec, streams)
        source = Source(streams["train"], frozen.permutation)
        G, _ = _gradient(program, layout, frozen, source, Count.of(spec.samples))
        G, Z, U = (np.asarray(part, np.float64) for part in (G, frozen.Z, frozen.U))
        return Seen(G, Z, U, np.asarray(frozen.permutation), spec.length, spec.samples)


_gradient = jax.jit(first_gradient, static_argnames=("program", "layout"))


def decode(seen: Seen, names: tuple[str, ...] = DECODERS) -> dict[str, float]:
    """The share of tokens that each decoder names right."""
    makers = {"matched": _matched, "squares": _squares, "message": _messages}
    made: dict[str, np.ndarray] = {}
    told = {}
    for name in names:
        kind, _, assigned = name.partition("_")
        if assigned == "assignment" and len(seen.permutation) > MOST_ASSIGNED:
            continue
        if kind not in made:
            made[kind] = makers[kind](seen)
        if assigned == "assignment":
            labels = linear_sum_assignment(made[kind], maximize=True)[1]
        else:
            labels = made[kind].argmax(axis=1)
        told[NAMES.get(name, name)] = float(np.mean(labels == seen.permutation))
    return told


def _matched(seen: Seen) -> np.ndarray:
    return seen.Z @ seen.gradient.T @ seen.U.T


def _squares(seen: Seen) -> np.ndarray:
    Z, U = seen.Z, seen.U
    centred = U - U.mean(axis=0)
    inverse = np.linalg.pinv(centred.T @ centred)
    return Z @ np.linalg.pinv(Z.T @ Z) @ seen.gradient.T @ inverse @ U.T


def _messages(seen: Seen) -> np.ndarray:
    G, Z, U, _, length, samples = seen
    return message_passing(G, Z, U, length=length, samples=samples).T
