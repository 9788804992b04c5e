"""Embedding matrices of the user's own: read from a file, made ready, and kept by their content.

    file:PATH            .npy, .npz or .safetensors; the only matrix in it
    file:PATH#NAME       the one of that name
    file:PATH#NAME,NAME  input embeddings Z, and output embeddings U of as many rows

A setting names a matrix by what is in it, `file:` and sixteen digits, so that a record means the
same when the file has moved or changed. The matrix itself is kept beside the user's store.

No pickle is ever loaded: NumPy is told not to, and safetensors is read here, a table of contents in
JSON before plain numbers.
"""

import hashlib
import json
import math
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mnemoscope.files import data_home, whole_file
from mnemoscope.spec import SpecError

MOST_ROWS, MOST_COLUMNS = 2**22, 2**15
MOST_BYTES = 2**33
# Types of safetensors that hold real numbers; BF16 is the upper half of a float32.
TYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2"}
# Whitening takes directions of less variance than this share of the largest for that much.
FLAT = 1e-6
# What reading a file that is not what it says may raise; RuntimeError is that of packed files with
# a password or in an unknown form, and of JSON that is nested without end.
BROKEN = (
    ValueError, KeyError, TypeError, AttributeError, OverflowError, RuntimeError, EOFError,
    zipfile.BadZipFile,
)  # fmt: skip


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


def read_matrices(text: str, *, centre: bool = False, whiten: bool = False) -> Matrices:
    """What `PATH` or `PATH#NAME,NAME` says, ready for use.

    Rows of zeros are left out. The scale is set so that squared norms are 1 on average. `centre`
    takes the mean away, `whiten` also makes all directions alike.
    """
    shown, _, names = text.partition("#")
    path = Path(shown)
    tensors = _open(path)
    if list(tensors) == [""]:
        if names:
            raise SpecError("embedding", f"expected no name for a .npy file, got {names!r}")
        wanted = [""]
    elif names:
        wanted = names.split(",")
        if len(wanted) > 2:
            raise SpecError("embedding", f"expected one or two names after #, got {names!r}")
        missing = [name for name in wanted if name not in tensors]
        if missing:
            raise SpecError(
                "embedding", f"expected one of {_list(tensors)} in {shown!r}, got {missing[0]!r}"
            )
    else:
        wanted = [name for name, shape in tensors.items() if len(shape) == 2]
        if len(wanted) != 1:
            raise SpecError(
                "embedding", f"expected {shown}#NAME, since it holds {_list(tensors)}, got no name"
            )
    parts = [_matrix(path, name, tensors[name]) for name in wanted]
    if len(parts) == 2 and parts[0].shape != parts[1].shape:
        raise SpecError("embedding", f"expected Z and U of one shape, got {parts[0].shape} and "
                        f"{parts[1].shape}")  # fmt: skip
    alive = np.all([np.any(part != 0, axis=1) for part in parts], axis=0)
    if alive.sum() < 2:
        raise SpecError(
            "embedding", f"expected two rows or more that are not zero, got {alive.sum()}"
        )
    return Matrices(*(_ready(part[alive], centre, whiten) for part in parts))


def _ready(part: np.ndarray, centre: bool, whiten: bool) -> np.ndarray:
    made = part.astype(np.float64)
    if centre or whiten:
        made = made - made.mean(axis=0)
        if not np.abs(made).max() > FLAT * np.abs(part).max():
            raise SpecError("embedding", "expected rows that differ, got the same in all")
    if whiten:
        values, vectors = np.linalg.eigh(made.T @ made / len(made))
        made = made @ (vectors / np.sqrt(np.maximum(values, FLAT * values[-1]))) @ vectors.T
    size = math.sqrt(float(np.mean(np.sum(made**2, axis=1))))
    return (made / (size or 1.0)).astype(np.float32)


def keep(matrices: Matrices) -> str:
    """Keep matrices for settings to name, and say by which name."""
    name = matrices.name
    path = _place(name)
    with suppress(SpecError):
        load(name)
        return name  # it is there, and whole
    with suppress(OSError):  # what cannot be made is told by the next line
        path.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(path) as part, Path(part).open("wb") as file:
        np.savez(file, **{k: v for k, v in matrices._asdict().items() if v is not None})
    return name


def load(name: str) -> Matrices:
    """The matrices of that name."""
    path = _place(name)
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as kept:
            return Matrices(kept["Z"], kept["U"] if "U" in kept.files else None)
    except (OSError, *BROKEN):
        raise SpecError(
            "embedding", f"expected a matrix that is kept here, got {name!r}: give file:PATH again"
        ) from None


def _place(name: str) -> Path:
    return data_home() / "embeddings" / f"{name.removeprefix('file:')}.npz"


