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

from mnemoscope.engine import random
from mnemoscope.models.activations import named
from mnemoscope.models.embeddings import draw_embeddings
from mnemoscope.spec import Retrieval
from mnemoscope.tasks.retrieval import Batch

# Numbers up to this many units of rounding apart count as equal.
TIED = 64


class Frozen(NamedTuple):
    """Everything that training does not change. `W_in` is None without an MLP."""

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
    spec: Retrieval, law: str, streams: dict[str, UInt32[Array, "2"]], dim: UInt32[Array, ""] | None = None
) -> Frozen:
    """Draw the embeddings of a law, W_in and the permutation from their streams.

    If `dim` is given, it is the dimension, and spec.dim only the number of columns.
    """
    vectors = draw_embeddings(law, spec.vocab, spec.dim, streams, dim)
    permutation = random.permutation(streams["permutation"], spec.vocab)
    if spec.width == 0:
        return Frozen(*vectors, None, permutation)
    W_in = random.normal(streams["hidden"], spec.width, spec.dim, dim).astype(float)
    return Frozen(*vectors, W_in, permutation)


def hidden(spec: Retrieval, frozen: Frozen, pooled: Float[Array, "*n d"]) -> Float[Array, "*n h"]:
    """The features that Vmat acts on: h itself, or phi(W_in h)."""
    if frozen.W_in is None:
        return pooled
    return named(spec.activation)(pooled @ frozen.W_in.T)


class Margin(NamedTuple):
    """The trigger's score, and the spread of the token scores that compete with it."""

    signal: Float[Array, ""]
    std: Float[Array, ""]


def margin(frozen: Frozen, w: Float[Array, "d"]) -> Margin:
    """Signal z_trig^T w and the standard deviation of z_v^T w over tokens v, w = W_KQ z_EOS."""
    return Margin(frozen.trigger @ w, jnp.std(frozen.Z @ w))


def attention_scores(frozen: Frozen, batch: Batch, w: Float[Array, "d"]) -> Float[Array, "B L"]:
    """s_j = (Z w)[x_j] + 1{j = l} z_trig^T w, for w = W_KQ z_EOS."""
    trigger = jnp.where(batch.at_position, frozen.trigger @ w, 0)
    return (frozen.Z @ w)[batch.tokens] + trigger


def pool(spec: Retrieval, frozen: Frozen, batch: Batch, a: Float[Array, "B L"]) -> Float[Array, "B d"]:
    """h = sum_j a_j v_j."""
    pooled = jnp.einsum("bj,bjd->bd", a, frozen.Z[batch.tokens])
    if spec.trigger == "additive":
        on_trigger = jnp.sum(jnp.where(batch.at_position, a, 0), axis=1)
        pooled = pooled + on_trigger[:, None] * frozen.trigger
    return pooled


def uniform_pool(spec: Retrieval, frozen: Frozen, batch: Batch) -> Float[Array, "B d"]:
    """xbar_i = (1/L) sum_j v_ij: the pooled value under uniform attention."""
    pooled = frozen.Z[batch.tokens].mean(axis=1)
    if spec.trigger == "additive":
        pooled = pooled + frozen.trigger / spec.length
    return pooled


def rounding(scale: Float[Array, "*n"]) -> Float[Array, "*n"]:
    """How far apart two numbers of this scale may be and still count as equal.

    Sums that should be equal differ in their last digits, which depend on the order of terms. Without
    overlaps (orthonormal embeddings) logits are counts, and exact ties are common: they differ by up
    to 30 units of rounding, while counts that differ by one are thousands of units apart.
    """
    return TIED * jnp.finfo(scale.dtype).eps * scale


