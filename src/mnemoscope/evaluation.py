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

from collections.abc import Callable
from functools import partial
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, UInt32

from mnemoscope.models.transformer import Frozen, attention_scores, hidden, pool
from mnemoscope.spec import Retrieval
from mnemoscope.tasks.retrieval import Batch
from mnemoscope.training.by_sample import uniform_pool
from mnemoscope.training.by_token import hard_attention, token_features
from mnemoscope.training.streaming import Source, chunk_by_sample, chunk_by_token, fold

Attend = Literal["uniform", "softmax", "argmax", "locked"]


class Hits(NamedTuple):
    """Sequences answered right, attended right, and both."""

    answered: UInt32[Array, ""]
    attended: UInt32[Array, ""]
    both: UInt32[Array, ""]


class Answers(NamedTuple):
    """The label named when all attention rests on a token: as noise, and as the informative one."""

    noise: UInt32[Array, "V"]
    informative: UInt32[Array, "V"]


@partial(jax.jit, static_argnames=("spec",))
def answers_by_token(spec: Retrieval, frozen: Frozen, Vmat: Float[Array, "d h"]) -> Answers:
    """argmax_y u_y^T Vmat h for every token."""

    def best(features: Float[Array, "V h"]) -> UInt32[Array, "V"]:
        return jnp.argmax(features @ Vmat.T @ frozen.U.T, axis=1).astype(jnp.uint32)

    noise, informative = token_features(spec, frozen)
    if spec.trigger == "keys":
        return Answers((same := best(noise)), same)
    return Answers(best(noise), best(informative))


def map_accuracy(frozen: Frozen, answers: Answers) -> Float[Array, ""]:
    """Share of tokens whose answer under perfect attention is right."""
    return jnp.mean((answers.informative == frozen.permutation).astype(frozen.Z.dtype))


@partial(jax.jit, static_argnames=("spec", "attend"))
def hits_by_token(
    spec: Retrieval, frozen: Frozen, source: Source, attend: Literal["argmax", "locked"],
    answers: Answers, w: Float[Array, "d"], samples: Array,
) -> Hits:  # fmt: skip
    """Hits over the first `samples` of a stream where attention rests on one token."""
    s, s_trig = frozen.Z @ w, frozen.trigger @ w

    def judge(batch: Batch) -> tuple[Bool[Array, "B"], Bool[Array, "B"]]:
        noise, attended = hard_attention(batch, s, s_trig)
        attended = attended | (attend == "locked")
        answer = jnp.where(attended, answers.informative[batch.informative], answers.noise[noise])
        return answer == batch.label, attended

    return _count_hits(judge, source, samples, spec.length, chunk_by_token(spec))


@partial(jax.jit, static_argnames=("spec", "attend"))
def hits_by_sample(
    spec: Retrieval, frozen: Frozen, source: Source, attend: Literal["uniform", "softmax"],
    Vmat: Float[Array, "d h"], w: Float[Array, "d"], samples: Array,
) -> Hits:  # fmt: skip
    """Hits over the first `samples` of a stream where attention mixes tokens; w = W_KQ z_EOS."""
    M = frozen.U @ Vmat

    def judge(batch: Batch) -> tuple[Bool[Array, "B"], Bool[Array, "B"]]:
        if attend == "uniform":
            pooled = uniform_pool(spec, frozen, batch)
            attended = jnp.zeros(batch.label.shape, bool)
        else:
            scores = attention_scores(frozen, batch, w)
            pooled = pool(spec, frozen, batch, jax.nn.softmax(scores, axis=1))
            attended = jnp.argmax(scores, axis=1).astype(jnp.uint32) == batch.position
        answer = jnp.argmax(hidden(spec, frozen, pooled) @ M.T, axis=1)
        return answer.astype(jnp.uint32) == batch.label, attended

    return _count_hits(judge, source, samples, spec.length, chunk_by_sample(spec))


def _count_hits(
    judge: Callable[[Batch], tuple[Bool[Array, "B"], Bool[Array, "B"]]],
    source: Source,
    samples: Array,
    length: int,
    chunk: int,
) -> Hits:
    def body(hits: Hits, batch: Batch, live: Bool[Array, "B"]) -> Hits:
        answered, attended = judge(batch)
        more = Hits(answered & live, attended & live, answered & attended & live)
        return jax.tree.map(lambda old, new: old + jnp.sum(new, dtype=jnp.uint32), hits, more)

    zero = Hits(*(jnp.zeros((), jnp.uint32) for _ in Hits._fields))
    return fold(body, zero, source, jnp.uint32(0), samples, length=length, chunk=chunk)
