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
tied                 sequences that a rule for ties decided: several labels have the largest logit,
                     or several tokens the largest attention score, but for rounding
"""

from collections.abc import Callable
from functools import partial
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, UInt32

from mnemoscope.engine.layout import Layout
from mnemoscope.models.retrieval import (
    Frozen,
    Margin,
    Scores,
    attention_scores,
    attention_tied,
    hard_attention,
    hidden,
    margin,
    name_label,
    pool,
    token_features,
    uniform_pool,
)
from mnemoscope.spec import Retrieval
from mnemoscope.tasks.retrieval import Batch
from mnemoscope.training.three_step.algorithm import Rates, ThreeSteps, query_scale
from mnemoscope.training.three_step.streaming import Count, Source, Span, fold

Attend = Literal["uniform", "softmax", "argmax", "locked"]

# Fresh sequences, at most, for the accuracy after the first step: attention is still uniform then,
# every sequence costs a product with the whole vocabulary, and the answer is close to chance.
UNIFORM_SAMPLES = 256


class Hits(NamedTuple):
    """Sequences answered right, attended right, both, and decided by a rule for ties; a number
    for each set of answers."""

    answered: UInt32[Array, "*k"]
    attended: UInt32[Array, "*k"]
    both: UInt32[Array, "*k"]
    tied: UInt32[Array, "*k"]


class Judged(NamedTuple):
    """Of every sequence: answered right, attended right, decided by a rule for ties."""

    answered: Bool[Array, "*k B"]
    attended: Bool[Array, "*k B"]
    tied: Bool[Array, "*k B"]


class Answers(NamedTuple):
    """The label named when all attention rests on a token, as noise and as the informative one,
    and whether others tie with it.

    Stacked, where several models share their attention.
    """

    noise: UInt32[Array, "*k V"]
    informative: UInt32[Array, "*k V"]
    noise_tied: Bool[Array, "*k V"]
    informative_tied: Bool[Array, "*k V"]


def answers_by_token(program: Retrieval, layout: Layout, frozen: Frozen, Vmat: Float[Array, "d h"]) -> Answers:
    """argmax_y u_y^T Vmat h for every token, with the logits of one block of tokens at a time."""

    longest = jnp.max(jnp.linalg.norm(frozen.U, axis=1))

    def best(features: Float[Array, "V h"]) -> tuple[UInt32[Array, "V"], Bool[Array, "V"]]:
        values = features @ Vmat.T
        norm = jnp.linalg.norm(values, axis=1)
        # A token that was never seen may have no value but what rounding left of the others'.
        scale = jnp.maximum(norm, jnp.sqrt(jnp.mean(norm**2))) * longest
        return jax.lax.map(lambda row: name_label(frozen.U @ row[0], row[1]), (values, scale), batch_size=layout.rows)

    features = token_features(program, frozen)
    noise, tied = best(features[0])
    if program.trigger == "keys":
        return Answers(noise, noise, tied, tied)
    informative, informative_tied = best(features[1])
    return Answers(noise, informative, tied, informative_tied)


def map_accuracy(frozen: Frozen, answers: Answers) -> Float[Array, ""]:
    """Share of tokens whose answer under perfect attention is right."""
    return jnp.mean((answers.informative == frozen.permutation).astype(frozen.Z.dtype))


def hits_by_token(
    program: Retrieval,
    layout: Layout,
    frozen: Frozen,
    source: Source,
    attend: Literal["argmax", "locked"],
    answers: Answers,
    w: Float[Array, "d"],
    count: Count,
) -> Hits:
    """Hits over the first `samples` of a stream where attention rests on one token."""
    scores = Scores.of(frozen, w)

    def judge(batch: Batch) -> Judged:
        noise, attended = hard_attention(batch, scores)
        attended = attended | (attend == "locked")
        own, other = answers.informative[..., batch.informative], answers.noise[..., noise]
        answered = jnp.where(attended, own, other) == batch.label
        ties = (answers.informative_tied[..., batch.informative], answers.noise_tied[..., noise])
        tied = jnp.where(attended, *ties)
        if attend != "locked":
            tied = tied | attention_tied(batch, scores)
        return Judged(answered, jnp.broadcast_to(attended, answered.shape), tied)

    models = answers.noise.shape[:-1]
    return _count_hits(judge, source, count, program.length, layout.by_token, models)


def hits_by_sample(
    program: Retrieval,
    layout: Layout,
    frozen: Frozen,
    source: Source,
    attend: Literal["uniform", "softmax"],
    Vmat: Float[Array, "d h"],
    w: Float[Array, "d"],
    count: Count,
) -> Hits:
    """Hits over the first `samples` of a stream where attention mixes tokens; w = W_KQ z_EOS."""
    M = frozen.U @ Vmat
    longest = jnp.max(jnp.linalg.norm(M, axis=1))
    scores = Scores.of(frozen, w)

    def judge(batch: Batch) -> Judged:
        if attend == "uniform":
            pooled = uniform_pool(program, frozen, batch)
            attended = tied = jnp.zeros(batch.label.shape, bool)
        else:
            weights = jax.nn.softmax(attention_scores(frozen, batch, w), axis=1)
            pooled = pool(program, frozen, batch, weights)
            _, attended = hard_attention(batch, scores)
            tied = attention_tied(batch, scores)
        features = hidden(program, frozen, pooled)
        scale = jnp.linalg.norm(features, axis=1) * longest
        answer, answer_tied = name_label(features @ M.T, scale)
        return Judged(answer == batch.label, attended, tied | answer_tied)

    # A chunk is worked through whole, however few of its sequences count.
    chunk = min(layout.by_sample, UNIFORM_SAMPLES) if attend == "uniform" else layout.by_sample
    return _count_hits(judge, source, count, program.length, chunk)


class Measurement(NamedTuple):
    """All that is measured of a model, as arrays; `Step` in `record` is its readable form."""

    hits: Hits
    samples: UInt32[Array, ""]
    map_accuracy: Float[Array, ""]
    margin: Margin


def look(
    program: Retrieval,
    layout: Layout,
    frozen: Frozen,
    test: Source,
    attend: Attend,
    Vmat: Float[Array, "d h"],
    w: Float[Array, "d"],
    count: Count,
    answers: Answers | None = None,
) -> Measurement:
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
    return Measurement(hits, count.samples, map_accuracy(frozen, answers), margin(frozen, w))


def measure_steps(
    program: Retrieval, layout: Layout, frozen: Frozen, test: Source, learned: ThreeSteps, rates: Rates, count: Count
) -> dict[str, Measurement]:
    """The model after each of the three steps; with locked attention there is only the last."""
    seen = partial(look, program, layout, frozen, test)
    if program.attention == "locked":
        return {"V2": seen("locked", learned.V2, learned.alpha, count)}
    attend: Attend = "argmax" if program.gamma == "limit" else "softmax"
    w = learned.alpha if attend == "argmax" else query_scale(frozen, rates) * learned.alpha
    first, last = (answers_by_token(program, layout, frozen, values) for values in (learned.V1, learned.V2))
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
        looks[name] = Measurement(own, count.samples, named, margin(frozen, w))
    return looks


def _count_hits(
    judge: Callable[[Batch], Judged],
    source: Source,
    count: Count,
    length: int,
    chunk: int,
    models: tuple[int, ...] = (),
) -> Hits:
    def body(hits: Hits, batch: Batch, live: Bool[Array, "B"]) -> Hits:
        answered, attended, tied = judge(batch)
        more = Hits(answered, attended, answered & attended, tied)
        return jax.tree.map(lambda old, new: old + jnp.sum(new & live, axis=-1, dtype=jnp.uint32), hits, more)

    zero = Hits(*(jnp.zeros(models, jnp.uint32) for _ in Hits._fields))
    span = Span(jnp.uint32(0), count.samples, count.most)
    return fold(body, zero, source, span, length=length, chunk=chunk)
