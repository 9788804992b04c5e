"""Token geometry: where the vectors z_v, u_y, z_trig and z_EOS come from.

A law turns a stream of random words into the embeddings of `rows` tokens in `dim` dimensions, of norm about 1:

    (words, rows, dim) -> matrix

To add a law, write its function here under `@law` and add its name to `Embedding` in `spec/names.py`. A user's own
function needs neither: settings take the function itself, or the place where it stands, "module:object". Until it is
registered as in `theory/embedding_laws.py`, or states its moments, theory reports "not derived".

With V = 3 and d = 2, the normal draw ((3, 4), (0, -2), (1, 1)) becomes

    gaussian     ((2.12, 2.83), (0, -1.41), (0.71, 0.71))   every number over sqrt(2)
    sphere       ((0.6, 0.8), (0, -1), (0.71, 0.71))        every row over its norm
    orthonormal  refused: three orthonormal rows need d >= 3

One program serves many d where it can: `dim` is then a number known only when the program runs, and the matrix has more
columns, which stay zero. `pads` finds out by trying which laws allow this; the others are compiled for each d.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple, TypeVar, get_args

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float, UInt32

from mnemoscope.engine.words import Words, normal
from mnemoscope.spec import SpecError
from mnemoscope.spec.names import LAWS, Embedding, add_name
from mnemoscope.spec.objects import find_object, place_in
from mnemoscope.spec.validators import FROM_FILE, is_kept_name, one_line

Law = Callable[[Words, int, Any], Float[Array, "n D"]]
L = TypeVar("L", bound=Law)
_LAWS: dict[str, Law] = {}
# Rows in a block of Gram-Schmidt.
ROWS_AT_ONCE = 32
# Rows, dimensions and columns at which a law is tried, and how far two draws of it may be apart.
TRIED = ((6, 12, 16), (4, 100, 128))
CLOSE = 1e-4


class Embeddings(NamedTuple):
    """The frozen vectors: z_v in the rows of Z, u_y in the rows of U, z_trig and z_EOS."""

    Z: Float[Array, "V d"]
    U: Float[Array, "V d"]
    trigger: Float[Array, "d"]
    query: Float[Array, "d"]


def law(make: L) -> L:
    """Register a law under its function's name, so that specs accept the name."""
    known = _LAWS.get(make.__name__, make)
    if (known.__module__, known.__qualname__) != (make.__module__, make.__qualname__):
        raise SpecError("embedding", f"expected a name that is not taken, got {make.__name__!r}")
    add_name(LAWS, make.__name__)
    _LAWS[make.__name__] = make
    return make


def frame(make: L) -> L:
    """Mark a law whose rows depend on each other: the trigger is drawn as one more row, where dim > vocab."""
    make.frame = True  # pyright: ignore[reportFunctionMemberAccess]
    return make


def law_of(name: str) -> Law:
    """The law of that name, or the user's own."""
    if not is_kept_name(name):
        return _LAWS[name]
    own = find_object("embedding", name)

    def draw(words: Words, rows: int, dim: Any) -> Float[Array, "n D"]:
        try:
            matrix = own(words, rows, dim)
        except SpecError:
            raise
        except Exception as error:  # a user's function may raise anything
            raise _refusal(name, rows, dim, one_line(error)) from None
        expected = (rows, dim if isinstance(dim, int) else words.columns)
        if np.shape(matrix) != expected:
            raise _refusal(name, *expected, f"shape {np.shape(matrix)}")
        return jnp.asarray(matrix).astype(float)

    return draw


def is_frame(name: str) -> bool:
    """Whether the rows of a law depend on each other."""
    make = find_object("embedding", name) if is_kept_name(name) else _LAWS[name]
    return getattr(make, "frame", False)


@lru_cache(maxsize=256)
def pads(name: str) -> bool:
    """Whether a law serves a dimension known only when the program runs, with zeros in the columns past it.

    A user's law is tried with and without spare columns, and must give the same numbers.
    """
    if name in get_args(Embedding) or FROM_FILE.fullmatch(name):
        return name != "orthonormal"
    if is_frame(name):
        return False
    with jax.ensure_compile_time_eval():
        return _allows_padding(name)


