r"""Paper B's associative memories, constructed or to be trained.

    linear     x -> W e_x                          the answer is argmax_y u_y^T x
    low rank   x -> V^T F e_x                      F, V with r rows
    MLP        x -> V^T phi(F e_x)                 F, V with m rows

A low-rank memory is an MLP without its activation. Constructions, where f(x) is the answer of item x:

    hebbian         W = sum_x u_f(x) e_x^T
    low rank        F ~ N(0, 1/r),  V = sum_x (F e_x) u_f(x)^T
    MLP             F ~ N(0, 1),    V = (1/m) sum_x h_k(F e_x) u_f(x)^T,   h_k orthonormal Hermite
    one step        W from zero, along the step of an optimiser: `models/one_step.py`
    least squares   the W with the least sum_x,y (u_y^T W e_x - [y = f(x)])^2

Arrays may have more rows than the N items and M answers. Padding items are zero, which adds nothing to any sum.
"""

import math
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, UInt32

from mnemoscope.engine.random import normal
from mnemoscope.engine.words import Words
from mnemoscope.models import activations, embeddings
from mnemoscope.spec.base import SpecError
from mnemoscope.spec.memory import Memory
from mnemoscope.spec.token_laws import UNIFORM
from mnemoscope.tasks.items import ItemStreams
from mnemoscope.theory.activation import FORMULAS, coefficients


class Pairs(NamedTuple):
    """Items, answers, the answer of each item, the number of items, and the streams of samples, if any are drawn."""

    E: Float[Array, "*n N d"]
    U: Float[Array, "*n M d"]
    label: UInt32[Array, "*n N"]
    items: UInt32[Array, "*n"]
    samples: ItemStreams | None = None


class Full(NamedTuple):
    """One matrix."""

    W: Float[Array, "*n d d"]


class Layers(NamedTuple):
    """Two matrices, with or without an activation between them."""

    F: Float[Array, "*n m d"]
    V: Float[Array, "*n m d"]


Weights = Full | Layers


def draw_pairs(program: Memory, keys: dict[str, UInt32[Array, "2"]], items: UInt32[Array, ""]) -> Pairs:
    """Draw the first `items` rows of the item stream, and all answers of the program."""
    make = embeddings.law_of(program.embedding)
    N, d = program.items, program.dim
    row = jnp.arange(N, dtype=jnp.uint32)
    E = make(Words(keys["item"], d), N, d)
    U = make(Words(keys["answer"], d), program.labels, d)
    label = row % jnp.uint32(program.outputs) if program.outputs else row
    return Pairs(jnp.where((row < items)[:, None], E, 0.0), U, label, items)


def draw_weights(program: Memory, keys: dict[str, UInt32[Array, "2"]]) -> Weights:
    """Initial weights: zero for one matrix, F ~ N(0, 1) and V ~ N(0, 1/m) for two.

    Our choice, as is F ~ N(0, 1/r) at low rank.
    """
    if program.full_rank:
        return Full(jnp.zeros((program.dim, program.dim)))
    rows = program.width or program.rank
    V = normal(keys["outer"], rows, program.dim).astype(float) / math.sqrt(rows)
    return Layers(_first_layer(program, keys), V)


def _first_layer(program: Memory, keys: dict[str, UInt32[Array, "2"]]) -> Float[Array, "m d"]:
    rows = program.width or program.rank
    F = normal(keys["inner"], rows, program.dim).astype(float)
    return F if program.width else F / math.sqrt(rows)


def construct(program: Memory, keys: dict[str, UInt32[Array, "2"]], pairs: Pairs) -> Weights:
    """The weights of the constructions that are sums over items, whose terms are weighted by N p_x."""
    answers = pairs.U[pairs.label]
    if program.frequencies != UNIFORM:
        answers = answers * (program.items * jnp.asarray(program.probabilities, answers.dtype))[:, None]
    if program.full_rank:
        return Full(answers.T @ pairs.E)
    F = _first_layer(program, keys)
    inner = pairs.E @ F.T
    if program.width:
        live = (jnp.arange(program.items, dtype=jnp.uint32) < pairs.items)[:, None]
        inner = jnp.where(live, _hermite(own_order(program), inner), 0.0) / program.width
    return Layers(F, inner.T @ answers)


def least_squares(E: np.ndarray, U: np.ndarray, label: np.ndarray) -> np.ndarray:
    """(U^T U)^+ (sum_x u e^T) (E^T E)^+, over the answers that occur.

    In NumPy: a call of LAPACK inside a compiled program can hang on few cores.
    """
    occurs = np.zeros(len(U))
    occurs[label] = 1.0
    used = U * occurs[:, None]
    return np.linalg.pinv(used.T @ used) @ (U[label].T @ E) @ np.linalg.pinv(E.T @ E)


def own_order(program: Memory) -> int:
    """The spec's Hermite order, or by default the larger of the activation's parts 2 and 3."""
    if program.order:
        return program.order
    if program.activation not in FORMULAS:
        raise SpecError(
            "order", f"expected a number, since the Hermite parts of {program.activation} are not derived, got none"
        )
    c = np.abs(coefficients(program.activation, np.ones(1), 4)[0])
    return 2 if c[2] >= c[3] else 3


def _hermite(order: int, a: Float[Array, "*n"]) -> Float[Array, "*n"]:
    """h_k by sqrt(k) h_k = a h_{k-1} - sqrt(k-1) h_{k-2}."""
    before, here = jnp.ones_like(a), a
    for k in range(2, order + 1):
        before, here = here, (a * here - math.sqrt(k - 1) * before) / math.sqrt(k)
    return here


def logits(program: Memory, pairs: Pairs, weights: Weights, E: Float[Array, "C d"]) -> Float[Array, "C M"]:
    """u_y^T x for these items; unused answers get -inf."""
    if isinstance(weights, Full):
        x = E @ weights.W.T
    else:
        inner = E @ weights.F.T
        x = (activations.named(program.activation)(inner) if program.width else inner) @ weights.V
    scores = x @ pairs.U.T
    if program.outputs:
        return scores
    return jnp.where(jnp.arange(len(pairs.U), dtype=jnp.uint32) < pairs.items, scores, -jnp.inf)
