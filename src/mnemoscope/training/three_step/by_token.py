r"""The three steps where every per-token quantity is a table by token id.

Embeddings are frozen, so whatever a position contributes depends on its token alone. A pass over the samples then moves
scalars: it counts, looks up and adds, and never forms a d-vector per position. This covers the attention-only model's
first two steps as eta -> 0; `by_winner` covers the third.

Each pass is compiled on its own, so that a long run can be cut into segments. The matrix work
between the passes is plain code, compiled as part of its caller.

Symbols: K[y, v] counts token v in sequences of label y; n[y] counts sequences of label y; a bar is a
mean; a prime on U or Z means that the mean of the rows was subtracted.
"""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int32, UInt32

from mnemoscope.engine.layout import Layout
from mnemoscope.models.retrieval import Frozen
from mnemoscope.spec import Retrieval
from mnemoscope.spec.token_laws import UNIFORM
from mnemoscope.tasks.retrieval import Batch
from mnemoscope.training.three_step.cuda import passes
from mnemoscope.training.three_step.cuda.products import (
    EXACT,
    product_over_rows,
    product_with_counts,
    product_with_table,
    product_with_transpose,
)
from mnemoscope.training.three_step.streaming import Count, Samples, Source, Span, fold, over_samples

# Copies of sums by token where some tokens are frequent, on a CPU: few, so that they stay in the nearest cache.
FEW_COPIES = 4


class Counts(NamedTuple):
    """K and n: all that the first step needs from the samples."""

    pairs: Int32[Array, "V V"]
    labels: Int32[Array, "V"]


def cells(program: Retrieval, batch: Batch) -> UInt32[Array, "B L"]:
    """The index of (y_i, x_ij) in a flattened V x V table."""
    return batch.label[:, None] * jnp.uint32(program.vocab) + batch.tokens


def inverse(permutation: Array) -> Array:
    """Pi*^-1: the token behind each label."""
    places = lax.iota(jnp.int32, permutation.shape[0])
    return jnp.zeros_like(places).at[permutation].set(places, unique_indices=True)


def kernels_serve(program: Retrieval, layout: Layout, dtype: Any = jnp.float32) -> bool:
    """Whether CUDA kernels run this program's passes; elsewhere XLA compiles the same passes."""
    return layout.platform == "gpu" and dtype == jnp.float32 and passes.usable(program.tokens != UNIFORM)


# --- step 1: the values at zero --------------------------------------------------------------


@partial(jax.jit, static_argnames=("program", "layout"), donate_argnames=("counts",))
def _count(program: Retrieval, layout: Layout, source: Source, counts: Counts, span: Span) -> Counts:
    if kernels_serve(program, layout):

        def add(ordered: passes.Ordered, counts: Counts) -> Counts:
            return Counts(*passes.count_pairs(ordered, *counts, program.length))

        return passes.by_label(add, counts, source, span, program.length, layout)
    narrow = _fits_in_16_bits(program, layout)

    def body(state: tuple[Array, Array], batch: Batch, live: Bool[Array, "B"]) -> tuple[Array, Array]:
        flat, labels = state
        # Dead rows point past the table's end, where an addition is dropped.
        cell = jnp.where(live[:, None], cells(program, batch), jnp.uint32(program.vocab**2))
        flat = flat.at[cell.reshape(-1)].add(jnp.ones((), flat.dtype), mode="drop")
        return flat, labels.at[batch.label].add(live.astype(jnp.int32))

    before = counts.pairs.reshape(-1)
    start = jnp.zeros(before.shape, jnp.uint16) if narrow else before
    flat, labels = fold(
        body,
        (start, counts.labels),
        source,
        span,
        length=program.length,
        chunk=layout.by_token,
        platform=layout.platform,
    )
    flat = before + flat.astype(jnp.int32) if narrow else flat
    return Counts(flat.reshape(counts.pairs.shape), labels)


def _fits_in_16_bits(program: Retrieval, layout: Layout) -> bool:
    """Whether 16-bit counters are safe for one call: half the memory, so more of it is in cache.

    One call sees at most a segment of tokens. A cell's count comes in clusters, one for each sequence of its label, of
    about s = 1 + L p tokens with p the largest token probability. By Chernoff's bound with exp(count / s), a mean of at
    most 2**14 passes 2**16 with a chance below exp(-(2**16 - 2.2 * 2**14) / s), which is exp(-110) for s <= 2**8. (GPUs
    add 16-bit numbers more slowly than 32-bit ones.)
    """
    samples = layout.segment // program.length + layout.by_token
    cluster = 1 + program.length * program.largest_token_probability
    return layout.platform == "cpu" and program.most_in_a_cell(samples) <= 2**14 and cluster <= 2**8


