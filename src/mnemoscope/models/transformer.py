r"""A transformer: L layers of attention with H heads and an MLP, read at the positions where answers are asked for.

    start    x = e_token (+ p_position) (+ z at a mark)
    norm     n(x) = g (x - mean x) / sqrt(var x + 1e-5) + c, or n(x) = x without it
    scores   s_h(i, j) = (Q_h n(x_i))^T (K_h n(x_j)) / sqrt(d_h); rotary positions turn both factors
    weights  softmax: a_h(i, .) = softmax_j s_h(i, j) over the positions that i sees;  linear: a_h(i, j) = s_h(i, j)
    mixing   x <- (x +) sum_h O_h sum_j a_h(i, j) V_h n(x_j)
    MLP      x <- x + W2 phi(W1 n(x) + b)
    logits   u_a^T n(x) over all answers; with tied embeddings u_a = e_a

The last layer is computed at the positions that are read alone. With one layer, no norm, no positions and no residual
round attention, these are the equations of `models.facts`, whose draws the first layer shares.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int32, UInt32

from mnemoscope.engine.random import named_key, normal
from mnemoscope.models.activations import named
from mnemoscope.spec.transformer import Transformer
from mnemoscope.tasks.sequences import Questions

# Weights by name. The first axis of those of layers is the layer.
Weights = dict[str, Float[Array, "..."]]
# Each has a stream of its own, and the matrices of layers one for each layer.
WHOLE, LAYERED = ("token", "answer", "mark", "place"), ("Q", "K", "V", "O", "W1", "b", "W2")
# Added to the variance by layer norm.
TINY = 1e-5
# Wavelengths of rotary positions go up to 2 pi times this.
ROTARY_BASE = 10_000.0


class Read(NamedTuple):
    """Logits of every answer read, and by layer where the position that reads it looks."""

    logits: Float[Array, "B Q A"]
    looks: list[Float[Array, "B H Q T"]]


def model_keys(spec: Transformer, seed: int) -> dict[str, np.ndarray]:
    """The streams of the initial weights; those of the first layer have the names that `Facts` gives them."""
    d = spec.dim
    keys = {name: named_key(seed, f"facts-{name}", dim=d) for name in WHOLE}
    for name in LAYERED:
        first = named_key(seed, f"facts-{name}", dim=d)
        keys[name] = np.stack(
            [first, *(named_key(seed, f"facts-{name}", dim=d, layer=k) for k in range(1, spec.layers))]
        )
    return keys


def draw_weights(
    program: Transformer, keys: dict[str, UInt32[Array, "*n"]], width: Int32[Array, ""]
) -> tuple[Weights, Weights]:
    r"""The trained weights and those that stay as drawn.

    Embeddings are N(0, I/d). Without a norm, heads and MLPs are drawn as those of `Facts` are: Q, K, V ~ N(0, 1/d_h),
    O ~ N(0, 1/d), the MLP with variance 1/(3 fan-in). A norm makes its input d times as long, so with one all have
    variance 1/fan-in, and what is added to the residual stream is divided by sqrt(2 L) (our choice, as in GPT-2).
    """
    d, H, k, L, m = program.dim, program.heads, program.head_size, program.layers, program.width
    sizes = program.sizes
    normed = program.norm == "layer"
    live = jnp.arange(m) < width  # the program may have more hidden units than the spec

    def rows(name: str, count: int) -> Float[Array, "{count} d"]:
        return normal(keys[name], count, d).astype(float) / d**0.5

    def heads(name: str, variance: float) -> Float[Array, "L H k d"]:
        draw = jnp.stack([normal(keys[name][layer], H * k, d) for layer in range(L)]).astype(float)
        return draw.reshape(L, H, k, d) * variance**0.5

    def hidden(name: str, columns: int, scale: Any) -> Float[Array, "L m c"]:
        draw = jnp.stack([normal(keys[name][layer], m, columns) for layer in range(L)]).astype(float)
        return jnp.where(live[:, None], draw * scale, 0.0)

    E = {"E": rows("token", sizes.tokens)}
    if program.embeddings != "tied":
        E["U"] = rows("answer", sizes.outputs)
    if program.task == "retrieval" and program.cue == "mark":
        E["mark"] = rows("mark", 1)[0]
    into, out = (1 / d, 1 / (H * k * 2 * L)) if normed else (1 / k, 1 / d)
    weights = {"Q": heads("Q", into), "K": heads("K", into), "V": heads("V", into), "O": heads("O", out)}
    fixed: Weights = {}
    if program.positions == "learned":
        weights["P"] = rows("place", program.places)
    if m:
        fan = jnp.maximum(width, 1).astype(float)
        first = {
            "W1": hidden("W1", d, d**-0.5 if normed else (3 * d) ** -0.5),
            "b": hidden("b", 1, 0.0 if normed else (3 * d) ** -0.5)[..., 0],
        }
        weights["W2"] = hidden("W2", d, (2 * L * fan) ** -0.5 if normed else (3 * fan) ** -0.5)
        (fixed if program.mlp == "fixed" else weights).update(first)
    if normed:
        weights |= {"gain": jnp.ones((2 * L + 1, d)), "shift": jnp.zeros((2 * L + 1, d))}
    (fixed if program.embeddings == "frozen" else weights).update(E)
    return weights, fixed


def read(program: Transformer, weights: Weights, asked: Questions, outputs: UInt32[Array, ""] | int) -> Read:
    """The logits at every position that is read; answers from `outputs` on are padding, with -inf."""
    sizes = program.sizes
    T, first, last = sizes.positions, sizes.first, sizes.last
    x = weights["E"][asked.tokens]
    if asked.marked is not None:
        here = jnp.arange(T, dtype=jnp.uint32) == asked.marked[:, None]
        x = x + jnp.where(here[..., None], weights["mark"], 0.0)
    if program.positions == "learned":
        x = x + weights["P"][:T]
    looks = []
    for layer in range(program.layers):
        # The last layer has to be known where an answer is read.
        begin = first if layer == program.layers - 1 else 0
        stop = last + 1 if layer == program.layers - 1 else T
        mixed, look = _attend(program, weights, layer, _normed(program, weights, 2 * layer, x), begin, stop)
        looks.append(look[:, :, first - begin : last + 1 - begin])
        x = x[:, begin:stop] + mixed if program.residual == "all" else mixed
        if program.width:
            x = x + _mlp(program, weights, layer, _normed(program, weights, 2 * layer + 1, x))
    U = weights["E"][: sizes.outputs] if program.embeddings == "tied" else weights["U"]
    logits = _product(program, "bqd,ad->bqa", _normed(program, weights, 2 * program.layers, x), U)
    return Read(jnp.where(jnp.arange(sizes.outputs, dtype=jnp.uint32) < outputs, logits, -jnp.inf), looks)


def _product(program: Transformer, how: str, *factors: Array) -> Array:
    """A product of two arrays; with bfloat16, of rounded factors, added up in float32."""
    if program.precision != "bfloat16":
        return jnp.einsum(how, *factors)
    rounded = (factor.astype(jnp.bfloat16) for factor in factors)
    return jnp.einsum(how, *rounded, preferred_element_type=jnp.float32)


def _normed(program: Transformer, weights: Weights, number: int, x: Float[Array, "B T d"]) -> Float[Array, "B T d"]:
    if program.norm == "none":
        return x
    centred = x - jnp.mean(x, axis=-1, keepdims=True)
    spread = jnp.mean(centred**2, axis=-1, keepdims=True) + TINY
    return centred * jax.lax.rsqrt(spread) * weights["gain"][number] + weights["shift"][number]


def _mlp(program: Transformer, weights: Weights, layer: int, x: Float[Array, "B T d"]) -> Float[Array, "B T d"]:
    hidden = _product(program, "btd,md->btm", x, weights["W1"][layer]) + weights["b"][layer]
    return _product(program, "btm,md->btd", named(program.activation)(hidden), weights["W2"][layer])


def _attend(
    program: Transformer, weights: Weights, layer: int, x: Float[Array, "B T d"], begin: int, stop: int
) -> tuple[Float[Array, "B q d"], Float[Array, "B H q T"]]:
    """What positions begin..stop-1 take from all, and with which weights."""
    T, k = x.shape[1], program.head_size
    queries, keys, values = (
        _product(program, "btd,hkd->bhtk", part, weights[name][layer])
        for name, part in (("Q", x[:, begin:stop]), ("K", x), ("V", x))
    )
    if program.positions == "rotary":
        turn = _turns(T, k)
        queries, keys = _turned(queries, turn[begin:stop]), _turned(keys, turn)
    scores = _product(program, "bhqk,bhtk->bhqt", queries / k**0.5, keys)
    sees = jnp.arange(T)[None, :] <= jnp.arange(begin, stop)[:, None]
    if program.attention == "linear":
        look = jnp.where(sees, scores, 0.0) if program.mask == "causal" else scores
    else:
        look = jax.nn.softmax(jnp.where(sees, scores, -jnp.inf) if program.mask == "causal" else scores, axis=-1)
    mixed = _product(program, "bhqt,bhtk->bhqk", look, values)
    return _product(program, "bhqk,hkd->bqd", mixed, weights["O"][layer]), look


def _turns(T: int, k: int) -> Float[Array, "T h"]:
    """The angles of position t: t / base^(2 i / d_h) for each pair i of coordinates."""
    rates = ROTARY_BASE ** (-2 * jnp.arange(k // 2) / k)
    return jnp.arange(T)[:, None] * rates


def _turned(x: Float[Array, "B H T k"], angle: Float[Array, "T h"]) -> Float[Array, "B H T k"]:
    """Each pair of coordinates (i, i + d_h / 2) turned by its position's angle."""
    first, second = jnp.split(x, 2, axis=-1)
    cos, sin = jnp.cos(angle).astype(x.dtype), jnp.sin(angle).astype(x.dtype)
    return jnp.concatenate([first * cos - second * sin, first * sin + second * cos], axis=-1)
