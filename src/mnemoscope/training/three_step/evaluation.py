r"""What a trained model can do, measured on fresh sequences.

accuracy             share of sequences whose largest logit is the label's
attention accuracy   share whose largest attention weight is on the informative position; 1/L, a
                     random choice among equals, while attention is uniform
recall               accuracy among the sequences where attention is right
map accuracy         share of the V tokens whose label comes first when attention is perfect:
                     argmax_y u_y^T Vmat h(x) = Pi*(x)
margin               signal z_trig^T w, by which the trigger lifts the informative score, against
                     the standard deviation over tokens of z_v^T w, the scores that compete with
                     it. w is W_KQ z_EOS, or alpha as gamma -> infinity: only the ratio compares
                     across step sizes
tied                 sequences that a tie rule decided: up to rounding, several labels have the
                     largest logit, or several tokens the largest attention score
right by token       where tokens are not uniform: every token is asked for equally often, in the same
                     fresh sequences, fresh sequence i with token i mod V put at its informative
                     position. From that come the accuracy by fact, which counts each token once, and
                     the accuracy of bands of tokens. In expectation both are exact
"""

from collections.abc import Callable
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, UInt32

from mnemoscope.engine.layout import UNIFORM_SAMPLES, Layout
from mnemoscope.models.quantisation import round_matrix
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
from mnemoscope.spec.token_laws import UNIFORM
from mnemoscope.tasks.retrieval import Batch
from mnemoscope.training.three_step.algorithm import Rates, ThreeSteps, query_scale
from mnemoscope.training.three_step.streaming import Count, Source, Span, fold

Attend = Literal["uniform", "softmax", "argmax", "locked"]

# The model whose weights were rounded at the end.
ROUNDED = "rounded"
# Fresh sequences in a chunk where tokens are looked up: usually all of them. Of a larger chunk most would be dead rows.
FRESH_AT_ONCE = 4096


class Test(NamedTuple):
    """What a model is measured on: fresh sequences of a stream."""

    program: Retrieval
    layout: Layout
    frozen: Frozen
    source: Source
    samples: Count


class Hits(NamedTuple):
    """The number of sequences answered right, attended right, both, and decided by a tie rule, for
    each set of answers."""

    answered: UInt32[Array, "*k"]
    attended: UInt32[Array, "*k"]
    both: UInt32[Array, "*k"]
    tied: UInt32[Array, "*k"]


class Judged(NamedTuple):
    """For every sequence: answered right, attended right, decided by a tie rule."""

    answered: Bool[Array, "*k B"]
    attended: Bool[Array, "*k B"]
    tied: Bool[Array, "*k B"]


# Whom a model is asked, and what becomes of it.
Judge = Callable[[Batch], Judged]


class Answers(NamedTuple):
    """The label named when all attention is on a token, as noise and as the informative one, and
    whether other labels tie with it. Stacked where several models share their attention.
    """

    noise: UInt32[Array, "*k V"]
    informative: UInt32[Array, "*k V"]
    noise_tied: Bool[Array, "*k V"]
    informative_tied: Bool[Array, "*k V"]


def answers_by_token(program: Retrieval, layout: Layout, frozen: Frozen, Vmat: Float[Array, "d h"]) -> Answers:
    """argmax_y u_y^T Vmat h for every token, computing logits one block of tokens at a time."""
    longest = jnp.max(jnp.linalg.norm(frozen.U, axis=1))

    def best(features: Float[Array, "V h"]) -> tuple[UInt32[Array, "V"], Bool[Array, "V"]]:
        values = features @ Vmat.T
        norm = jnp.linalg.norm(values, axis=1)
        # The value of a token that never occurred may be only the rounding errors of the others'.
        scale = jnp.maximum(norm, jnp.sqrt(jnp.mean(norm**2))) * longest
        return jax.lax.map(lambda row: name_label(row[0] @ frozen.U.T, row[1]), (values, scale), batch_size=layout.rows)

    features = token_features(program, frozen)
    noise, tied = best(features[0])
    if program.trigger == "keys":
        return Answers(noise, noise, tied, tied)
    informative, informative_tied = best(features[1])
    return Answers(noise, informative, tied, informative_tied)


def map_accuracy(frozen: Frozen, answers: Answers) -> Float[Array, ""]:
    """The share of tokens whose answer is right under perfect attention."""
    return jnp.mean((answers.informative == frozen.permutation).astype(frozen.Z.dtype))


def _judge_by_token(test: Test, attend: Literal["argmax", "locked"], answers: Answers, w: Float[Array, "d"]) -> Judge:
    """Where attention is on one token."""
    scores = Scores.of(test.frozen, w)

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

    return judge


def _judge_by_sample(test: Test, attend: Literal["uniform", "softmax"], Vmat: Array, w: Float[Array, "d"]) -> Judge:
    """Where attention mixes tokens; w = W_KQ z_EOS."""
    program, frozen = test.program, test.frozen
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

    return judge


class Measurement(NamedTuple):
    """All measurements of a model, as arrays; `Step` in `engine/record.py` is the readable form."""

    hits: Hits
    samples: UInt32[Array, ""]
    map_accuracy: Float[Array, ""]
    margin: Margin
    right: UInt32[Array, "V"] | None = None


