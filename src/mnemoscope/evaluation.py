r"""What a trained model can do, measured on fresh sequences.

    accuracy             share of sequences whose largest logit is the label's
    attention accuracy   share whose largest attention weight is on the informative position; while
                         attention is uniform, what a random choice among equals gives, 1/L
    recall               accuracy among the sequences where attention is right
    map accuracy         share of the V tokens whose label comes first when attention is perfect:
                         argmax_y u_y^T Vmat h(x) = Pi*(x)
    margin               signal z_trig^T alpha, by which the trigger lifts the informative score,
                         against the standard deviation over tokens of z_v^T alpha, the scores that
                         compete with it
"""

from functools import partial
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int32

from mnemoscope.models.transformer import Frozen, attention_scores, hidden, pool
from mnemoscope.spec import Retrieval
from mnemoscope.tasks.retrieval import Batch
from mnemoscope.training.by_sample import uniform_pool
from mnemoscope.training.by_token import hard_attention, token_features
from mnemoscope.training.streaming import Source, chunk_by_sample, chunk_by_token, fold

Attend = Literal["uniform", "softmax", "argmax", "locked"]


class Hits(NamedTuple):
    """Sequences answered right, attended right, and both."""

    answered: Int32[Array, ""]
    attended: Int32[Array, ""]
    both: Int32[Array, ""]


class Margin(NamedTuple):
    """The trigger's score against the spread of the token scores."""

    signal: Float[Array, ""]
    std: Float[Array, ""]


def margin(frozen: Frozen, w: Float[Array, "d"]) -> Margin:
    """Signal z_trig^T w and the standard deviation of z_v^T w over tokens v."""
    return Margin(frozen.trigger @ w, jnp.std(frozen.Z @ w))


@partial(jax.jit, static_argnames=("spec",))
def answers_by_token(
    spec: Retrieval, frozen: Frozen, Vmat: Float[Array, "d h"]
) -> tuple[Int32[Array, "V"], Int32[Array, "V"]]:
    """The label named when all attention rests on a token: as noise, and as the informative one."""

    def best(features: Float[Array, "V h"]) -> Int32[Array, "V"]:
        return jnp.argmax(features @ Vmat.T @ frozen.U.T, axis=1).astype(jnp.int32)

    noise, informative = token_features(spec, frozen)
    if spec.trigger == "keys":
        return (same := best(noise)), same
    return best(noise), best(informative)


def map_accuracy(frozen: Frozen, answers: Int32[Array, "V"]) -> Float[Array, ""]:
    """Share of tokens whose answer under perfect attention is right."""
    return jnp.mean((answers == frozen.permutation).astype(frozen.Z.dtype))


@partial(jax.jit, static_argnames=("spec", "attend"))
def count_hits(
    spec: Retrieval, frozen: Frozen, source: Source, attend: Attend,
    Vmat: Float[Array, "d h"], w: Float[Array, "d"], samples: Array,
) -> Hits:  # fmt: skip
    """Hits over the first `samples` of a stream, for W_KQ z_EOS = w (a direction, for argmax)."""
    by_token = attend in ("argmax", "locked")
    tables = answers_by_token(spec, frozen, Vmat) if by_token else None
    s, s_trig = frozen.Z @ w, frozen.trigger @ w
    M = frozen.U @ Vmat

    def by_token_body(batch: Batch) -> tuple[Bool[Array, "B"], Bool[Array, "B"]]:
        assert tables is not None
        noise, attended = hard_attention(batch, s, s_trig)
        attended = attended | (attend == "locked")
        answer = jnp.where(attended, tables[1][batch.informative], tables[0][noise])
        return answer == batch.label, attended

    def by_sample_body(batch: Batch) -> tuple[Bool[Array, "B"], Bool[Array, "B"]]:
        if attend == "uniform":
            pooled = uniform_pool(spec, frozen, batch)
            attended = jnp.zeros(batch.label.shape, bool)
        else:
            scores = attention_scores(frozen, batch, w)
            pooled = pool(spec, frozen, batch, jax.nn.softmax(scores, axis=1))
            attended = jnp.argmax(scores, axis=1) == batch.position
        answer = jnp.argmax(hidden(spec, frozen, pooled) @ M.T, axis=1)
        return answer == batch.label, attended

    def body(hits: Hits, batch: Batch, live: Bool[Array, "B"]) -> Hits:
        answered, attended = by_token_body(batch) if by_token else by_sample_body(batch)
        new = (answered & live, attended & live, answered & attended & live)
        return Hits(*(old + jnp.sum(more, dtype=jnp.int32) for old, more in zip(hits, new, strict=True)))

    chunk = chunk_by_token(spec) if by_token else chunk_by_sample(spec)
    zero = Hits(*(jnp.zeros((), jnp.int32) for _ in range(3)))
    return fold(body, zero, source, jnp.uint32(0), samples, length=spec.length, chunk=chunk)
