r"""The three steps by plain automatic differentiation, simple enough to check by eye.

This is slow, and shares only the data, the embeddings and the activations with the fast path: keys and
values are formed for every position (an N x L x d array), the loss is the mean cross-entropy over all
samples at once, and the gradients are its `jax.grad`.

The limits need no small or large number. As eta -> 0, grad_W Lhat(eta V1, 0)/eta tends to the
derivative of grad_W Lhat along V1 at zero, which `jax.jvp` gives exactly. As gamma -> infinity,
attention is the argmax of the scores, and V2/gamma tends to the third step's gradient.
"""

from functools import partial

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from mnemoscope.models.activations import named
from mnemoscope.models.retrieval import Frozen
from mnemoscope.spec import Retrieval
from mnemoscope.tasks.retrieval import Batch
from mnemoscope.training.three_step.algorithm import ThreeSteps


def logits(spec: Retrieval, frozen: Frozen, Vmat: Array, W: Array, batch: Batch, attend: str) -> Float[Array, "B V"]:
    """The model as defined in `models.retrieval`; `attend` is softmax, argmax or locked."""
    tokens = frozen.Z[batch.tokens]
    at_trigger = batch.at_position[:, :, None] * frozen.trigger
    k = tokens + at_trigger
    v = k if spec.trigger == "additive" else tokens
    # W z_EOS first: k W would multiply an N x L x d array by a d x d matrix.
    scores = k @ (W @ frozen.query)
    if attend == "softmax":
        a = jax.nn.softmax(scores, axis=1)
    elif attend == "argmax":
        a = jax.nn.one_hot(jnp.argmax(scores, axis=1), spec.length, dtype=scores.dtype)
    else:
        a = batch.at_position.astype(scores.dtype)
    pooled = jnp.einsum("bj,bjd->bd", a, v)
    features = pooled if frozen.W_in is None else named(spec.activation)(pooled @ frozen.W_in.T)
    return features @ Vmat.T @ frozen.U.T


def loss(
    Vmat: Array, W: Array, spec: Retrieval, frozen: Frozen, batch: Batch, attend: str = "softmax"
) -> Float[Array, ""]:
    """Lhat: cross-entropy averaged over the samples."""
    log_p = jax.nn.log_softmax(logits(spec, frozen, Vmat, W, batch, attend), axis=1)
    return -jnp.mean(jnp.take_along_axis(log_p, batch.label[:, None], axis=1))


@partial(jax.jit, static_argnames=("spec",))
def train_by_autodiff(spec: Retrieval, frozen: Frozen, batch: Batch) -> ThreeSteps:
    """V1, alpha and V2 of `spec` on these samples, in the scales of `ThreeSteps`."""
    V0 = jnp.zeros((spec.dim, spec.width or spec.dim), frozen.Z.dtype)
    W0 = jnp.zeros((spec.dim, spec.dim), frozen.Z.dtype)
    grad_V = partial(jax.grad(loss, argnums=0), spec=spec, frozen=frozen, batch=batch)
    grad_W = partial(jax.grad(loss, argnums=1), spec=spec, frozen=frozen, batch=batch)

    if spec.attention == "locked":
        return ThreeSteps(V0, jnp.zeros(spec.dim, V0.dtype), -grad_V(V0, W0, attend="locked"))

    if spec.eta == "limit":
        V1 = -grad_V(V0, W0)
        _, slope = jax.jvp(lambda Vmat: grad_W(Vmat, W0), (V0,), (V1,))
        step_W = -slope
    else:
        V1 = V0 - spec.eta * grad_V(V0, W0)
        step_W = -grad_W(V1, W0)
    alpha = step_W @ frozen.query / (frozen.query @ frozen.query)

    if spec.gamma == "limit":
        V = V0 if spec.eta == "limit" else V1
        V2 = -grad_V(V, step_W, attend="argmax")
    else:
        V2 = V1 - spec.gamma * grad_V(V1, W0 + spec.gamma * step_W)
    return ThreeSteps(V1, alpha, V2)
