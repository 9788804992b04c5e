r"""The three steps where a sample needs vectors of its own.

With an MLP, hidden units are not linear in the tokens; at finite eta, predictions differ from sample to sample; at
finite gamma, attention mixes tokens. A pass over the samples then computes pooled d-vectors, hidden units and
predictions chunk by chunk, and keeps only running sums. The softmax over V labels is never held for more than a chunk.

Nothing here is V x V, so this form also serves vocabularies whose tables by pair of tokens do not
fit in memory: r_ij = (U V1)[y_i] . z_{x_ij} is a product of two rows instead of a look-up.
"""

from functools import partial

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from mnemoscope.engine.layout import Layout
from mnemoscope.models.retrieval import Frozen, attention_scores, hidden, pool, uniform_pool
from mnemoscope.spec import Retrieval
from mnemoscope.tasks.retrieval import Batch
from mnemoscope.training.three_step.cuda import mlp, passes
from mnemoscope.training.three_step.cuda.products import product_over_rows
from mnemoscope.training.three_step.streaming import Samples, Source, Span, fold, over_samples


def work(program: Retrieval) -> int:
    """About how many scalars one sample moves; it paces the progress reports.

    A multiply-add of a matrix product counts as a sixteenth, since processors do 16 at a time.
    """
    products = program.width * program.dim
    if program.eta != "limit":
        products += (program.width or program.dim) * program.vocab
    return program.length * program.dim + products // 16


# --- step 1: the values at zero --------------------------------------------------------------


@partial(jax.jit, static_argnames=("program", "layout"), donate_argnames=("total",))
def _add_hidden(
    program: Retrieval, layout: Layout, frozen: Frozen, source: Source, total: Array, span: Span
) -> Float[Array, "V h"]:
    if mlp.serves(program, layout, frozen):
        add = partial(mlp.add_hidden, program, frozen)
        return passes.by_label(add, total, source, span, program.length, layout)

    def body(total: Array, batch: Batch, live: Bool[Array, "B"]) -> Array:
        features = hidden(program, frozen, uniform_pool(program, frozen, batch))
        return total.at[batch.label].add(jnp.where(live[:, None], features, 0))

    return fold(body, total, source, span, length=program.length, chunk=layout.by_sample, platform=layout.platform)


def first_gradient(
    program: Retrieval, layout: Layout, frozen: Frozen, source: Source, samples: Samples
) -> Float[Array, "d h"]:
    r"""-grad_V Lhat(0, 0) = U^T C,  C = (1/N) sum_i (e_{y_i} - 1/V) phi(W_in xbar_i)^T.

    Without an MLP, xbar_i replaces phi(W_in xbar_i).
    """
    empty = jnp.zeros((program.vocab, program.width or program.dim), frozen.Z.dtype)
    run = partial(_add_hidden, program, layout, frozen, source)
    total = over_samples(run, empty, samples, layout, work(program), layout.by_sample)
    total = total - total.mean(axis=0)
    if mlp.serves(program, layout, frozen):
        return product_over_rows(frozen.U, total) / samples.total
    return frozen.U.T @ total / samples.total


# --- step 2: attention at (V1, 0) -------------------------------------------------------------


@partial(jax.jit, static_argnames=("program", "layout"), donate_argnames=("sums",))
def _pull(
    program: Retrieval, layout: Layout, frozen: Frozen, source: Source, M: Array, sums: tuple[Array, Array], span: Span
) -> tuple[Float[Array, "V"], Float[Array, ""]]:
    if program.eta == "limit" and mlp.serves(program, layout, frozen):
        add = partial(mlp.pull_back, program, frozen, M)
        return passes.by_label(add, sums, source, span, program.length, layout)

    def body(sums: tuple[Array, Array], batch: Batch, live: Bool[Array, "B"]) -> tuple[Array, Array]:
        xbar = uniform_pool(program, frozen, batch)
        features, pull_back = jax.vjp(lambda pooled: hidden(program, frozen, pooled), xbar)
        # (e_y - p)^T U V1, with p uniform as eta -> 0.
        expected = M.mean(axis=0) if program.eta == "limit" else jax.nn.softmax(features @ M.T) @ M
        (pull,) = pull_back(M[batch.label] - expected)
        values = frozen.Z[batch.tokens]
        r = jnp.einsum("bd,bjd->bj", pull, values)
        if program.trigger == "additive":
            r = r + jnp.where(batch.at_position, (pull @ frozen.trigger)[:, None], 0)
        weight = jnp.where(live[:, None], r - r.mean(axis=1, keepdims=True), 0)
        beta, tau = sums
        beta = beta + jnp.zeros_like(beta).at[batch.tokens].add(weight)
        return beta, tau + jnp.sum(jnp.where(batch.at_position, weight, 0))

    return fold(body, sums, source, span, length=program.length, chunk=layout.by_sample, platform=layout.platform)


def attention_direction(
    program: Retrieval, layout: Layout, frozen: Frozen, source: Source, V1: Float[Array, "d h"], samples: Samples
) -> Float[Array, "d"]:
    r"""alpha, with -grad_W Lhat(V1, 0) = alpha z_EOS^T.

        alpha = (1/(N L)) sum_ij (r_ij - rbar_i) k_ij = (1/(N L)) (Z^T beta + tau z_trig)

    where r_ij = g_i^T v_ij, and g_i = d logits_i/d pooled_i applied to (e_{y_i} - p_i):
    V1^T U^T (e_{y_i} - p_i) without an MLP, W_in^T (phi'(W_in xbar_i) * that) with one.
    """
    empty = (jnp.zeros(program.vocab, frozen.Z.dtype), jnp.zeros((), frozen.Z.dtype))
    run = partial(_pull, program, layout, frozen, source, frozen.U @ V1)
    beta, tau = over_samples(run, empty, samples, layout, work(program), layout.by_sample)
    return (frozen.Z.T @ beta + tau * frozen.trigger) / (samples.total * program.length)


# --- step 3: the values where attention is a softmax ------------------------------------------


@partial(jax.jit, static_argnames=("program", "layout"), donate_argnames=("total",))
def _add_errors(
    program: Retrieval, layout: Layout, frozen: Frozen, source: Source, M: Array, w: Array, total: Array, span: Span
) -> Float[Array, "V h"]:
    def body(total: Array, batch: Batch, live: Bool[Array, "B"]) -> Array:
        a = jax.nn.softmax(attention_scores(frozen, batch, w), axis=1)
        features = hidden(program, frozen, pool(program, frozen, batch, a))
        features = jnp.where(live[:, None], features, 0)
        predicted = jax.nn.softmax(features @ M.T, axis=1)
        return total.at[batch.label].add(features) - predicted.T @ features

    return fold(body, total, source, span, length=program.length, chunk=layout.by_sample, platform=layout.platform)


def last_gradient(
    program: Retrieval, layout: Layout, frozen: Frozen, source: Source, V1: Array, w: Array, samples: Samples
) -> Float[Array, "d h"]:
    r"""-grad_V Lhat(V1, W1) = U^T (1/N) sum_i (e_{y_i} - p_i) h_i^T, for w = W1 z_EOS.

    a_i = softmax_j(k_ij^T w), h_i = phi(W_in sum_j a_ij v_ij), p_i = softmax(U V1 h_i).
    """
    empty = jnp.zeros((program.vocab, V1.shape[1]), frozen.Z.dtype)
    run = partial(_add_errors, program, layout, frozen, source, frozen.U @ V1, w)
    total = over_samples(run, empty, samples, layout, work(program), layout.by_sample)
    return frozen.U.T @ total / samples.total
