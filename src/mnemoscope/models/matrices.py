"""The user's own embedding matrices: read from a file, normalised, and stored by content.

    file:PATH            .npy, .npz or .safetensors; the only matrix in it
    file:PATH#NAME       the matrix of that name
    file:PATH#NAME,NAME  input embeddings Z, and output embeddings U with the same number of rows

A setting names a matrix by its content, `file:` and sixteen digits, so that a record keeps its meaning
when the file moves or changes. The matrix itself is stored in the user's data folder.
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
from mnemoscope.spec.validators import is_name, is_place, whole

# Whitening raises smaller variances to this share of the largest.
FLAT = 1e-6
# Rows below this share of the largest number count as zero.
TINY = 1e-30


class Matrices(NamedTuple):
    """Input embeddings, and output embeddings if there are any, of mean squared norm 1."""

    Z: np.ndarray
    U: np.ndarray | None = None

    @property
    def name(self) -> str:
        """`file:` and sixteen digits of the content's hash."""
        digest = hashlib.sha256()
        for part in self:
            if part is not None:
                digest.update(str(part.shape).encode() + np.ascontiguousarray(part).tobytes())
        return f"file:{digest.hexdigest()[:16]}"


def read_matrices(source: Any, *, dim: Any = None, centre: bool = False, whiten: bool = False) -> Matrices:
    """Read `PATH` or `PATH#NAME,NAME`, or take an array or a pair of arrays, and normalise them.

    Rows of zeros are dropped, and squared norms are 1 on average. `centre` subtracts the mean, `whiten` also equalises
    the variance of all directions. If there are more columns than rows, `dim` says which side the tokens are on.
    """
    parts = read_parts(source) if isinstance(source, str) else _arrays(source)
    shown = repr(source) if isinstance(source, str) else "the array"
    if len(parts) == 2 and parts[0].shape != parts[1].shape:
        raise SpecError("embedding", f"expected Z and U of one shape, got {parts[0].shape} and {parts[1].shape}")
    if _is_transposed(parts[0].shape, dim, shown):
        parts = [part.T for part in parts]
    if parts[0].shape[1] > MOST_COLUMNS:
        raise SpecError(
            "embedding", f"expected at most {MOST_COLUMNS:,} dimensions, got {parts[0].shape[1]:,} in {shown}"
        )
    nonzero = np.all([_nonzero_rows(part) for part in parts], axis=0)
    if nonzero.sum() < 2:
        raise SpecError("embedding", f"expected two rows or more that are not zero, got {nonzero.sum()}")
    return Matrices(*(_normalised(part[nonzero], centre, whiten) for part in parts))


def take_matrix(values: dict[str, Any]) -> dict[str, Any]:
    """Replace a matrix given as the embedding (`file:PATH` or an array) by its name and sizes."""
    source = values.get("embedding")
    if source is None or is_name(source) or callable(source) or is_place(source):
        return values
    matrices = read_matrices(source.removeprefix("file:") if isinstance(source, str) else source, dim=values.get("dim"))
    rows, columns = matrices.Z.shape
    return {"vocab": rows, "dim": columns, **values, "embedding": keep(matrices)}


def _arrays(source: Any) -> list[np.ndarray]:
    """Z, or Z and U, from the caller's arrays."""
    pair = isinstance(source, tuple) and len(source) == 2
    try:
        arrays = [np.asarray(array) for array in (source if pair else (source,))]
    except Exception:  # an object's own conversion may raise anything
        raise SpecError(
            "embedding",
            f"expected a matrix of real numbers, got an object of type {type(source).__name__} that is none",
        ) from None
    for part in arrays:
        check_shape(part.shape, "the array")
    return [check_numbers(part, "the array") for part in arrays]


def _is_transposed(shape: tuple[int, ...], dim: Any, shown: str) -> bool:
    """Whether the columns are tokens. More columns than rows may be a mistake, so `dim` decides."""
    rows, columns = shape
    asked = None
    with suppress(ValueError):  # the spec refuses what is not a number
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


def _nonzero_rows(part: np.ndarray) -> np.ndarray:
    """Which rows are not zero, relative to the largest."""
    sizes = np.abs(part).max(axis=1).astype(np.float64)
    return sizes > TINY * sizes.max()


def _normalised(part: np.ndarray, centre: bool, whiten: bool) -> np.ndarray:
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
    """Equalise the variance of all directions that have any, from the smaller Gram matrix."""
    rows, columns = matrix.shape
    side = min(rows, columns)
    check_fits("embedding", f"{rows:,} x {columns:,}", 8 * EIGENVECTORS * side**2, "whitening it")
    gram = matrix.T @ matrix if side == columns else matrix @ matrix.T
    values, vectors = np.linalg.eigh(gram / rows)
    scaled = vectors / np.sqrt(np.maximum(values, FLAT * values[-1]))
    return matrix @ scaled @ vectors.T if side == columns else vectors @ (scaled.T @ matrix)


def keep(matrices: Matrices) -> str:
    """Store matrices for settings to use, and return their name."""
    name = matrices.name
    path = _path(name)
    with suppress(SpecError):
        load(name)
        return name  # stored already, and intact
    with suppress(OSError):  # `whole_file` reports a folder that cannot be made
        path.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(path, "embedding") as part, Path(part).open("wb") as file:
        np.savez(file, **{key: array for key, array in matrices._asdict().items() if array is not None})
    return name


def load(name: str) -> Matrices:
    """Load the stored matrices of that name."""
    try:
        with _path(name).open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            return Matrices(arrays["Z"], arrays["U"] if "U" in arrays.files else None)
    except Exception:  # missing, or damaged in any way
        raise SpecError(
            "embedding", f"expected a matrix that is kept here, got {name!r}: give file:PATH again"
        ) from None


def _path(name: str) -> Path:
    return data_home() / "embeddings" / f"{name.removeprefix('file:')}.npz"