def _allows_padding(name: str) -> bool:
    make, key = law_of(name), jnp.asarray([1, 2], jnp.uint32)
    for rows, dim, columns in TRIED:
        alone = np.asarray(make(Words(key, dim), rows, dim))
        if not np.isfinite(alone).all():
            raise _refusal(name, rows, dim, f"{int((~np.isfinite(alone)).sum())} that are not finite")
        try:
            padded = np.asarray(jax.jit(lambda d, c=columns, r=rows: make(Words(key, c), r, d))(jnp.uint32(dim)))
        except Exception:  # it needs a dimension that is known beforehand
            return False
        if not np.allclose(padded, np.pad(alone, ((0, 0), (0, columns - dim))), rtol=CLOSE, atol=CLOSE / dim**0.5):
            return False
    return True


def _refusal(name: str, rows: int, dim: Any, got: str) -> SpecError:
    return SpecError("embedding", f"expected {rows} x {dim} finite numbers from {place_in(name) or name}, got {got}")


@law
def gaussian(words: Words, rows: int, dim: Any) -> Float[Array, "n D"]:
    """z ~ N(0, I/d): squared norm 1 on average, overlaps of size 1/sqrt(d)."""
    draw = normal(words, rows, dim)
    return draw / jnp.sqrt(jnp.asarray(dim, draw.dtype))


@law
def sphere(words: Words, rows: int, dim: Any) -> Float[Array, "n D"]:
    """z uniform on the unit sphere: the same directions as `gaussian`, norms exactly 1."""
    draw = normal(words, rows, dim)
    return draw / jnp.linalg.norm(draw, axis=1, keepdims=True)


@law
@frame
def orthonormal(words: Words, rows: int, dim: Any) -> Float[Array, "n D"]:
    """The first n rows of a random orthogonal matrix: no overlap at all.

    Gram-Schmidt of the draw, row by row with positive norms, so that the frame is uniform over
    orthonormal frames (Haar), and each row is uniform on the sphere.

    It is written out, a block of rows at a time and every projection twice, rather than calling
    LAPACK's QR: inside a larger program on few cores that call can hang.
    """
    draw = normal(words, rows, dim)
    n, columns = draw.shape
    block = min(ROWS_AT_ONCE, n)
    count = -(-n // block)
    blocks = jnp.pad(draw, ((0, count * block - n), (0, 0))).reshape(count, block, columns)

    def project_out(part: Float[Array, "b D"], done: Float[Array, "m D"]) -> Float[Array, "b D"]:
        for _ in range(2):
            part = part - (part @ done.T) @ done
        return part

    def add_row(at: Array, part: Float[Array, "b D"]) -> Float[Array, "b D"]:
        before = jnp.where((lax.iota(jnp.int32, block) < at)[:, None], part, 0)
        row = project_out(part[at][None], before)[0]
        norm = jnp.linalg.norm(row)
        return part.at[at].set(row / jnp.where(norm > 0, norm, 1))  # rows past n are zero

    def add_block(found: Float[Array, "m D"], at: Array) -> tuple[Float[Array, "m D"], None]:
        part = lax.fori_loop(0, block, add_row, project_out(blocks[at], found))
        return lax.dynamic_update_slice(found, part, (at * block, 0)), None

    found, _ = lax.scan(add_block, jnp.zeros((count * block, columns), draw.dtype), jnp.arange(count))
    return found[:n]


def draw_embeddings(
    law: str, vocab: int, columns: int, streams: dict[str, UInt32[Array, "2"]], dim: UInt32[Array, ""] | None = None
) -> Embeddings:
    """Draw all four under one law; U, the trigger and the query are independent of Z.

    The dimension is `columns`, or `dim` with zeros in the columns past it. Under a frame as is `orthonormal`, which is
    never padded, the trigger joins the frame of Z if there is room for it (d > V), so that nothing overlaps; at d = V
    it is drawn on its own. Only the query's norm matters, so it is always drawn on its own.
    """
    d = columns if dim is None else dim
    make, words = law_of(law), {name: Words(streams[name], columns) for name in ("input", "output", "trigger", "query")}
    if is_frame(law) and columns > vocab:
        whole = make(Words(streams["input"], columns, streams["trigger"], vocab), vocab + 1, d)
        return Embeddings(whole[:vocab], make(words["output"], vocab, d), whole[vocab], make(words["query"], 1, d)[0])
    tokens, labels = (make(words[name], vocab, d) for name in ("input", "output"))
    trigger, query = (make(words[name], 1, d)[0] for name in ("trigger", "query"))
    return Embeddings(tokens, labels, trigger, query)
