r"""The one-layer transformer: logits from parameters.

    keys     k_j = z_{x_j} + 1{j = l} z_trig
    scores   s_j = k_j^T W_KQ z_EOS,           a = softmax(s)
    values   v_j = z_{x_j}  (trigger "keys")   or   v_j = k_j  (trigger "additive")
    pooled   h = sum_j a_j v_j
    logits   U Vmat h                          attention-only        Vmat is d x d
             U Vmat phi(W_in h)                attention-MLP         Vmat is d x m, W_in frozen

The placement of the trigger, phi and the law of W_in (i.i.d. N(0, 1)) are our choices.

Embeddings are frozen, so a key's score is a table by token id: (Z w)[x_j] + 1{j = l} z_trig^T w
with w = W_KQ z_EOS. No key is ever formed.

Worked example, V = 3, d = 2, z = ((1, 0), (0, 1), (1, 1)), z_trig = (2, 0), w = (1, 0), tokens
(1, 2), informative position 0: token scores Z w = (1, 0, 1), trigger score 2, so s = (0 + 2, 1)
and a = (0.73, 0.27). Under "keys" h = 0.73 (0, 1) + 0.27 (1, 1) = (0.27, 1); under "additive"
0.73 z_trig joins it, h = (1.73, 1).
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, UInt32

from mnemoscope import keys
from mnemoscope.embeddings import draw_embeddings
from mnemoscope.models.activations import named
from mnemoscope.spec import Retrieval
from mnemoscope.tasks.retrieval import Batch


class Frozen(NamedTuple):
    """Everything that training leaves as it was drawn. `W_in` is None without an MLP."""

    Z: Float[Array, "V d"]
    U: Float[Array, "V d"]
    trigger: Float[Array, "d"]
    query: Float[Array, "d"]
    W_in: Float[Array, "m d"] | None
    permutation: UInt32[Array, "V"]


class Parameters(NamedTuple):
    """What training changes: Vmat (d x d, or d x m with an MLP) and W_KQ."""

    value: Float[Array, "d h"]
    key_query: Float[Array, "d d"]


@partial(jax.jit, static_argnames=("spec", "law"))
def draw_frozen(
    spec: Retrieval,
    law: str,
    streams: dict[str, UInt32[Array, "2"]],
    dim: UInt32[Array, ""] | None = None,
) -> Frozen:
    """Embeddings of that law, W_in and the permutation from their streams.

    With `dim`, the dimension is that and spec.dim only the columns of the arrays.
    """
    made = draw_embeddings(law, spec.vocab, spec.dim, streams, dim)
    permutation = keys.permutation(streams["permutation"], spec.vocab)
    if spec.width == 0:
        return Frozen(*made, None, permutation)
    W_in = keys.normal(streams["hidden"], spec.width, spec.dim, dim).astype(float)
    return Frozen(*made, W_in, permutation)


def hidden(spec: Retrieval, frozen: Frozen, pooled: Float[Array, "*n d"]) -> Float[Array, "*n h"]:
    """What Vmat acts on: h itself, or phi(W_in h)."""
    if frozen.W_in is None:
        return pooled
    return named(spec.activation)(pooled @ frozen.W_in.T)


class Margin(NamedTuple):
    """The trigger's score against the spread of the token scores that compete with it."""

    signal: Float[Array, ""]
    std: Float[Array, ""]


def margin(frozen: Frozen, w: Float[Array, "d"]) -> Margin:
    """Signal z_trig^T w and the standard deviation of z_v^T w over tokens v, w = W_KQ z_EOS."""
    return Margin(frozen.trigger @ w, jnp.std(frozen.Z @ w))


def attention_scores(frozen: Frozen, batch: Batch, w: Float[Array, "d"]) -> Float[Array, "B L"]:
    """s_j = (Z w)[x_j] + 1{j = l} z_trig^T w, for w = W_KQ z_EOS."""
    trigger = jnp.where(batch.at_position, frozen.trigger @ w, 0)
    return (frozen.Z @ w)[batch.tokens] + trigger


def pool(
    spec: Retrieval, frozen: Frozen, batch: Batch, a: Float[Array, "B L"]
) -> Float[Array, "B d"]:
    """h = sum_j a_j v_j."""
    pooled = jnp.einsum("bj,bjd->bd", a, frozen.Z[batch.tokens])
    if spec.trigger == "additive":
        on_trigger = jnp.sum(jnp.where(batch.at_position, a, 0), axis=1)
        pooled = pooled + on_trigger[:, None] * frozen.trigger
    return pooled


def uniform_pool(spec: Retrieval, frozen: Frozen, batch: Batch) -> Float[Array, "B d"]:
    """xbar_i = (1/L) sum_j v_ij: what attention at zero sees."""
    pooled = frozen.Z[batch.tokens].mean(axis=1)
    if spec.trigger == "additive":
        pooled = pooled + frozen.trigger / spec.length
    return pooled


def hard_attention(
    batch: Batch, s: Float[Array, "V"], s_trig: Float[Array, ""]
) -> tuple[UInt32[Array, "B"], Bool[Array, "B"]]:
    """The best noise token of each sequence, and whether the informative one beats it.

    A position's score is s[x_j], plus s_trig at the informative one. Scores are compared through
    their ranks, whose maximum names the token at once; equal tokens tie, and have equal values.
    """
    order = jnp.argsort(s)
    rank = jnp.argsort(order).astype(jnp.int32)
    best = jnp.max(jnp.where(batch.at_position, -1, rank[batch.tokens]), axis=1)
    noise = order[best].astype(jnp.uint32)
    wins = (best < 0) | (s[batch.informative] + s_trig >= s[noise])
    return noise, wins


def token_features(
    spec: Retrieval, frozen: Frozen
) -> tuple[Float[Array, "V h"], Float[Array, "V h"]]:
    """What Vmat sees of a token on which all attention rests: as noise, and as the informative
    one, which carries the trigger where that is in the values."""
    noise = hidden(spec, frozen, frozen.Z)
    if spec.trigger == "additive":
        return noise, hidden(spec, frozen, frozen.Z + frozen.trigger)
    return noise, noise


def forward(
    spec: Retrieval, frozen: Frozen, parameters: Parameters, batch: Batch
) -> tuple[Float[Array, "B V"], Float[Array, "B L"]]:
    """The logits of a batch, and the attention scores behind them."""
    scores = attention_scores(frozen, batch, parameters.key_query @ frozen.query)
    features = hidden(spec, frozen, pool(spec, frozen, batch, jax.nn.softmax(scores, axis=1)))
    return features @ parameters.value.T @ frozen.U.T, scores
