"""The frozen vectors of a setting: drawn from a law, or rows of a user's own matrix."""

import jax.numpy as jnp
from jaxtyping import Array, UInt32

from mnemoscope.engine import random
from mnemoscope.models.matrices import load
from mnemoscope.models.retrieval import Frozen, draw_frozen
from mnemoscope.spec import Retrieval, SpecError


def make_frozen(spec: Retrieval, streams: dict[str, UInt32[Array, "2"]]) -> Frozen:
    """Draw or load the embeddings, W_in and the permutation.

    A file gives Z, and U if it has one; everything else is gaussian. Each seed takes V random rows
    of the file, the same for Z and U, so that seeds are samples of it.
    """
    if not spec.from_file:
        return draw_frozen(spec.program(), spec.embedding, streams)
    matrices = load(spec.embedding)
    rows, columns = matrices.Z.shape
    if columns != spec.dim:
        raise SpecError("dim", f"expected {columns}, the columns of the file, got {spec.dim}")
    if rows < spec.vocab:
        raise SpecError("vocab", f"expected at most {rows:,}, the rows of the file, got {spec.vocab:,}")
    drawn = draw_frozen(spec.program(), "gaussian", streams)
    chosen = random.permutation(streams["input"], rows)[: spec.vocab]
    Z = jnp.asarray(matrices.Z, drawn.Z.dtype)[chosen]
    U = drawn.U if matrices.U is None else jnp.asarray(matrices.U, drawn.U.dtype)[chosen]
    return drawn._replace(Z=Z, U=U)
