r"""The three steps where every per-token quantity is a table by token id.

Embeddings are frozen, so whatever a position contributes depends on its token alone. A pass over
the samples then moves scalars: it counts, looks up and adds, and never forms a d-vector per
position. This covers the attention-only model's first two steps as eta -> 0, and the third step of
both models as gamma -> infinity, where attention is an argmax.

The passes are compiled on their own, so that a long run can be cut into segments; the matrix work
between them is plain code, compiled as part of whatever calls it.

Symbols: K[y, v] how often token v stands in sequences of label y; n[y] sequences of label y; a bar
is a mean; primes on U and Z mean that the rows' mean was taken off.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int32, UInt32

from mnemoscope.models.transformer import Frozen, hard_attention, token_features
from mnemoscope.spec import Retrieval
from mnemoscope.tasks.retrieval import Batch
from mnemoscope.training.streaming import (
    Count,
    Progress,
    Source,
    Span,
    as_float,
    chunk_by_token,
    fold,
    over_samples,
    platform,
)


class Counts(NamedTuple):
    """K and n: all that the first step needs to know of the samples."""

    pairs: Int32[Array, "V V"]
    labels: Int32[Array, "V"]


def cells(program: Retrieval, batch: Batch) -> UInt32[Array, "B L"]:
    """Where (y_i, x_ij) stands in a flattened V x V table."""
    return batch.label[:, None] * jnp.uint32(program.vocab) + batch.tokens


class Winners(NamedTuple):
    """Where hard attention went: to a noise token t at label y, or to the informative one."""

    noise: Int32[Array, "V V"]
    informative: Int32[Array, "V"]


def inverse(permutation: Array) -> Array:
    """Pi*^-1: the token behind each label."""
    return jnp.argsort(permutation)


# --- step 1: the values at zero --------------------------------------------------------------


@partial(jax.jit, static_argnames=("program",), donate_argnames=("counts",))
def _count(program: Retrieval, source: Source, counts: Counts, span: Span) -> Counts:
    def body(counts: Counts, batch: Batch, live: Bool[Array, "B"]) -> Counts:
        # Dead rows point past the table's end, where an addition is dropped.
        cell = jnp.where(live[:, None], cells(program, batch), jnp.uint32(program.vocab**2))
        flat = counts.pairs.reshape(-1).at[cell.reshape(-1)].add(1, mode="drop")
        pairs = flat.reshape(counts.pairs.shape)
        labels = counts.labels.at[batch.label].add(live.astype(jnp.int32))
        return Counts(pairs, labels)

    return fold(body, counts, source, span, length=program.length, chunk=chunk_by_token(program))


def count_pairs(
    program: Retrieval, source: Source, samples: int | Count, progress: Progress | None = None
) -> Counts:
    """K and n over all samples."""
    V = program.vocab
    empty = Counts(jnp.zeros((V, V), jnp.int32), jnp.zeros(V, jnp.int32))
    run = partial(_count, program, source)
    return over_samples(run, empty, samples, program.length, chunk_by_token(program), progress)


def first_gradient(
    program: Retrieval, frozen: Frozen, counts: Counts, samples: int | Count
) -> Float[Array, "d d"]:
    r"""-grad_V Lhat(0, 0) = U^T C, with attention and predictions uniform.

    C = (1/N) sum_i (e_{y_i} - 1/V) xbar_i^T, and xbar_i = (1/L) (sum_j z_{x_ij} [+ z_trig]), so

        N L C = (K - column means) Z  [+ (n - N/V) z_trig^T  where the trigger is in the values].
    """
    K = counts.pairs.astype(frozen.Z.dtype)
    n = counts.labels.astype(frozen.Z.dtype)
    C = (K - K.mean(axis=0)) @ frozen.Z
    if program.trigger == "additive":
        C = C + jnp.outer(n - n.mean(), frozen.trigger)
    return frozen.U.T @ C / (as_float(samples) * program.length)


# --- step 2: attention at (V1, 0), predictions still uniform ----------------------------------


@partial(jax.jit, static_argnames=("program",), donate_argnames=("q",))
def _spread(
    program: Retrieval, source: Source, R: Array, R_trig: Array, q: Array, span: Span
) -> Float[Array, "V"]:
    # On a GPU the threads that add to one token's sum wait for each other: give them more sums.
    copies = 1 if platform() == "cpu" else 64

    def body(q: Array, batch: Batch, live: Bool[Array, "B"]) -> Array:
        r = R.reshape(-1).at[cells(program, batch)].get(mode="promise_in_bounds")
        rbar = (r.sum(axis=1) + R_trig[batch.label]) / program.length
        rbar = jnp.where(live, rbar, 0)
        share = jnp.broadcast_to(rbar[:, None], batch.tokens.shape)
        copy = lax.iota(jnp.uint32, rbar.shape[0]) % jnp.uint32(copies)
        # A chunk's own sum first: float32 would lose small terms against a long running sum.
        part = jnp.zeros((copies, program.vocab), q.dtype)
        part = part.at[copy[:, None], batch.tokens].add(share, mode="promise_in_bounds")
        return q + part.sum(axis=0)

    return fold(body, q, source, span, length=program.length, chunk=chunk_by_token(program))


def attention_direction(
    program: Retrieval,
    frozen: Frozen,
    source: Source,
    counts: Counts,
    V1: Float[Array, "d d"],
    samples: int | Count,
    progress: Progress | None = None,
) -> Float[Array, "d"]:
    r"""alpha, with -grad_W Lhat(V1, 0) = alpha z_EOS^T.

    r_ij = (e_{y_i} - 1/V)^T U V1 v_ij is the table R[y_i, x_ij], R = U' V1 Z'^T, plus
    R_trig[y_i] = U' V1 z_trig at the informative position where the trigger is in the values.
    (Taking zbar off Z changes r_ij and rbar_i alike.) Then

        alpha = (1/(N L)) sum_ij (r_ij - rbar_i) k_ij = (1/(N L)) (Z^T beta + tau z_trig),
        beta_v = sum over {ij: x_ij = v} of (r_ij - rbar_i),   tau = sum_i (r_{i l} - rbar_i).

    The r_ij in beta and tau need only the counts; q_v = sum over {ij: x_ij = v} of rbar_i is what
    the second pass over the samples is for.
    """
    R, R_trig = _value_table(program, frozen, V1)
    run = partial(_spread, program, source, R, R_trig)
    empty = jnp.zeros_like(R_trig)
    q = over_samples(run, empty, samples, program.length, chunk_by_token(program), progress)
    return _assemble_alpha(program, frozen, counts, R, R_trig, q, samples)


def _value_table(
    program: Retrieval, frozen: Frozen, V1: Float[Array, "d d"]
) -> tuple[Float[Array, "V V"], Float[Array, "V"]]:
    back = (frozen.U - frozen.U.mean(axis=0)) @ V1
    zbar = frozen.Z.mean(axis=0)
    R = back @ (frozen.Z - zbar).T
    # Under "keys" the informative value is z_{x_l} alone. Under "additive" it is z_{x_l} + z_trig.
    R_trig = back @ frozen.trigger if program.trigger == "additive" else jnp.zeros_like(back[:, 0])
    return R, R_trig


def _assemble_alpha(
    program: Retrieval, frozen: Frozen, counts: Counts, R: Array, R_trig: Array, q: Array,
    samples: int | Count,
) -> Float[Array, "d"]:  # fmt: skip
    token = inverse(frozen.permutation)
    K = counts.pairs.astype(R.dtype)
    n = counts.labels.astype(R.dtype)
    # Columns of R sum to zero, so K may lose its columns' means, and float32 loses less.
    KR = (K - K.mean(axis=0)) * R
    beta = KR.sum(axis=0) - q
    beta = beta.at[token].add(n * R_trig)
    r_informative = n @ (R[jnp.arange(program.vocab), token] + R_trig)
    rbar_total = (KR.sum() + n @ R_trig) / program.length
    tau = r_informative - rbar_total
    return (frozen.Z.T @ beta + tau * frozen.trigger) / (as_float(samples) * program.length)


# --- step 3: the values where attention is an argmax ------------------------------------------


@partial(jax.jit, static_argnames=("program",), donate_argnames=("winners",))
def _attend(
    program: Retrieval, source: Source, s: Array, s_trig: Array, winners: Winners, span: Span,
) -> Winners:  # fmt: skip
    def body(winners: Winners, batch: Batch, live: Bool[Array, "B"]) -> Winners:
        noise, wins = hard_attention(batch, s, s_trig)
        wins = wins | (program.attention == "locked")
        return Winners(
            winners.noise.at[batch.label, noise].add((live & ~wins).astype(jnp.int32)),
            winners.informative.at[batch.label].add((live & wins).astype(jnp.int32)),
        )

    return fold(body, winners, source, span, length=program.length, chunk=chunk_by_token(program))


def count_winners(
    program: Retrieval,
    frozen: Frozen,
    source: Source,
    alpha: Float[Array, "d"],
    samples: int | Count,
    progress: Progress | None = None,
) -> Winners:
    """Where argmax_j k_ij^T alpha falls, over all samples."""
    V = program.vocab
    empty = Winners(jnp.zeros((V, V), jnp.int32), jnp.zeros(V, jnp.int32))
    run = partial(_attend, program, source, frozen.Z @ alpha, frozen.trigger @ alpha)
    return over_samples(run, empty, samples, program.length, chunk_by_token(program), progress)


def last_gradient(
    program: Retrieval,
    frozen: Frozen,
    winners: Winners,
    V1: Float[Array, "d h"],
    samples: int | Count,
) -> Float[Array, "d h"]:
    r"""-grad_V Lhat(V1, W1) = U^T (1/N) sum_i (e_{y_i} - p_i) h_i^T, h_i of the winning token.

    As eta -> 0 the predictions p_i stay uniform. At finite eta they are softmax(U V1 h_i), which
    is again one row per winning token, weighted by how often it wins.
    """
    noise, informative = token_features(program, frozen)
    token = inverse(frozen.permutation)
    K = winners.noise.astype(noise.dtype)
    n = winners.informative.astype(noise.dtype)
    D = K @ noise + n[:, None] * informative[token]
    if program.eta == "limit":
        return frozen.U.T @ (D - D.mean(axis=0)) / as_float(samples)
    by_noise = _predictions(frozen, V1, noise).T @ (K.sum(axis=0)[:, None] * noise)
    by_token = n[frozen.permutation][:, None] * informative
    by_informative = _predictions(frozen, V1, informative).T @ by_token
    return frozen.U.T @ (D - by_noise - by_informative) / as_float(samples)


def _predictions(
    frozen: Frozen, V1: Float[Array, "d h"], features: Float[Array, "V h"]
) -> Float[Array, "V V"]:
    return jax.nn.softmax(features @ V1.T @ frozen.U.T, axis=1)
