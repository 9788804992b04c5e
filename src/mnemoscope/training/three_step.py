r"""Paper A's three empirical gradient steps, on the same N samples each time.

    V0 = 0, W0 = 0
    V1 = V0 - eta   grad_V Lhat(V0, W0)          find a first, blurred map from values to labels
    W1 = W0 - gamma grad_W Lhat(V1, W0)          use it to find where to look
    V2 = V1 - gamma grad_V Lhat(V1, W1)          look there, and store the map

At zero, attention is uniform over positions and predictions are uniform over labels: both are put
in, not computed. W1 = gamma alpha z_EOS^T has rank one, so alpha says all of it.

The limit eta -> 0, gamma -> infinity keeps directions, since scales no longer matter: there V1
stands for V1/eta, alpha for alpha/eta, W1 for the direction of an argmax, and V2 for V2/gamma.

Each step has a cheap form by token id (`by_token`) where that is exact, and a form by sample
(`by_sample`) elsewhere. `reference` does the same by plain autodiff.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from mnemoscope.models.transformer import Frozen, Parameters
from mnemoscope.spec import Retrieval
from mnemoscope.training import by_sample, by_token
from mnemoscope.training.streaming import Progress, Source


class ThreeSteps(NamedTuple):
    """What the steps leave: V1, the direction alpha of W1 = gamma alpha z_EOS^T, and V2.

    With locked attention only the last step is taken, so V1 and alpha are zero.
    """

    V1: Float[Array, "d h"]
    alpha: Float[Array, "d"]
    V2: Float[Array, "d h"]


def train_three_steps(
    spec: Retrieval, frozen: Frozen, source: Source, progress: Progress | None = None
) -> ThreeSteps:
    """The three steps for this spec: exact, in memory that does not grow with N."""
    program, N = spec.program(), spec.samples
    eta = 1.0 if spec.eta == "limit" else spec.eta

    if spec.attention == "locked":
        V1 = jnp.zeros((spec.dim, spec.width or spec.dim), frozen.Z.dtype)
        alpha = jnp.zeros(spec.dim, frozen.Z.dtype)
    elif spec.width == 0:
        counts = by_token.count_pairs(program, source, N, progress)
        V1 = eta * by_token.first_gradient(program, frozen, counts, float(N))
        if spec.eta == "limit":
            alpha = by_token.attention_direction(program, frozen, source, counts, V1, N, progress)
        else:
            alpha = by_sample.attention_direction(program, frozen, source, V1, N, progress)
    else:
        V1 = eta * by_sample.first_gradient(program, frozen, source, N, progress)
        alpha = by_sample.attention_direction(program, frozen, source, V1, N, progress)

    if spec.gamma == "limit":
        winners = by_token.count_winners(program, frozen, source, alpha, N, progress)
        V2 = by_token.last_gradient(program, frozen, winners, V1, float(N))
    else:
        w = query_scale(spec, frozen) * alpha
        V2 = V1 + spec.gamma * by_sample.last_gradient(program, frozen, source, V1, w, N, progress)
    return ThreeSteps(V1, alpha, V2)


def query_scale(spec: Retrieval, frozen: Frozen) -> Float[Array, ""]:
    """gamma |z_EOS|^2: attention scores are k_j^T W1 z_EOS = gamma |z_EOS|^2 k_j^T alpha."""
    assert spec.gamma != "limit"
    return spec.gamma * (frozen.query @ frozen.query)


def parameters_of(spec: Retrieval, frozen: Frozen, learned: ThreeSteps) -> Parameters:
    """V2 and W1 as matrices, at finite step sizes."""
    assert spec.gamma != "limit"
    return Parameters(learned.V2, spec.gamma * jnp.outer(learned.alpha, frozen.query))
