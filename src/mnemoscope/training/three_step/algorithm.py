r"""Paper A's three empirical gradient steps, on the same N samples each time.

    V0 = 0, W0 = 0
    V1 = V0 - eta   grad_V Lhat(V0, W0)          find a first, blurred map from values to labels
    W1 = W0 - gamma grad_W Lhat(V1, W0)          use it to find where to look
    V2 = V1 - gamma grad_V Lhat(V1, W1)          look there, and store the map

At zero, attention is uniform over positions and predictions are uniform over labels: both are put
in, not computed. W1 = gamma alpha z_EOS^T has rank one, so alpha says all of it.

The limit eta -> 0, gamma -> infinity keeps directions, since scales no longer matter: there V1
stands for V1/eta, alpha for alpha/eta, W1 for the direction of an argmax, and V2 for V2/gamma.

Each step has a cheap form by token id (`by_token`, and `by_winner` for the last) where that is
exact and its tables fit, and a form by sample (`by_sample`) elsewhere. `reference` does the
same by plain autodiff.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from mnemoscope.engine.layout import Layout
from mnemoscope.models.retrieval import Frozen, Parameters
from mnemoscope.spec import Retrieval, SpecError
from mnemoscope.training.three_step import by_sample, by_token, by_winner
from mnemoscope.training.three_step.streaming import Count, Progress, Source


class ThreeSteps(NamedTuple):
    """What the steps leave: V1, the direction alpha of W1 = gamma alpha z_EOS^T, and V2.

    With locked attention only the last step is taken, so V1 and alpha are zero.
    """

    V1: Float[Array, "d h"]
    alpha: Float[Array, "d"]
    V2: Float[Array, "d h"]


class Rates(NamedTuple):
    """eta and gamma as numbers; 1 where the limit takes the scale away."""

    eta: Array | float
    gamma: Array | float

    @classmethod
    def of(cls, spec: Retrieval) -> "Rates":
        """The spec's step sizes."""
        eta, gamma = (1.0 if rate == "limit" else rate for rate in (spec.eta, spec.gamma))
        return cls(eta, gamma)


def train_three_steps(
    spec: Retrieval, layout: Layout, frozen: Frozen, source: Source, progress: Progress | None = None
) -> ThreeSteps:
    """The three steps for this spec: exact, in memory that does not grow with N.

    One compiled call where that is short; a call for every segment of every pass where it is long.
    """
    program, rates = spec.program(), Rates.of(spec)
    if not train_in_one_call(spec, layout):
        return three_steps(program, layout, frozen, source, spec.samples, rates, progress)
    learned = _in_one_call(program, layout, frozen, source, Count.of(spec.samples), rates)
    if progress is not None:
        jax.block_until_ready(learned)
        progress(passes(spec))
    return learned


def three_steps(
    program: Retrieval,
    layout: Layout,
    frozen: Frozen,
    source: Source,
    samples: int | Count,
    rates: Rates,
    progress: Progress | None = None,
) -> ThreeSteps:
    """The steps themselves. N, the rates and the seed are arguments: any of them will do for the
    one compiled program."""
    if not program.frozen_embeddings or program.triggers != 1:
        raise SpecError(
            "",
            "expected frozen embeddings and one trigger, which every form of the three steps builds on, "
            f"got {'frozen' if program.frozen_embeddings else 'trained'} embeddings and {program.triggers} triggers",
        )
    if program.attention == "locked":
        V1 = jnp.zeros((program.dim, program.width or program.dim), frozen.Z.dtype)
        alpha = jnp.zeros(program.dim, frozen.Z.dtype)
    else:
        train = (program, layout, frozen, source)
        gradient, counts = first_gradient(*train, samples, progress)
        V1 = rates.eta * gradient
        if counts is not None and program.eta == "limit":
            alpha = by_token.attention_direction(*train, counts, V1, samples, progress)
        else:
            alpha = by_sample.attention_direction(*train, V1, samples, progress)

    if program.gamma == "limit":
        V2 = by_winner.last_gradient(program, layout, frozen, source, V1, alpha, samples, progress)
    else:
        w = query_scale(frozen, rates) * alpha
        V2 = V1 + rates.gamma * by_sample.last_gradient(program, layout, frozen, source, V1, w, samples, progress)
    return ThreeSteps(V1, alpha, V2)


def first_gradient(
    program: Retrieval,
    layout: Layout,
    frozen: Frozen,
    source: Source,
    samples: int | Count,
    progress: Progress | None = None,
) -> tuple[Float[Array, "d h"], by_token.Counts | None]:
    """-grad_V Lhat(0, 0), and the counts behind it where it came from counts."""
    if program.width == 0 and layout.tables == "dense":
        counts = by_token.count_pairs(program, layout, source, samples, progress)
        return by_token.first_gradient(program, frozen, counts, samples), counts
    return by_sample.first_gradient(program, layout, frozen, source, samples, progress), None


_in_one_call = jax.jit(three_steps, static_argnames=("program", "layout", "progress"))


def query_scale(frozen: Frozen, rates: Rates) -> Array:
    """gamma |z_EOS|^2: attention scores are k_j^T W1 z_EOS = gamma |z_EOS|^2 k_j^T alpha."""
    return rates.gamma * (frozen.query @ frozen.query)


def train_in_one_call(spec: Retrieval, layout: Layout) -> bool:
    """Whether the work is short enough to need no word of progress and no chance to stop."""
    looked_up = spec.width == 0 and spec.eta == "limit" and layout.tables == "dense"
    each = spec.length if looked_up else by_sample.work(spec)
    return spec.samples * each <= layout.segment


def passes(spec: Retrieval) -> int:
    """How often the samples are gone through."""
    return 1 if spec.attention == "locked" else 3


def parameters_of(spec: Retrieval, frozen: Frozen, learned: ThreeSteps) -> Parameters:
    """V2 and W1 as matrices, at finite step sizes."""
    return Parameters(learned.V2, Rates.of(spec).gamma * jnp.outer(learned.alpha, frozen.query))
