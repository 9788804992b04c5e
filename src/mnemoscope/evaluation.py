r"""What a trained model can do, measured on fresh sequences.

accuracy             share of sequences whose largest logit is the label's
attention accuracy   share whose largest attention weight is on the informative position; while
                     attention is uniform, what a random choice among equals gives, 1/L
recall               accuracy among the sequences where attention is right
map accuracy         share of the V tokens whose label comes first when attention is perfect:
                     argmax_y u_y^T Vmat h(x) = Pi*(x)
margin               signal z_trig^T w, by which the trigger lifts the informative score, against
                     the standard deviation over tokens of z_v^T w, the scores that compete with
                     it. w is W_KQ z_EOS, or alpha as gamma -> infinity: only the ratio compares
                     across step sizes
"""

from collections.abc import Callable
from functools import partial
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, UInt32

from mnemoscope.layout import Layout
from mnemoscope.models.transformer import (
    Frozen,
    Margin,
    attention_scores,
    hard_attention,
    hidden,
    margin,
    pool,
    token_features,
    uniform_pool,
)
from mnemoscope.spec import Retrieval
from mnemoscope.tasks.retrieval import Batch
from mnemoscope.training.streaming import Count, Source, Span, fold
from mnemoscope.training.three_step import Rates, ThreeSteps, query_scale

Attend = Literal["uniform", "softmax", "argmax", "locked"]

# Fresh sequences, at most, for the accuracy after the first step: attention is still uniform then,
# every sequence costs a product with the whole vocabulary, and the answer is close to chance.
UNIFORM_SAMPLES = 256


class Hits(NamedTuple):
    """Sequences answered right, attended right, and both; a number for each set of answers."""

    answered: UInt32[Array, "*k"]
    attended: UInt32[Array, "*k"]
    both: UInt32[Array, "*k"]


class Answers(NamedTuple):
    """The label named when all attention rests on a token: as noise, and as the informative one.

    Stacked, where several models share their attention.
    """

    noise: UInt32[Array, "*k V"]
    informative: UInt32[Array, "*k V"]


def answers_by_token(
    program: Retrieval, layout: Layout, frozen: Frozen, Vmat: Float[Array, "d h"]
) -> Answers:
    """argmax_y u_y^T Vmat h for every token, with the logits of one block of tokens at a time."""

    def best(features: Float[Array, "V h"]) -> UInt32[Array, "V"]:
        values = features @ Vmat.T
        named = jax.lax.map(lambda v: jnp.argmax(frozen.U @ v), values, batch_size=layout.rows)
        return named.astype(jnp.uint32)

    noise, informative = token_features(program, frozen)
    if program.trigger == "keys":
        return Answers((same := best(noise)), same)
    return Answers(best(noise), best(informative))


def map_accuracy(frozen: Frozen, answers: Answers) -> Float[Array, ""]:
    """Share of tokens whose answer under perfect attention is right."""
    return jnp.mean((answers.informative == frozen.permutation).astype(frozen.Z.dtype))


def hits_by_token(
    program: Retrieval, layout: Layout, frozen: Frozen, source: Source,
    attend: Literal["argmax", "locked"], answers: Answers, w: Float[Array, "d"], count: Count,
) -> Hits:  # fmt: skip
    """Hits over the first `samples` of a stream where attention rests on one token."""
    s, s_trig = frozen.Z @ w, frozen.trigger @ w

    def judge(batch: Batch) -> tuple[Bool[Array, "*k B"], Bool[Array, "*k B"]]:
        noise, attended = hard_attention(batch, s, s_trig)
        attended = attended | (attend == "locked")
        own, other = answers.informative[..., batch.informative], answers.noise[..., noise]
        answered = jnp.where(attended, own, other) == batch.label
        return answered, jnp.broadcast_to(attended, answered.shape)

    models = answers.noise.shape[:-1]
    return _count_hits(judge, source, count, program.length, layout.by_token, models)