def count_pairs(program: Retrieval, layout: Layout, source: Source, samples: Samples) -> Counts:
    """K and n over all samples."""
    V = program.vocab
    empty = Counts(jnp.zeros((V, V), jnp.int32), jnp.zeros(V, jnp.int32))
    run = partial(_count, program, layout, source)
    return over_samples(run, empty, samples, layout, program.length, layout.by_token)


def first_gradient(
    program: Retrieval, layout: Layout, frozen: Frozen, counts: Counts, samples: Samples
) -> Float[Array, "d d"]:
    r"""-grad_V Lhat(0, 0) = U^T C, with attention and predictions uniform.

    C = (1/N) sum_i (e_{y_i} - 1/V) xbar_i^T, and xbar_i = (1/L) (sum_j z_{x_ij} [+ z_trig]), so

        N L C = (K - column means) Z  [+ (n - N/V) z_trig^T  where the trigger is in the values].
    """
    n = counts.labels.astype(frozen.Z.dtype)
    kernels = kernels_serve(program, layout, frozen.Z.dtype)
    if kernels:
        C = _centred_product(program, frozen, counts, samples, few=few_counts(program, layout, samples))
    else:
        K = counts.pairs.astype(frozen.Z.dtype)
        C = (K - K.mean(axis=0)) @ frozen.Z
    if program.trigger == "additive":
        C = C + jnp.outer(n - n.mean(), frozen.trigger)
    total = product_over_rows(frozen.U, C) if kernels else frozen.U.T @ C
    return total / (samples.total * program.length)


def few_counts(program: Retrieval, layout: Layout, samples: Samples) -> bool:
    """Whether every count of noise tokens stays where float16 holds integers exactly.

    A cell's count is close to Poisson; with a mean of at most half the limit, the limit is 32 standard deviations away.
    """
    most = layout.ordered * layout.orders
    p = program.largest_token_probability
    return isinstance(samples, Count) and most * p * max(1.0, program.length * p) <= EXACT / 2


def _centred_product(
    program: Retrieval, frozen: Frozen, counts: Counts, samples: Samples, few: bool
) -> Float[Array, "V d"]:
    """(K - column means) Z, from whole numbers without what they have in common.

    n[y] informative tokens are taken from K[y, Pi*^-1(y)] and added again. Where all that is left is `few`, the mean of
    K over the whole table is taken away too; rounded to a whole number, it changes column means alone.
    """
    token = inverse(frozen.permutation)
    informative = lax.broadcasted_iota(jnp.int32, counts.pairs.shape, 1) == token[:, None]
    noise = counts.pairs - jnp.where(informative, counts.labels[:, None], 0)
    if few:
        common = jnp.round(samples.total * program.length / program.vocab**2).astype(jnp.int32)
        C = product_with_counts(noise - common, frozen.Z)
    else:
        C = product_with_table(noise, frozen.Z, rows=counts.labels.astype(jnp.float32) * (program.length - 1))
    C = C + counts.labels[:, None] * frozen.Z[token]
    return C - C.mean(axis=0)


# --- step 2: attention at (V1, 0), predictions still uniform ----------------------------------


@partial(jax.jit, static_argnames=("program", "layout"), donate_argnames=("q",))
def _spread(
    program: Retrieval, layout: Layout, source: Source, R: Array, R_trig: Array, q: Array, span: Span
) -> Float[Array, "V"]:
    # On a GPU, threads that add to one token's sum wait for each other: spread them over copies. On a CPU, additions to
    # a frequent token's sum wait for each other, too, and those of neighbouring positions are spread.
    on_cpu = layout.platform == "cpu"
    copies = (1 if program.tokens == UNIFORM else FEW_COPIES) if on_cpu else 64

    def body(q: Array, batch: Batch, live: Bool[Array, "B"]) -> Array:
        r = R.reshape(-1).at[cells(program, batch)].get(mode="promise_in_bounds")
        rbar = (r.sum(axis=1) + R_trig[batch.label]) / program.length
        rbar = jnp.where(live, rbar, 0)
        share = jnp.broadcast_to(rbar[:, None], batch.tokens.shape)
        copy = lax.broadcasted_iota(jnp.uint32, share.shape, 1 if on_cpu else 0) % jnp.uint32(copies)
        # Sum each chunk first: float32 would lose small terms against a long running sum.
        sums = jnp.zeros((copies, program.vocab), q.dtype)
        sums = sums.at[copy, batch.tokens].add(share, mode="promise_in_bounds")
        return q + sums.sum(axis=0)

    return fold(body, q, source, span, length=program.length, chunk=layout.by_token, platform=layout.platform)


