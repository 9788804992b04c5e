r"""Paper B's one-layer transformer, with frozen embeddings and the query at the last token.

    scores   s_h(v) = (K_h e_v)^T (Q_h e_EOS) / sqrt(d_h)
    mixing   softmax: a_h(v) = c_v exp(s_h(v)) / sum_w c_w exp(s_h(w));  linear: a_h(v) = c_v s_h(v)
    output   x = sum_h O_h sum_v a_h(v) V_h e_v
    MLP      x + W2 relu(W1 x + b),   the only residual
    logits   u_a^T x over all R D answers

c_v is the count of token v in the sequence. Since embeddings are frozen and there are no positional
encodings, scores and values are tables by token, computed once per step. With many heads and far more
tokens than positions in a sequence, attention is over the positions instead.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, UInt32

from mnemoscope.engine.random import normal
from mnemoscope.spec.facts import Facts
from mnemoscope.tasks.facts import Sizes, count_tokens

# From this many heads x tokens, and this many tokens for each position, attention is over positions:
# attention to tokens that are not in the sequence would cost more than tables save.
MANY_SCORES, MANY_TOKENS = 1024, 4


class Frozen(NamedTuple):
    """Embeddings of tokens and answers, N(0, I/d), never trained."""

    E: Float[Array, "*n V d"]
    U: Float[Array, "*n A d"]


class Weights(NamedTuple):
    """The trained weights. Heads and hidden units beyond the spec's are zero, and stay zero."""

    Q: Float[Array, "*n H k d"]
    K: Float[Array, "*n H k d"]
    V: Float[Array, "*n H k d"]
    O: Float[Array, "*n H k d"]  # noqa: E741 - the output matrices, transposed
    W1: Float[Array, "*n m d"]
    b: Float[Array, "*n m"]
    W2: Float[Array, "*n m d"]


def draw_frozen(program: Facts, keys: dict[str, UInt32[Array, "2"]]) -> Frozen:
    """Draw the embeddings."""
    d = program.dim
    E, U = normal(keys["token"], program.tokens, d), normal(keys["answer"], program.outputs, d)
    return Frozen(E.astype(float) / d**0.5, U.astype(float) / d**0.5)


def draw_weights(program: Facts, keys: dict[str, UInt32[Array, "2"]], heads: Array, width: Array) -> Weights:
    """Q, K, V ~ N(0, 1/d_h) and O ~ N(0, 1/d); the MLP with variance 1/(3 fan-in) (our choice).

    `program` may have more heads and hidden units than the spec: the surplus is zero, and so are its gradients.
    """
    H, k, d, m = program.heads, program.head_dim, program.dim, program.width
    live_heads = (jnp.arange(H) < heads)[:, None, None]

    def draw_heads(name: str, variance: float) -> Float[Array, "H k d"]:
        draw = normal(keys[name], H * k, d).astype(float).reshape(H, k, d)
        return jnp.where(live_heads, draw * variance**0.5, 0.0)

    live = jnp.arange(m) < width
    W1, W2 = (normal(keys[name], m, d).astype(float) for name in ("W1", "W2"))
    b = normal(keys["b"], m, 1).astype(float)[:, 0]
    fan = jnp.maximum(width, 1).astype(W2.dtype)
    return Weights(
        draw_heads("Q", 1 / k),
        draw_heads("K", 1 / k),
        draw_heads("V", 1 / k),
        draw_heads("O", 1 / d),
        jnp.where(live[:, None], W1 / (3 * d) ** 0.5, 0.0),
        jnp.where(live, b / (3 * d) ** 0.5, 0.0),
        jnp.where(live[:, None], W2 / jnp.sqrt(3 * fan), 0.0),
    )


def by_position(program: Facts) -> bool:
    """Whether attention is over the positions of a sequence rather than over all tokens."""
    H, V, T = program.heads, program.tokens, program.length
    return program.mixing == "softmax" and H * V >= MANY_SCORES and V >= MANY_TOKENS * T


def scores_per_head(program: Facts) -> int:
    """How many scores a head has in one sequence: one per position, or one per token."""
    return program.length if by_position(program) else program.tokens


def logits(
    program: Facts, sizes: Sizes, frozen: Frozen, weights: Weights, tokens: UInt32[Array, "B T"]
) -> Float[Array, "B A"]:
    """u_a^T x for every answer; padding answers get -inf."""
    query = weights.Q @ frozen.E[sizes.end] / program.head_dim**0.5
    wanted = jnp.einsum("hk,hkd->hd", query, weights.K)  # s_h(v) = wanted_h^T e_v
    mix = _mix_positions if by_position(program) else _mix_tokens
    x = mix(program, frozen, weights, wanted, tokens)
    if program.width:
        x = x + jax.nn.relu(x @ weights.W1.T + weights.b) @ weights.W2
    live = jnp.arange(program.outputs, dtype=jnp.uint32) < sizes.outputs
    return jnp.where(live, x @ frozen.U.T, -jnp.inf)


# Both softmaxes below subtract each sample's own largest score: a head that looks for one token has
# scores far below that token's in every sequence without it. The backward pass is by sample, too:
# where a head looks at a single token, its gradient is a difference of equal numbers. Summing over
# sequences before subtracting would be faster, but leaves noise, which Adam makes as large as any
# gradient. (By position, this holds for a token that occurs once, as subject, relation and end do.)


@jax.custom_vjp
def _by_itself(table: Float[Array, "H V"]) -> Float[Array, "H V"]:
    """The table itself; its gradient is summed over sequences before any other operation.

    XLA's GPU compiler merges the products that share E, and would sum inside the merged product,
    which takes up to fourteen times as long.
    """
    return table


_by_itself.defvjp(lambda table: (table, None), lambda _, gradient: (jax.lax.optimization_barrier(gradient),))


def _mix_tokens(
    program: Facts, frozen: Frozen, weights: Weights, wanted: Float[Array, "H d"], tokens: UInt32[Array, "B T"]
) -> Float[Array, "B d"]:
    """sum_h O_h sum_v a_h(v) V_h e_v, with scores and values as tables by token."""
    counts = count_tokens(tokens, program.tokens)
    scores = _by_itself(wanted @ frozen.E.T)
    values = jnp.einsum("hkd,vd->hvk", weights.V, frozen.E)
    if program.mixing == "linear":
        return counts @ jnp.einsum("hv,hvk,hkd->vd", scores, values, weights.O)
    mixed = jax.nn.softmax(scores[:, None, :] + jnp.log(counts), axis=-1)
    outputs = jnp.einsum("hbv,hvk->hbk", mixed, values)
    return jnp.einsum("hbk,hkd->bd", outputs, weights.O)


def _mix_positions(
    program: Facts, frozen: Frozen, weights: Weights, wanted: Float[Array, "H d"], tokens: UInt32[Array, "B T"]
) -> Float[Array, "B d"]:
    """The same as sum_h O_h V_h sum_t a_h(t) e_t, over the positions t of each sequence.

    The gradient of a table of scores would be summed by token, in no fixed order on a GPU. A product
    with the frozen embeddings avoids that sum.
    """
    embedded = frozen.E[tokens]
    mixed = jax.nn.softmax(jnp.einsum("hd,btd->bht", wanted, embedded), axis=-1)
    pooled = jnp.einsum("bht,btd->bhd", mixed, embedded)
    values = jnp.einsum("bhd,hkd->bhk", pooled, weights.V)
    return values.reshape(len(tokens), -1) @ weights.O.reshape(-1, program.dim)