def hits_by_sample(
    program: Retrieval, layout: Layout, frozen: Frozen, source: Source,
    attend: Literal["uniform", "softmax"], Vmat: Float[Array, "d h"], w: Float[Array, "d"],
    count: Count,
) -> Hits:  # fmt: skip
    """Hits over the first `samples` of a stream where attention mixes tokens; w = W_KQ z_EOS."""
    M = frozen.U @ Vmat

    def judge(batch: Batch) -> tuple[Bool[Array, "B"], Bool[Array, "B"]]:
        if attend == "uniform":
            pooled = uniform_pool(program, frozen, batch)
            attended = jnp.zeros(batch.label.shape, bool)
        else:
            scores = attention_scores(frozen, batch, w)
            pooled = pool(program, frozen, batch, jax.nn.softmax(scores, axis=1))
            attended = jnp.argmax(scores, axis=1).astype(jnp.uint32) == batch.position
        answer = jnp.argmax(hidden(program, frozen, pooled) @ M.T, axis=1)
        return answer.astype(jnp.uint32) == batch.label, attended

    # A chunk is worked through whole, however few of its sequences count.
    chunk = min(layout.by_sample, UNIFORM_SAMPLES) if attend == "uniform" else layout.by_sample
    return _count_hits(judge, source, count, program.length, chunk)


class Look(NamedTuple):
    """All that is measured of a model, as arrays; `Step` in `record` is its readable form."""

    hits: Hits
    samples: UInt32[Array, ""]
    map_accuracy: Float[Array, ""]
    margin: Margin


def look(
    program: Retrieval, layout: Layout, frozen: Frozen, test: Source, attend: Attend,
    Vmat: Float[Array, "d h"], w: Float[Array, "d"], count: Count, answers: Answers | None = None,
) -> Look:  # fmt: skip
    """The model with Vmat and W_KQ z_EOS = w (its direction, for argmax) on fresh sequences.

    `answers`, where the caller has them for this Vmat, are not asked for again.
    """
    if answers is None:
        answers = answers_by_token(program, layout, frozen, Vmat)
    if attend == "argmax" or attend == "locked":
        hits = hits_by_token(program, layout, frozen, test, attend, answers, w, count)
    else:
        if attend == "uniform":
            count = Count(*(jnp.minimum(part, UNIFORM_SAMPLES) for part in count))
        hits = hits_by_sample(program, layout, frozen, test, attend, Vmat, w, count)
    return Look(hits, count.samples, map_accuracy(frozen, answers), margin(frozen, w))


def look_at_steps(
    program: Retrieval, layout: Layout, frozen: Frozen, test: Source, learned: ThreeSteps,
    rates: Rates, count: Count,
) -> dict[str, Look]:  # fmt: skip
    """The model after each of the three steps; with locked attention there is only the last."""
    seen = partial(look, program, layout, frozen, test)
    if program.attention == "locked":
        return {"V2": seen("locked", learned.V2, learned.alpha, count)}
    attend: Attend = "argmax" if program.gamma == "limit" else "softmax"
    w = learned.alpha if attend == "argmax" else query_scale(frozen, rates) * learned.alpha
    first, last = (
        answers_by_token(program, layout, frozen, values) for values in (learned.V1, learned.V2)
    )
    looks = {"V1": seen("uniform", learned.V1, w, count, first)}
    if attend == "softmax":
        looks["W1"] = seen(attend, learned.V1, w, count, first)
        return looks | {"V2": seen(attend, learned.V2, w, count, last)}
    # W1 and V2 attend to the same tokens: each sequence is drawn and attended to once for both.
    stacked = Answers(*(jnp.stack(pair) for pair in zip(first, last, strict=True)))
    hits = hits_by_token(program, layout, frozen, test, attend, stacked, w, count)
    for at, (name, answers) in enumerate((("W1", first), ("V2", last))):
        own = Hits(*(part[at] for part in hits))
        named = map_accuracy(frozen, answers)
        looks[name] = Look(own, count.samples, named, margin(frozen, w))
    return looks


def _count_hits(
    judge: Callable[[Batch], tuple[Bool[Array, "*k B"], Bool[Array, "*k B"]]],
    source: Source,
    count: Count,
    length: int,
    chunk: int,
    models: tuple[int, ...] = (),
) -> Hits:
    def body(hits: Hits, batch: Batch, live: Bool[Array, "B"]) -> Hits:
        answered, attended = judge(batch)
        more = Hits(answered & live, attended & live, answered & attended & live)
        return jax.tree.map(
            lambda old, new: old + jnp.sum(new, axis=-1, dtype=jnp.uint32), hits, more
        )

    zero = Hits(*(jnp.zeros(models, jnp.uint32) for _ in Hits._fields))
    span = Span(jnp.uint32(0), count.samples, count.most)
    return fold(body, zero, source, span, length=length, chunk=chunk)
