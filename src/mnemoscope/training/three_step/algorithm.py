r"""Paper A's three empirical gradient steps, on the same N samples each time.

    V0 = 0, W0 = 0
    V1 = V0 - eta   grad_V Lhat(V0, W0)          find a first, blurred map from values to labels
    W1 = W0 - gamma grad_W Lhat(V1, W0)          use it to find where to look
    V2 = V1 - gamma grad_V Lhat(V1, W1)          look there, and store the map

At zero, attention is uniform over positions and predictions are uniform over labels; both are
inserted, not computed. W1 = gamma alpha z_EOS^T has rank one, so alpha determines it.

In the limit eta -> 0, gamma -> infinity only directions matter: V1 then means V1/eta, alpha means
alpha/eta, W1 the direction of an argmax, and V2 means V2/gamma.

Each step has a cheap form by token id (`by_token`, and `by_winner` for the last) where that is exact
and its tables fit, and a form by sample (`by_sample`) elsewhere. `reference` computes the same steps
by plain automatic differentiation.
"""

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from mnemoscope.engine.device import Place
from mnemoscope.engine.layout import Layout
from mnemoscope.models.retrieval import Frozen, Parameters
from mnemoscope.spec import Retrieval, SpecError
from mnemoscope.training.three_step import by_sample, by_token, by_winner
from mnemoscope.training.three_step.streaming import Count, Progress, Samples, Segments, Source


class ThreeSteps(NamedTuple):
    """The result of the steps: V1, the direction alpha of W1 = gamma alpha z_EOS^T, and V2.

    Locked attention takes only the last step, so V1 and alpha are zero.
    """

    V1: Float[Array, "d h"]
    alpha: Float[Array, "d"]
    V2: Float[Array, "d h"]


class Rates(NamedTuple):
    """eta and gamma as numbers; 1 in the limit, where the scale drops out."""

    eta: Array | float
    gamma: Array | float

    @classmethod
    def of(cls, spec: Retrieval) -> "Rates":
        """The spec's step sizes."""
        eta, gamma = (1.0 if rate == "limit" else rate for rate in (spec.eta, spec.gamma))
        return cls(eta, gamma)


@lru_cache(maxsize=64)
def _program_of(spec: Retrieval) -> Retrieval:
    """What a call is compiled for; making it again for every call takes as long as a short call."""
    return spec.program()


@lru_cache(maxsize=64)
def _one_call(program: Retrieval, layout: Layout) -> Callable[..., ThreeSteps]:
    """The steps as one compiled call. JAX would compare static arguments at every call, which takes as long as one."""
    return jax.jit(partial(three_steps, program, layout))


@lru_cache(maxsize=64)
def _numbers_on(place: Place, dtype: Any, spec: Retrieval) -> tuple[Count, Rates]:
    """N and the rates as arrays on a device, kept there: moving them takes a GPU longer than some of the steps."""
    rates = (jnp.asarray(rate, dtype) for rate in Rates.of(spec))
    return jax.device_put((Count.of(spec.samples), Rates(*rates)), place)


def train_three_steps(
    spec: Retrieval, layout: Layout, frozen: Frozen, source: Source, progress: Progress | None = None
) -> ThreeSteps:
    """Take the three steps of this spec: exactly, in memory that does not grow with N.

    Short work is one compiled call; long work is a call for every segment of every pass.
    """
    program = _program_of(spec)
    if not train_in_one_call(spec, layout):
        return three_steps(program, layout, frozen, source, Segments(spec.samples, progress), Rates.of(spec))
    (place,) = frozen.Z.devices()
    learned = _one_call(program, layout)(frozen, source, *_numbers_on(place, frozen.Z.dtype, spec))
    if progress is not None:
        jax.block_until_ready(learned)
        progress(passes(spec))
    return learned


def three_steps(
    program: Retrieval, layout: Layout, frozen: Frozen, source: Source, samples: Samples, rates: Rates
) -> ThreeSteps:
    """The steps themselves. N, the rates and the seed are arguments, so one compiled program serves all of them."""
    if not program.frozen_embeddings or program.triggers != 1:
        raise SpecError(
            "",
            "expected frozen embeddings and one trigger, which every form of the three steps assumes, "
            f"got {'frozen' if program.frozen_embeddings else 'trained'} embeddings and {program.triggers} triggers",
        )
    if program.attention == "locked":
        V1 = jnp.zeros((program.dim, program.width or program.dim), frozen.Z.dtype)
        alpha = jnp.zeros(program.dim, frozen.Z.dtype)
    else:
        gradient, counts = first_gradient(program, layout, frozen, source, samples)
        V1 = rates.eta * gradient
        if counts is not None and program.eta == "limit":
            alpha = by_token.attention_direction(program, layout, frozen, source, counts, V1, samples)
        else:
            alpha = by_sample.attention_direction(program, layout, frozen, source, V1, samples)

    if program.gamma == "limit":
        V2 = by_winner.last_gradient(program, layout, frozen, source, V1, alpha, samples)
    else:
        w = query_scale(frozen, rates) * alpha
        V2 = V1 + rates.gamma * by_sample.last_gradient(program, layout, frozen, source, V1, w, samples)
    return ThreeSteps(V1, alpha, V2)


def first_gradient(
    program: Retrieval, layout: Layout, frozen: Frozen, source: Source, samples: Samples
) -> tuple[Float[Array, "d h"], by_token.Counts | None]:
    """-grad_V Lhat(0, 0), and the counts it was computed from, if it was."""
    if program.width == 0 and layout.tables == "dense":
        counts = by_token.count_pairs(program, layout, source, samples)
        return by_token.first_gradient(program, layout, frozen, counts, samples), counts
    return by_sample.first_gradient(program, layout, frozen, source, samples), None


def query_scale(frozen: Frozen, rates: Rates) -> Array:
    """gamma |z_EOS|^2: attention scores are k_j^T W1 z_EOS = gamma |z_EOS|^2 k_j^T alpha."""
    return rates.gamma * (frozen.query @ frozen.query)


def train_in_one_call(spec: Retrieval, layout: Layout) -> bool:
    """Whether the work is short enough to need no progress report and no chance to stop."""
    by_table = spec.width == 0 and spec.eta == "limit" and layout.tables == "dense"
    work_per_sample = spec.length if by_table else by_sample.work(spec)
    return spec.samples * work_per_sample <= layout.segment


def passes(spec: Retrieval) -> int:
    """The number of passes over the samples."""
    return 1 if spec.attention == "locked" else 3


def parameters_of(frozen: Frozen, learned: ThreeSteps, rates: Rates) -> Parameters:
    """V2 and W1 as matrices, at finite step sizes."""
    return Parameters(learned.V2, rates.gamma * jnp.outer(learned.alpha, frozen.query))
