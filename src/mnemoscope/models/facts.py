r"""Paper B's one-layer transformer, with frozen embeddings, asked from the last token.

    scores   s_h(v) = (K_h e_v)^T (Q_h e_EOS) / sqrt(d_h)
    mixing   softmax: a_h(v) = c_v exp(s_h(v)) / sum_w c_w exp(s_h(w));  linear: a_h(v) = c_v s_h(v)
    output   x = sum_h O_h sum_v a_h(v) V_h e_v
    MLP      x + W2 relu(W1 x + b),   the only residual
    logits   u_a^T x over all R D answers

c_v is how often token v is in the sequence. Since embeddings are frozen and there are no positions,
scores and values are tables by token, made once a step. Where there are far more tokens than places
in a sequence, and many heads, attention is over the places instead.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, UInt32

from mnemoscope.engine.random import normal
from mnemoscope.spec.facts import Facts
from mnemoscope.tasks.facts import Sizes, count_tokens

# From so many heads x tokens on, and so many tokens for a place of a sequence, sequences are gone
# through place by place: attention to tokens that are not there costs more than tables save.
MANY_SCORES, MANY_TOKENS = 1024, 4


class Frozen(NamedTuple):
    """Embeddings of tokens and of answers, N(0, I/d), never trained."""

    E: Float[Array, "*n V d"]
    U: Float[Array, "*n A d"]


class Weights(NamedTuple):
    """What is trained. Heads and hidden units past those asked for are zero, and stay zero."""

    Q: Float[Array, "*n H k d"]
    K: Float[Array, "*n H k d"]
    V: Float[Array, "*n H k d"]
    O: Float[Array, "*n H k d"]  # noqa: E741 - the output matrices, transposed
    W1: Float[Array, "*n m d"]
    b: Float[Array, "*n m"]
    W2: Float[Array, "*n m d"]


def draw_frozen(program: Facts, keys: dict[str, UInt32[Array, "2"]]) -> Frozen:
    """The embeddings."""
    d = program.dim
    E, U = normal(keys["token"], program.tokens, d), normal(keys["answer"], program.outputs, d)
    return Frozen(E.astype(float) / d**0.5, U.astype(float) / d**0.5)


def draw_weights(program: Facts, keys: dict[str, UInt32[Array, "2"]], heads: Array, width: Array) -> Weights:
    """Q, K, V ~ N(0, 1/d_h) and O ~ N(0, 1/d); the MLP with variance 1/(3 fan-in) (our choice).

    `program` may have more heads and hidden units than asked for: the rest is zero, so that their
    gradients are zero, too.
    """
    H, k, d, m = program.heads, program.head_dim, program.dim, program.width
    there = (jnp.arange(H) < heads)[:, None, None]

    def of_heads(name: str, variance: float) -> Float[Array, "H k d"]:
        drawn = normal(keys[name], H * k, d).astype(float).reshape(H, k, d)
        return jnp.where(there, drawn * variance**0.5, 0.0)

    live = jnp.arange(m) < width
    W1, W2 = (normal(keys[name], m, d).astype(float) for name in ("W1", "W2"))
    b = normal(keys["b"], m, 1).astype(float)[:, 0]
    fan = jnp.maximum(width, 1).astype(W2.dtype)
    return Weights(
        of_heads("Q", 1 / k),
        of_heads("K", 1 / k),
        of_heads("V", 1 / k),
        of_heads("O", 1 / d),
        jnp.where(live[:, None], W1 / (3 * d) ** 0.5, 0.0),
        jnp.where(live, b / (3 * d) ** 0.5, 0.0),
        jnp.where(live[:, None], W2 / jnp.sqrt(3 * fan), 0.0),
    )


def by_position(program: Facts) -> bool:
    """Whether attention is over the places of a sequence, rather than over all tokens."""
    H, V, T = program.heads, program.tokens, program.length
    return program.mixing == "softmax" and H * V >= MANY_SCORES and V >= MANY_TOKENS * T


def scores_per_head(program: Facts) -> int:
    """What a head weighs in one sequence: its places, or all tokens."""
    return program.length if by_position(program) else program.tokens


def logits(
    program: Facts, sizes: Sizes, frozen: Frozen, weights: Weights, tokens: UInt32[Array, "B T"]
) -> Float[Array, "B A"]:
    """u_a^T x for every answer; those past the setting's own are never named."""
    query = weights.Q @ frozen.E[sizes.end] / program.head_dim**0.5
    wanted = jnp.einsum("hk,hkd->hd", query, weights.K)  # s_h(v) = wanted_h^T e_v
    mix = _mix_places if by_position(program) else _mix_tokens
    x = mix(program, frozen, weights, wanted, tokens)
    if program.width:
        x = x + jax.nn.relu(x @ weights.W1.T + weights.b) @ weights.W2
    there = jnp.arange(program.outputs, dtype=jnp.uint32) < sizes.outputs
    return jnp.where(there, x @ frozen.U.T, -jnp.inf)


# Softmax goes sample by sample from its own largest score, both below: a head that waits for one
# token has scores far below it in every sequence without that token. And sample by sample back:
# where a head looks at one token alone, its gradient is a difference of equal numbers. Summed over
# sequences before they are subtracted, as would be faster, they leave noise, which Adam makes as
# large as any gradient. (Place by place that holds for a token that stands once, as subject,
# relation and end do.)


@jax.custom_vjp
def _by_itself(table: Float[Array, "H V"]) -> Float[Array, "H V"]:
    """The table; its gradient is summed over sequences before anything else is done with it.

    XLA's GPU compiler joins the products that have E in common, and would sum while it joins them,
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
    seen = jnp.einsum("hbv,hvk->hbk", mixed, values)
    return jnp.einsum("hbk,hkd->bd", seen, weights.O)


def _mix_places(
    program: Facts, frozen: Frozen, weights: Weights, wanted: Float[Array, "H d"], tokens: UInt32[Array, "B T"]
) -> Float[Array, "B d"]:
    """The same as sum_h O_h V_h sum_t a_h(t) e_t, over the places t of each sequence.

    A table of scores looked up here would have its gradient summed by token, in no certain order
    on a GPU; embeddings are frozen, so that a product with them has none of that.
    """
    embedded = frozen.E[tokens]
    mixed = jax.nn.softmax(jnp.einsum("hd,btd->bht", wanted, embedded), axis=-1)
    seen = jnp.einsum("bht,btd->bhd", mixed, embedded)
    values = jnp.einsum("bhd,hkd->bhk", seen, weights.V)
    return values.reshape(len(tokens), -1) @ weights.O.reshape(-1, program.dim)
