"""Token geometry: where the vectors z_v, u_y, z_trig and z_EOS come from.

A law turns a V x d matrix of standard normal numbers into V embeddings of norm about 1. The matrix may have more than d
columns, filled with zeros, so that one program serves many d; a law leaves them zero. To add a law, write its function
here under `@law` and add its name to `Embedding` in `spec/names.py`; in your own module the decorator is enough. Until
it is also registered as in `theory/embedding_laws.py`, theory reports "not derived".

With V = 3 and d = 2, the normal draw ((3, 4), (0, -2), (1, 1)) becomes

    gaussian     ((2.12, 2.83), (0, -1.41), (0.71, 0.71))   every number over sqrt(2)
    sphere       ((0.6, 0.8), (0, -1), (0.71, 0.71))        every row over its norm
    orthonormal  refused: three orthonormal rows need d >= 3
"""

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, UInt32

from mnemoscope.engine.random import normal
from mnemoscope.spec.names import LAWS, add_name

Law = Callable[[Float[Array, "n D"], Array | int], Float[Array, "n D"]]
_LAWS: dict[str, Law] = {}
# Rows in a block of Gram-Schmidt.
ROWS_AT_ONCE = 32


class Embeddings(NamedTuple):
    """The frozen vectors: z_v in the rows of Z, u_y in the rows of U, z_trig and z_EOS."""

    Z: Float[Array, "V d"]
    U: Float[Array, "V d"]
    trigger: Float[Array, "d"]
    query: Float[Array, "d"]


def law(make: Law) -> Law:
    """Register a function of a normal draw and its dimension, so that specs accept its name."""
    add_name(LAWS, make.__name__)
    _LAWS[make.__name__] = make
    return make


def law_of(name: str) -> Law:
    """The law of that name."""
    return _LAWS[name]


@law
def gaussian(draw: Float[Array, "n D"], dim: Array | int) -> Float[Array, "n D"]:
    """z ~ N(0, I/d): squared norm 1 on average, overlaps of size 1/sqrt(d)."""
    return draw / jnp.sqrt(jnp.asarray(dim, draw.dtype))


@law
def sphere(draw: Float[Array, "n D"], dim: Array | int) -> Float[Array, "n D"]:
    """z uniform on the unit sphere: the same directions as `gaussian`, norms exactly 1."""
    return draw / jnp.linalg.norm(draw, axis=1, keepdims=True)


@law
def orthonormal(draw: Float[Array, "n D"], dim: Array | int) -> Float[Array, "n D"]:
    """The first n rows of a random orthogonal matrix: no overlap at all.

    Gram-Schmidt of the draw, row by row with positive norms, so that the frame is uniform over
    orthonormal frames (Haar), and each row is uniform on the sphere.

    It is written out, a block of rows at a time and every projection twice, rather than calling
    LAPACK's QR: inside a larger program on few cores that call can hang.
    """
    n, columns = draw.shape
    block = min(ROWS_AT_ONCE, n)
    count = -(-n // block)
    blocks = jnp.pad(draw, ((0, count * block - n), (0, 0))).reshape(count, block, columns)

    def project_out(rows: Float[Array, "b D"], done: Float[Array, "m D"]) -> Float[Array, "b D"]:
        for _ in range(2):
            rows = rows - (rows @ done.T) @ done
        return rows

    def add_row(at: Array, rows: Float[Array, "b D"]) -> Float[Array, "b D"]:
        before = jnp.where((lax.iota(jnp.int32, block) < at)[:, None], rows, 0)
        row = project_out(rows[at][None], before)[0]
        norm = jnp.linalg.norm(row)
        return rows.at[at].set(row / jnp.where(norm > 0, norm, 1))  # rows past n are zero

    def add_block(frame: Float[Array, "m D"], at: Array) -> tuple[Float[Array, "m D"], None]:
        rows = lax.fori_loop(0, block, add_row, project_out(blocks[at], frame))
        return lax.dynamic_update_slice(frame, rows, (at * block, 0)), None

    frame, _ = lax.scan(add_block, jnp.zeros((count * block, columns), draw.dtype), jnp.arange(count))
    return frame[:n]


def draw_embeddings(
    law: str, vocab: int, columns: int, streams: dict[str, UInt32[Array, "2"]], dim: UInt32[Array, ""] | None = None
) -> Embeddings:
    """Draw all four under one law; U, the trigger and the query are independent of Z.

    The dimension is `columns`, or `dim` with zeros in the columns past it. Under `orthonormal`, which is never padded,
    the trigger joins the frame of Z if there is room for it (d > V), so that nothing overlaps; at d = V it is uniform
    on the sphere. Only the query's norm matters, so it is always drawn on its own.
    """
    d = columns if dim is None else dim
    make = law_of(law)
    tokens, labels, trigger, query = (
        normal(streams[name], rows, columns, dim).astype(float)
        for name, rows in (("input", vocab), ("output", vocab), ("trigger", 1), ("query", 1))
    )
    if law == "orthonormal" and columns > vocab:
        frame = make(jnp.concatenate([tokens, trigger]), d)
        return Embeddings(frame[:vocab], make(labels, d), frame[vocab], make(query, d)[0])
    return Embeddings(make(tokens, d), make(labels, d), make(trigger, d)[0], make(query, d)[0])