def measure(test: Test, attend: Attend, Vmat: Array, w: Array, answers: Answers | None = None) -> Measurement:
    """Measure the model with Vmat and W_KQ z_EOS = w (its direction, for argmax).

    A caller that already has the `answers` of this Vmat passes them in.
    """
    if answers is None:
        answers = answers_by_token(test.program, test.layout, test.frozen, Vmat)
    if attend == "argmax" or attend == "locked":
        judge, chunk = _judge_by_token(test, attend, answers, w), chunk_by_token(test.layout)
    else:
        judge, chunk = _judge_by_sample(test, attend, Vmat, w), test.layout.by_sample
    if attend == "uniform":
        test = test._replace(samples=Count(*(jnp.minimum(part, UNIFORM_SAMPLES) for part in test.samples)))
        chunk = min(chunk, UNIFORM_SAMPLES)  # a chunk costs the same however few of its sequences count
    hits, right = _count_hits(test, judge, chunk), None
    if test.program.tokens != UNIFORM and attend != "uniform":
        right = _count_right_by_token(test, judge, chunk)
    return Measurement(hits, test.samples.samples, map_accuracy(test.frozen, answers), margin(test.frozen, w), right)


def measure_softmax(
    program: Retrieval, layout: Layout, frozen: Frozen, source: Source, Vmat: Array, w: Array, count: Count
) -> Measurement:
    """Measure the model whose attention is a softmax."""
    return measure(Test(program, layout, frozen, source, count), "softmax", Vmat, w)


def measure_steps(
    program: Retrieval, layout: Layout, frozen: Frozen, source: Source, learned: ThreeSteps, rates: Rates, count: Count
) -> dict[str, Measurement]:
    """Measure the model after each of the three steps; locked attention has only the last."""
    measurements = _measure_each(program, layout, frozen, source, learned, rates, count)
    if not program.bits:
        return measurements
    # W1 is alpha z_EOS^T up to its scale, which rounding does not change.
    W1 = round_matrix(jnp.outer(learned.alpha, frozen.query), program.bits)
    alpha = W1 @ frozen.query / (frozen.query @ frozen.query)
    rounded = learned._replace(V2=round_matrix(learned.V2, program.bits), alpha=alpha)
    last = _measure_each(program, layout, frozen, source, rounded, rates, count)["V2"]
    return measurements | {ROUNDED: last}


def _measure_each(
    program: Retrieval, layout: Layout, frozen: Frozen, source: Source, learned: ThreeSteps, rates: Rates, count: Count
) -> dict[str, Measurement]:
    test = Test(program, layout, frozen, source, count)
    if program.attention == "locked":
        return {"V2": measure(test, "locked", learned.V2, learned.alpha)}
    attend: Attend = "argmax" if program.gamma == "limit" else "softmax"
    w = learned.alpha if attend == "argmax" else query_scale(frozen, rates) * learned.alpha
    first, last = (answers_by_token(program, layout, frozen, values) for values in (learned.V1, learned.V2))
    measurements = {"V1": measure(test, "uniform", learned.V1, w, first)}
    if attend == "softmax":
        measurements["W1"] = measure(test, attend, learned.V1, w, first)
        return measurements | {"V2": measure(test, attend, learned.V2, w, last)}
    # W1 and V2 attend to the same tokens: each sequence is drawn and attended to once for both.
    stacked = Answers(*(jnp.stack(pair) for pair in zip(first, last, strict=True)))
    judge, chunk = _judge_by_token(test, attend, stacked, w), chunk_by_token(layout)
    hits, right = _count_hits(test, judge, chunk, (2,)), (None, None)
    if program.tokens != UNIFORM:
        right = _count_right_by_token(test, judge, chunk, (2,))
    for model, (name, answers) in enumerate((("W1", first), ("V2", last))):
        own = Hits(*(part[model] for part in hits))
        shares = map_accuracy(frozen, answers), margin(frozen, w)
        measurements[name] = Measurement(own, count.samples, *shares, right[model])
    return measurements


def chunk_by_token(layout: Layout) -> int:
    """Fresh sequences in a chunk where tokens are looked up."""
    return min(layout.by_token, FRESH_AT_ONCE)


def _count_hits(test: Test, judge: Judge, chunk: int, models: tuple[int, ...] = ()) -> Hits:
    def body(hits: Hits, batch: Batch, live: Bool[Array, "B"]) -> Hits:
        answered, attended, tied = judge(batch)
        more = Hits(answered, attended, answered & attended, tied)
        return jax.tree.map(lambda old, new: old + jnp.sum(new & live, axis=-1, dtype=jnp.uint32), hits, more)

    zero = Hits(*(jnp.zeros(models, jnp.uint32) for _ in Hits._fields))
    span = Span(jnp.uint32(0), *test.samples)
    platform = test.layout.platform
    return fold(body, zero, test.source, span, length=test.program.length, chunk=chunk, platform=platform)


def times_asked(samples: int, vocab: int) -> int:
    """How often every token is asked for: as often as so many fresh sequences allow, and at least once."""
    return max(1, samples // vocab)


def _count_right_by_token(test: Test, judge: Judge, chunk: int, models: tuple[int, ...] = ()) -> UInt32[Array, "*k V"]:
    """How many of the sequences that ask for a token are answered right."""
    V = jnp.uint32(test.program.vocab)

    def body(carry: tuple[Array, Array], batch: Batch, live: Bool[Array, "B"]) -> tuple[Array, Array]:
        first, right = carry
        token = (first + lax.iota(jnp.uint32, chunk)) % V
        answered = judge(batch.asking(token, test.source.permutation)).answered
        return first + jnp.uint32(chunk), right.at[..., token].add((answered & live).astype(jnp.uint32))

    zero = jnp.uint32(0), jnp.zeros((*models, test.program.vocab), jnp.uint32)
    span = Span(jnp.uint32(0), *(jnp.maximum(count // V, 1) * V for count in test.samples))
    platform = test.layout.platform
    return fold(body, zero, test.source, span, length=test.program.length, chunk=chunk, platform=platform)[1]