def attention_direction(
    program: Retrieval, layout: Layout, frozen: Frozen, source: Source, counts: Counts, V1: Array, samples: Samples
) -> Float[Array, "d"]:
    r"""alpha, with -grad_W Lhat(V1, 0) = alpha z_EOS^T.

    r_ij = (e_{y_i} - 1/V)^T U V1 v_ij is the table R[y_i, x_ij], R = U' V1 Z'^T, plus
    R_trig[y_i] = U' V1 z_trig at the informative position where the trigger is in the values.
    (Subtracting zbar from Z changes r_ij and rbar_i alike.) Then

        alpha = (1/(N L)) sum_ij (r_ij - rbar_i) k_ij = (1/(N L)) (Z^T beta + tau z_trig),
        beta_v = sum over {ij: x_ij = v} of (r_ij - rbar_i),   tau = sum_i (r_{i l} - rbar_i).

    CUDA kernels add up beta and tau as they stand. Elsewhere the r_ij in them come from the counts, and the second
    pass over the samples is for q_v = sum over {ij: x_ij = v} of rbar_i.
    """
    UV1 = (frozen.U - frozen.U.mean(axis=0)) @ V1
    Z = frozen.Z - frozen.Z.mean(axis=0)
    # Under "keys" the informative value is z_{x_l} alone. Under "additive" it is z_{x_l} + z_trig.
    R_trig = UV1 @ frozen.trigger if program.trigger == "additive" else jnp.zeros_like(UV1[:, 0])
    if kernels_serve(program, layout, V1.dtype):
        R, scale = product_with_transpose(UV1, Z)
        run = partial(_spread_values, program, layout, source, R, scale * R_trig)
        zeros = (jnp.zeros_like(R_trig), jnp.zeros_like(R_trig[0]))
        sums = over_samples(run, zeros, samples, layout, program.length, layout.by_token)
        beta, tau = (part / scale for part in sums)
    else:
        R = UV1 @ Z.T
        q = spread_means(program, layout, source, R, R_trig, samples)
        beta, tau = _from_counts(program, frozen, counts, R, R_trig, q)
    return (frozen.Z.T @ beta + tau * frozen.trigger) / (samples.total * program.length)


@partial(jax.jit, static_argnames=("program", "layout"), donate_argnames=("sums",))
def _spread_values(
    program: Retrieval, layout: Layout, source: Source, R: Array, R_trig: Array, sums: tuple[Array, Array], span: Span
) -> tuple[Float[Array, "V"], Float[Array, ""]]:
    def add(ordered: passes.Ordered, sums: tuple[Array, Array]) -> tuple[Array, Array]:
        return passes.spread_values(ordered, R, R_trig, sums, program.length)

    return passes.by_label(add, sums, source, span, program.length, layout)


def _from_counts(
    program: Retrieval, frozen: Frozen, counts: Counts, R: Array, R_trig: Array, q: Array
) -> tuple[Float[Array, "V"], Float[Array, ""]]:
    """beta and tau, where a pass over the samples gave q."""
    token = inverse(frozen.permutation)
    K = counts.pairs.astype(R.dtype)
    n = counts.labels.astype(R.dtype)
    # Columns of R sum to zero, so K may lose its column means, which costs float32 fewer digits.
    KR = (K - K.mean(axis=0)) * R
    beta = KR.sum(axis=0) - q
    beta = beta.at[token].add(n * R_trig)
    r_informative = n @ (R[jnp.arange(program.vocab), token] + R_trig)
    rbar_total = (KR.sum() + n @ R_trig) / program.length
    return beta, r_informative - rbar_total


def spread_means(
    program: Retrieval,
    layout: Layout,
    source: Source,
    R: Float[Array, "V V"],
    R_trig: Float[Array, "V"],
    samples: Samples,
) -> Float[Array, "V"]:
    """q_v = sum over {ij: x_ij = v} of rbar_i, for any table R of values by label and token."""
    run = partial(_spread, program, layout, source, R, R_trig)
    return over_samples(run, jnp.zeros_like(R_trig), samples, layout, program.length, layout.by_token)
