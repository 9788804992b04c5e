r"""The last step where attention is an argmax: all of a sequence's attention rests on one token.

As gamma -> infinity the pooled vector of a sample is the value of its winning token. Hidden units
and predictions then depend on that token alone, with or without the trigger. Symbols: K[y, t] counts
how often the noise token t wins in sequences of label y; n[y], how often the informative one does.

There are two exact forms. Dense: count winners in a V x V table, and multiply by the tokens'
features once. Factored: add the winner's features to its label's row, sample by sample.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int32, UInt32

from mnemoscope.engine.layout import Layout
from mnemoscope.models.retrieval import Frozen, Scores, hard_attention, token_features
from mnemoscope.spec import Retrieval
from mnemoscope.tasks.retrieval import Batch
from mnemoscope.training.three_step.by_token import few_counts, inverse, kernels_serve
from mnemoscope.training.three_step.cuda import passes
from mnemoscope.training.three_step.cuda.products import product_over_rows, product_with_counts, product_with_table
from mnemoscope.training.three_step.streaming import Samples, Source, Span, fold, over_samples


class Winners(NamedTuple):
    """K and n."""

    noise: Int32[Array, "V V"]
    informative: Int32[Array, "V"]


class Sums(NamedTuple):
    """The winners' features summed by label, and how often each token won, as noise and as the informative one."""

    features: Float[Array, "V h"]
    noise: UInt32[Array, "V"]
    informative: UInt32[Array, "V"]


def last_gradient(
    program: Retrieval, layout: Layout, frozen: Frozen, source: Source, V1: Array, alpha: Array, samples: Samples
) -> Float[Array, "d h"]:
    r"""-grad_V Lhat(V1, W1) = U^T (1/N) sum_i (e_{y_i} - p_i) h_i^T, h_i of the winning token.

    As eta -> 0 the predictions p_i stay uniform. At finite eta they are softmax(U V1 h_i), which
    is again one row per winning token, weighted by how often it wins.
    """
    scores, V, kernels = Scores.of(frozen, alpha), program.vocab, kernels_serve(program, layout, V1.dtype)
    noise, informative = features = token_features(program, frozen)
    if layout.tables == "dense":
        empty = Winners(jnp.zeros((V, V), jnp.int32), jnp.zeros(V, jnp.int32))
        run = partial(_count, program, layout, source, scores)
        K, n = over_samples(run, empty, samples, layout, program.length, layout.by_token)
        if kernels and few_counts(program, layout, samples):
            D = product_with_counts(K, noise)
        elif kernels:
            D = product_with_table(K, noise)
        else:
            D = K.astype(noise.dtype) @ noise
        D = D + n.astype(noise.dtype)[:, None] * informative[inverse(frozen.permutation)]
        sums = Sums(D, K.sum(axis=0, dtype=jnp.uint32), n[frozen.permutation].astype(jnp.uint32))
    else:
        # Buffers are donated, so each is its own.
        zeros = Sums(jnp.zeros_like(noise), *(jnp.zeros(V, jnp.uint32) for _ in range(2)))
        add = partial(_add, program, layout, source, features, scores)
        sums = over_samples(add, zeros, samples, layout, program.length + noise.shape[1], layout.by_sample)
    if program.eta == "limit":
        D = sums.features - sums.features.mean(axis=0)
        total = product_over_rows(frozen.U, D) if kernels else frozen.U.T @ D
        return total / samples.total
    expected = _expected(frozen, layout, V1, noise, sums.noise)
    expected = expected + _expected(frozen, layout, V1, informative, sums.informative)
    return frozen.U.T @ (sums.features - expected) / samples.total


@partial(jax.jit, static_argnames=("program", "layout"), donate_argnames=("winners",))
def _count(program: Retrieval, layout: Layout, source: Source, scores: Scores, winners: Winners, span: Span) -> Winners:
    if kernels_serve(program, layout, scores.token.dtype):
        locked = program.attention == "locked"
        return Winners(*passes.count_winners(source, scores, span, winners, program.length, locked))

    def body(winners: Winners, batch: Batch, live: Bool[Array, "B"]) -> Winners:
        noise, wins = hard_attention(batch, scores)
        wins = wins | (program.attention == "locked")
        return Winners(
            winners.noise.at[batch.label, noise].add((live & ~wins).astype(jnp.int32)),
            winners.informative.at[batch.label].add((live & wins).astype(jnp.int32)),
        )

    return fold(body, winners, source, span, length=program.length, chunk=layout.by_token, platform=layout.platform)


@partial(jax.jit, static_argnames=("program", "layout"), donate_argnames=("sums",))
def _add(
    program: Retrieval,
    layout: Layout,
    source: Source,
    features: tuple[Array, Array],
    scores: Scores,
    sums: Sums,
    span: Span,
) -> Sums:
    def body(sums: Sums, batch: Batch, live: Bool[Array, "B"]) -> Sums:
        noise, wins = hard_attention(batch, scores)
        wins = wins | (program.attention == "locked")
        h = jnp.where(wins[:, None], features[1][batch.informative], features[0][noise])
        return Sums(
            sums.features.at[batch.label].add(jnp.where(live[:, None], h, 0)),
            sums.noise.at[noise].add((live & ~wins).astype(jnp.uint32)),
            sums.informative.at[batch.informative].add((live & wins).astype(jnp.uint32)),
        )

    return fold(body, sums, source, span, length=program.length, chunk=layout.by_sample, platform=layout.platform)


@partial(jax.jit, static_argnames=("layout",))
def _expected(
    frozen: Frozen, layout: Layout, V1: Float[Array, "d h"], features: Float[Array, "V h"], wins: UInt32[Array, "V"]
) -> Float[Array, "V h"]:
    """sum_t wins_t p_t h_t^T with p_t = softmax(U V1 h_t), one block of tokens at a time."""
    V, rows = features.shape[0], layout.rows

    def block(number: Array | int, total: Array) -> Array:
        token = jnp.uint32(number) * jnp.uint32(rows) + jnp.arange(rows, dtype=jnp.uint32)
        live = token < V
        h = features[jnp.where(live, token, 0)]
        p = jax.nn.softmax(h @ V1.T @ frozen.U.T, axis=1)
        weight = jnp.where(live, wins[jnp.where(live, token, 0)], 0).astype(h.dtype)
        return total + p.T @ (weight[:, None] * h)

    return jax.lax.fori_loop(0, -(-V // rows), block, jnp.zeros_like(features))