def _list(tensors: dict[str, tuple[int, ...]]) -> str:
    flat = [name for name, shape in tensors.items() if len(shape) == 2]
    flat.sort(key=lambda name: "word" not in name and "token" not in name)  # likely ones first
    more = f" and {len(flat) - 6} more" if len(flat) > 6 else ""
    return ", ".join(flat[:6]) + more if flat else "no matrix"


def _open(path: Path) -> dict[str, tuple[int, ...]]:
    """Names and shapes of what is in a file."""
    shown = repr(str(path))
    try:
        match path.suffix:
            case ".safetensors":
                found = {name: one["shape"] for name, one in _contents(path)[0].items()}
                return {name: _shape(told) for name, told in found.items()}
            case ".npy":
                with path.open("rb") as file:
                    return {"": _npy_shape(file)}
            case ".npz":
                with zipfile.ZipFile(path) as kept:
                    return dict(_npz_shapes(kept))
    except OSError as error:
        reason = error.strerror or "not such a file"
        raise SpecError("embedding", f"expected a readable file, got {shown} ({reason})") from None
    except BROKEN:
        raise SpecError(
            "embedding", f"expected a {path.suffix} file of plain numbers, got {shown}"
        ) from None
    raise SpecError("embedding", f"expected .npy, .npz or .safetensors, got {shown}")


def _shape(told: Any) -> tuple[int, ...]:
    if not isinstance(told, list | tuple) or not all(type(size) is int for size in told):
        raise ValueError
    return tuple(told)


def _npy_shape(file: Any) -> tuple[int, ...]:
    """The shape that an array's header tells; numbers are not read yet, however many it says."""
    version = np.lib.format.read_magic(file)
    read = (
        np.lib.format.read_array_header_1_0
        if version == (1, 0)
        else np.lib.format.read_array_header_2_0
    )
    shape, _, kind = read(file)
    if kind.kind == "O":
        raise ValueError
    return _shape(shape)


def _npz_shapes(kept: zipfile.ZipFile) -> Iterator[tuple[str, tuple[int, ...]]]:
    for name in kept.namelist():
        with kept.open(name) as file, suppress(*BROKEN):  # others may be there besides
            yield name.removesuffix(".npy"), _npy_shape(file)


def _contents(path: Path) -> tuple[dict[str, Any], int]:
    """The table of contents of a safetensors file, and where its numbers begin."""
    with path.open("rb") as file:
        size = int.from_bytes(file.read(8), "little")
        if not 2 <= size <= 2**27 or size + 8 > path.stat().st_size:
            raise ValueError
        told = json.loads(file.read(size))
    return {name: one for name, one in told.items() if name != "__metadata__"}, 8 + size


def _matrix(path: Path, name: str, shape: tuple[int, ...]) -> np.ndarray:
    """One matrix, checked, as float32."""
    shown = f"{path}#{name}" if name else str(path)
    if len(shape) != 2 or not (1 <= shape[0] <= MOST_ROWS and 1 <= shape[1] <= MOST_COLUMNS):
        raise SpecError(
            "embedding", f"expected a matrix of at most {MOST_ROWS:,} x {MOST_COLUMNS:,}, got "
            f"shape {shape} in {shown!r}",
        )  # fmt: skip
    if 8 * shape[0] * shape[1] > MOST_BYTES:
        raise SpecError("embedding", f"expected at most {MOST_BYTES // 2**30} GiB, got {shown!r}")
    try:
        found = _numbers(path, name, shape)
    except (OSError, *BROKEN):
        raise SpecError(
            "embedding", f"expected real numbers as its contents say, got {shown!r}"
        ) from None
    bad = np.flatnonzero(~np.isfinite(found).all(axis=1))
    if len(bad):
        raise SpecError(
            "embedding", f"expected finite numbers, got others in {len(bad):,} rows of {shown!r}, "
            f"row {bad[0]:,} the first",
        )  # fmt: skip
    return found


def _numbers(path: Path, name: str, shape: tuple[int, ...]) -> np.ndarray:
    if path.suffix == ".safetensors":
        contents, begin = _contents(path)
        kind = contents[name]["dtype"]
        first, last = contents[name]["data_offsets"]
        width = np.dtype(TYPES[kind]).itemsize
        if first < 0 or last - first != shape[0] * shape[1] * width:
            raise ValueError
        found = np.memmap(path, TYPES[kind], "r", begin + first, shape)
        if kind == "BF16":
            return (found.astype(np.uint32) << 16).view(np.float32)
        return np.asarray(found, np.float32)
    kept = np.load(path, allow_pickle=False)
    found = kept if path.suffix == ".npy" else kept[name]
    if found.dtype.kind not in "fiu":
        raise ValueError
    return np.asarray(found, np.float32)
