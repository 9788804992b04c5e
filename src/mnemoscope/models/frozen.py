"""Frozen vectors of a setting: drawn by a law, or with rows of a user's own matrix."""

import jax.numpy as jnp
from jaxtyping import Array, UInt32

from mnemoscope.engine import random
from mnemoscope.models.matrices import load
from mnemoscope.models.retrieval import Frozen, draw_frozen
from mnemoscope.spec import Retrieval, SpecError


def make_frozen(spec: Retrieval, streams: dict[str, UInt32[Array, "2"]]) -> Frozen:
    """Embeddings, W_in and the permutation.

    From a file come Z, and U where the file has one; what it does not have is gaussian. A seed
    takes V of the file's rows at random, the same for Z and U, so that seeds are samples of it.
    """
    if not spec.from_file:
        return draw_frozen(spec.program(), spec.embedding, streams)
    kept = load(spec.embedding)
    rows, columns = kept.Z.shape
    if columns != spec.dim:
        raise SpecError("dim", f"expected {columns}, the columns of the file, got {spec.dim}")
    if rows < spec.vocab:
        raise SpecError("vocab", f"expected at most {rows:,}, the rows of the file, got {spec.vocab:,}")
    drawn = draw_frozen(spec.program(), "gaussian", streams)
    chosen = random.permutation(streams["input"], rows)[: spec.vocab]
    Z = jnp.asarray(kept.Z, drawn.Z.dtype)[chosen]
    U = drawn.U if kept.U is None else jnp.asarray(kept.U, drawn.U.dtype)[chosen]
    return drawn._replace(Z=Z, U=U)
