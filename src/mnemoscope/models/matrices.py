"""Embedding matrices of the user's own: read from a file, made ready, and kept by their content.

    file:PATH            .npy, .npz or .safetensors; the only matrix in it
    file:PATH#NAME       the one of that name
    file:PATH#NAME,NAME  input embeddings Z, and output embeddings U of as many rows

A setting names a matrix by what is in it, `file:` and sixteen digits, so that a record means the
same when the file has moved or changed. The matrix itself is kept beside the user's store.
"""

import hashlib
import math
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mnemoscope.engine.files import data_home, whole_file
from mnemoscope.engine.free_memory import EIGENVECTORS, check_fits
from mnemoscope.models.matrix_files import MOST_COLUMNS, check_numbers, check_shape, read_parts
from mnemoscope.spec import SpecError
from mnemoscope.spec.validators import is_name, whole

# Whitening takes directions of less variance than this share of the largest for that much.
FLAT = 1e-6
# Rows of less than this share of the largest number are rows of zeros.
TINY = 1e-30


class Matrices(NamedTuple):
    """Input embeddings, and output ones where there are any, of mean squared norm 1."""

    Z: np.ndarray
    U: np.ndarray | None = None

    @property
    def name(self) -> str:
        """`file:` and sixteen digits of the content."""
        digest = hashlib.sha256()
        for part in self:
            if part is not None:
                digest.update(str(part.shape).encode() + np.ascontiguousarray(part).tobytes())
        return f"file:{digest.hexdigest()[:16]}"


def read_matrices(source: Any, *, dim: Any = None, centre: bool = False, whiten: bool = False) -> Matrices:
    """What `PATH` or `PATH#NAME,NAME` says, or an array or a pair of them, ready for use.

    Rows of zeros are left out. The scale is set so that squared norms are 1 on average. `centre`
    takes the mean away, `whiten` also makes all directions alike. `dim` says on which side tokens
    are where there are more columns than rows.
    """
    parts = read_parts(source) if isinstance(source, str) else _arrays(source)
    shown = repr(source) if isinstance(source, str) else "the array"
    if len(parts) == 2 and parts[0].shape != parts[1].shape:
        raise SpecError("embedding", f"expected Z and U of one shape, got {parts[0].shape} and {parts[1].shape}")
    if _lies_on_its_side(parts[0].shape, dim, shown):
        parts = [part.T for part in parts]
    if parts[0].shape[1] > MOST_COLUMNS:
        raise SpecError(
            "embedding", f"expected at most {MOST_COLUMNS:,} dimensions, got {parts[0].shape[1]:,} in {shown}"
        )
    alive = np.all([_there(part) for part in parts], axis=0)
    if alive.sum() < 2:
        raise SpecError("embedding", f"expected two rows or more that are not zero, got {alive.sum()}")
    return Matrices(*(_ready(part[alive], centre, whiten) for part in parts))


def take_matrix(values: dict[str, Any]) -> dict[str, Any]:
    """With a matrix for an embedding, as `file:PATH` or as an array, its name and its sizes."""
    source = values.get("embedding")
    if source is None or is_name(source):
        return values
    matrices = read_matrices(source.removeprefix("file:") if isinstance(source, str) else source, dim=values.get("dim"))
    rows, columns = matrices.Z.shape
    return {"vocab": rows, "dim": columns, **values, "embedding": keep(matrices)}


def _arrays(source: Any) -> list[np.ndarray]:
    """Z, or Z and U, as a caller handed them over."""
    pair = isinstance(source, tuple) and len(source) == 2
    try:
        arrays = [np.asarray(array) for array in (source if pair else (source,))]
    except Exception:  # whatever an object's own conversion raises
        raise SpecError(
            "embedding",
            f"expected a matrix of real numbers, got an object of type {type(source).__name__} that is none",
        ) from None
    for part in arrays:
        check_shape(part.shape, "the array")
    return [check_numbers(part, "the array") for part in arrays]


def _lies_on_its_side(shape: tuple[int, ...], dim: Any, shown: str) -> bool:
    """Whether columns are tokens. More columns than rows may be meant, or a mistake: `dim` says."""
    rows, columns = shape
    asked = None
    with suppress(ValueError):  # what is no number is the setting's to refuse
        asked = None if dim is None else whole(1)(dim)
    if columns > rows and asked not in (rows, columns):
        raise SpecError(
            "dim",
            f"expected {rows} if the columns of {shown} are tokens, or {columns} if its "
            f"rows are, since it has more columns than rows, got {dim or 'none'}",
        )
    if asked is not None and asked not in (rows, columns)[columns <= rows :]:
        raise SpecError("dim", f"expected {columns}, the columns of {shown}, got {asked}")
    return columns > rows and asked == rows


def _there(part: np.ndarray) -> np.ndarray:
    """Which rows are not zero, beside the largest."""
    sizes = np.abs(part).max(axis=1).astype(np.float64)
    return sizes > TINY * sizes.max()


def _ready(part: np.ndarray, centre: bool, whiten: bool) -> np.ndarray:
    matrix = part.astype(np.float64)
    if centre or whiten:
        matrix = matrix - matrix.mean(axis=0)
        if not np.abs(matrix).max() > FLAT * np.abs(part).max():
            raise SpecError("embedding", "expected rows that differ, got the same in all")
    if whiten:
        matrix = _whitened(matrix)
    size = math.sqrt(float(np.mean(np.sum(matrix**2, axis=1))))
    return (matrix / (size or 1.0)).astype(np.float32)


def _whitened(matrix: np.ndarray) -> np.ndarray:
    """The same variance in every direction that has some, from the smaller of the two Grams."""
    rows, columns = matrix.shape
    side = min(rows, columns)
    check_fits("embedding", f"{rows:,} x {columns:,}", 8 * EIGENVECTORS * side**2, "whitening it")
    gram = matrix.T @ matrix if side == columns else matrix @ matrix.T
    values, vectors = np.linalg.eigh(gram / rows)
    scaled = vectors / np.sqrt(np.maximum(values, FLAT * values[-1]))
    return matrix @ scaled @ vectors.T if side == columns else vectors @ (scaled.T @ matrix)


def keep(matrices: Matrices) -> str:
    """Keep matrices for settings to name, and say by which name."""
    name = matrices.name
    path = _place(name)
    with suppress(SpecError):
        load(name)
        return name  # it is there, and whole
    with suppress(OSError):  # what cannot be made is told by the next line
        path.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(path, "embedding") as part, Path(part).open("wb") as file:
        np.savez(file, **{k: v for k, v in matrices._asdict().items() if v is not None})
    return name


def load(name: str) -> Matrices:
    """The matrices of that name."""
    path = _place(name)
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as kept:
            return Matrices(kept["Z"], kept["U"] if "U" in kept.files else None)
    except Exception:  # missing, or damaged in any way
        raise SpecError(
            "embedding", f"expected a matrix that is kept here, got {name!r}: give file:PATH again"
        ) from None


def _place(name: str) -> Path:
    return data_home() / "embeddings" / f"{name.removeprefix('file:')}.npz"