class Scores(NamedTuple):
    """The scores of every token and of the trigger under the direction w, in units of rounding.

    Scores that are equal up to rounding are exactly equal here.
    """

    token: Float[Array, "V"]
    trigger: Float[Array, ""]

    @classmethod
    def of(cls, frozen: Frozen, w: Float[Array, "d"]) -> "Scores":
        """z_v^T w and z_trig^T w, with one shared score for tokens that tie.

        Neighbouring scores within a unit of each other form a group. A group no wider than a unit is
        a tie, and takes its smallest score: rounding to a grid alone would split a tie across an
        edge of the grid. Where scores are so dense that groups are wider, they are rounded.
        """
        longest = jnp.max(jnp.linalg.norm(frozen.Z, axis=1))
        unit = rounding(jnp.linalg.norm(w) * jnp.maximum(longest, jnp.linalg.norm(frozen.trigger)))
        unit = jnp.where(unit > 0, unit, 1)
        scores = frozen.Z @ w / unit
        order = jnp.argsort(scores)
        ascending = scores[order]
        group = jnp.cumsum(jnp.diff(ascending, prepend=ascending[:1]) > 1)
        low, high = (
            reduce(ascending, group, ascending.shape[0], indices_are_sorted=True)[group]
            for reduce in (jax.ops.segment_min, jax.ops.segment_max)
        )
        shared = jnp.where(high - low <= 1, low, jnp.round(ascending))
        return cls(jnp.zeros_like(scores).at[order].set(shared), frozen.trigger @ w / unit)


def hard_attention(batch: Batch, scores: Scores) -> tuple[UInt32[Array, "B"], Bool[Array, "B"]]:
    """The best noise token of each sequence, and whether the informative one beats it.

    A position's score is its token's, plus the trigger's at the informative position. Scores are
    compared by rank, whose maximum identifies the token. Among tied noise tokens the largest token
    number wins, and the informative token wins every tie.
    """
    order = jnp.argsort(scores.token, stable=True)
    rank = jnp.argsort(order).astype(jnp.int32)
    ranks = jnp.where(batch.at_position, -1, rank[batch.tokens])
    # Both halves of a sequence side by side, which a CPU does without branches. Branches that it guesses
    # wrong, as where a frequent token has the highest rank, cost more than all else here.
    half = -(-ranks.shape[1] // 2)
    best = jnp.max(jnp.maximum(ranks[:, :half], ranks[:, -half:]), axis=1)
    noise = order[best].astype(jnp.uint32)
    # Two scores that are equal up to rounding are at most a unit apart.
    lead = scores.token[batch.informative] + scores.trigger - scores.token[noise]
    return noise, (best < 0) | (lead >= -1)


def attention_tied(batch: Batch, scores: Scores) -> Bool[Array, "B"]:
    """Whether a tie rule decided attention: between the informative token and the best noise token,
    or, if noise has won, between several noise tokens."""
    at = batch.at_position
    position = jnp.where(at, -jnp.inf, scores.token[batch.tokens])
    best = jnp.max(position, axis=1)
    among = ~at & (position == best[:, None])
    first = jnp.min(jnp.where(among, batch.tokens, jnp.uint32(scores.token.shape[0])), axis=1)
    last = jnp.max(jnp.where(among, batch.tokens, jnp.uint32(0)), axis=1)
    lead = scores.token[batch.informative] + scores.trigger - best
    return (jnp.abs(lead) <= 1) | ((lead < -1) & (first != last))


def name_label(
    logits: Float[Array, "*n V"], scale: Float[Array, "*n"]
) -> tuple[UInt32[Array, "*n"], Bool[Array, "*n"]]:
    """The label with the largest logit, and whether others tie with it up to rounding.

    `scale` bounds the size of the logits. The first of several tied labels is named.
    """
    near = logits >= (jnp.max(logits, axis=-1) - rounding(scale))[..., None]
    return jnp.argmax(near, axis=-1).astype(jnp.uint32), jnp.sum(near, axis=-1) > 1


def token_features(spec: Retrieval, frozen: Frozen) -> tuple[Float[Array, "V h"], Float[Array, "V h"]]:
    """The features of a token that has all attention: as noise, and as the informative one, which
    includes the trigger if that is in the values."""
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
