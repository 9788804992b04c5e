"""Matrices from untrusted files: their contents and numbers, checked before use.

A file may be truncated, damaged or malicious. So sizes are checked against the file's own before a number is read, only
regular files are opened, and every parser error ends in one line. Pickles are never loaded: this module parses
safetensors and NumPy's headers itself, and reads plain numbers by count.
"""

import io
import json
import math
import stat
import warnings
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mnemoscope.engine.free_memory import check_fits
from mnemoscope.spec import SpecError

# The most tokens and dimensions, and the most bytes of their numbers in double precision.
MOST_ROWS, MOST_COLUMNS = 2**22, 2**15
MOST_BYTES = 2**33
# Bytes for each number while a matrix is normalised: as read, in single and double precision,
# centred, squared, and temporaries.
BYTES_PER_NUMBER = 48
# Types of safetensors that hold real numbers; BF16 is the upper half of a float32.
TYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2"}
# Tables of contents are small: a longer one is an attempt to fill memory.
MOST_CONTENTS, MOST_HEADER, MOST_NAMES = 2**24, 10_000, 2**14
# Versions of NumPy's header.
VERSIONS = ((1, 0), (2, 0), (3, 0))

Shape = tuple[int, ...]


class Header(NamedTuple):
    """The header of a NumPy array, and its length in bytes."""

    shape: Shape
    by_column: bool
    dtype: np.dtype
    length: int


def read_parts(text: str) -> list[np.ndarray]:
    """Read one or two matrices from `PATH`, `PATH#NAME` or `PATH#NAME,NAME`, as float32."""
    shown, _, names = text.partition("#")
    path = Path(shown)
    shapes = _shapes(path)
    if list(shapes) == [""]:
        if names:
            raise SpecError("embedding", f"expected no name for a .npy file, got {names!r}")
        wanted = [""]
    elif names:
        wanted = names.split(",")
        if len(wanted) > 2:
            raise SpecError("embedding", f"expected one or two names after #, got {names!r}")
        missing = [name for name in wanted if name not in shapes]
        if missing:
            raise SpecError("embedding", f"expected one of {_list(shapes)} in {shown!r}, got {missing[0]!r}")
    else:
        wanted = [name for name, shape in shapes.items() if len(shape) == 2]
        if not wanted:
            raise SpecError("embedding", f"expected a matrix in {shown!r}, got none")
        if len(wanted) > 1:
            raise SpecError("embedding", f"expected #NAME after {shown!r}, since it holds {_list(shapes)}, got no name")
    return [_matrix(path, name, shapes[name]) for name in wanted]


def check_shape(shape: Shape, shown: str) -> None:
    """Refuse anything but a matrix, or a matrix too large for the free memory."""
    sides = sorted(shape)
    if len(sides) != 2 or not (1 <= sides[0] <= MOST_COLUMNS and sides[1] <= MOST_ROWS):
        raise SpecError(
            "embedding", f"expected a matrix of at most {MOST_ROWS:,} x {MOST_COLUMNS:,}, got shape {shape} in {shown}"
        )
    if 8 * shape[0] * shape[1] > MOST_BYTES:
        raise SpecError("embedding", f"expected at most {MOST_BYTES // 2**30} GiB, got {shown}")
    needed = BYTES_PER_NUMBER * shape[0] * shape[1]
    check_fits("embedding", f"{shape[0]:,} x {shape[1]:,} in {shown}", needed, "reading it")


def check_numbers(array: np.ndarray, shown: str) -> np.ndarray:
    """Refuse anything but real, finite numbers; return them as float32."""
    if array.dtype.kind not in "fiu":
        raise SpecError("embedding", f"expected real numbers, got {array.dtype} in {shown}")
    with np.errstate(over="ignore"):  # what is too large for float32 becomes infinite
        numbers = np.asarray(array, np.float32)
    bad = np.flatnonzero(~np.isfinite(numbers).all(axis=1))
    if len(bad):
        raise SpecError(
            "embedding",
            f"expected finite numbers, got others in {len(bad):,} rows of {shown}, row {bad[0]:,} the first",
        )
    return numbers


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    """Open a regular file; a pipe would block, and a device may have no end."""
    if not stat.S_ISREG(path.stat().st_mode):
        raise OSError(0, "not a regular file")
    with path.open("rb") as file, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # NumPy's warnings about old headers
        yield file


def _shapes(path: Path) -> dict[str, Shape]:
    """The names and shapes of the arrays in a file."""
    shown = repr(str(path))
    if path.suffix not in (".npy", ".npz", ".safetensors"):
        raise SpecError("embedding", f"expected .npy, .npz or .safetensors, got {shown}")
    try:
        with _opened(path) as file:
            match path.suffix:
                case ".safetensors":
                    contents, _ = _contents(file)
                    return {name: _shape(entry["shape"]) for name, entry in contents.items()}
                case ".npy":
                    return {"": _header(file).shape}
                case _:
                    with zipfile.ZipFile(file) as archive:
                        return dict(_packed_shapes(archive))
    except OSError as error:
        reason = error.strerror or "not such a file"
        raise SpecError("embedding", f"expected a readable file, got {shown} ({reason})") from None
    except Exception:  # parsers of untrusted files raise many types, which all mean the same
        raise SpecError("embedding", f"expected a {path.suffix} file of plain numbers, got {shown}") from None


def _matrix(path: Path, name: str, shape: Shape) -> np.ndarray:
    """Read and check one matrix, as float32."""
    shown = repr(f"{path}#{name}" if name else str(path))
    check_shape(shape, shown)
    try:
        with _opened(path) as file:
            numbers = _numbers(path.suffix, file, name, shape)
    except Exception:
        raise SpecError("embedding", f"expected real numbers as its contents say, got {shown}") from None
    return check_numbers(numbers, shown)


def _numbers(suffix: str, file: Any, name: str, shape: Shape) -> np.ndarray:
    """Read the numbers, whose count must match the shape."""
    if suffix == ".safetensors":
        return _tensor(file, name, shape)
    if suffix == ".npy":
        header = _header(file)
        _check_length(header, _size(file))
        return _laid_out(header, np.fromfile(file, header.dtype, math.prod(shape)))
    with zipfile.ZipFile(file) as archive:
        entry = next(item for item in archive.infolist() if item.filename.removesuffix(".npy") == name)
        with archive.open(entry) as packed:
            header = _header(packed)
            _check_length(header, entry.file_size)
            data = packed.read()  # to the end, where zipfile checks the checksum
        return _laid_out(header, np.frombuffer(data, header.dtype))


def _laid_out(header: Header, numbers: np.ndarray) -> np.ndarray:
    return numbers.reshape(header.shape, order="F" if header.by_column else "C")


def _check_length(header: Header, size: int) -> None:
    """Check, before allocating anything, that a file of this size has exactly these numbers."""
    plain = header.dtype.kind in "fiu"
    if not plain or header.length + math.prod(header.shape) * header.dtype.itemsize != size:
        raise ValueError


def _size(file: Any) -> int:
    position = file.tell()
    size = file.seek(0, io.SEEK_END)
    file.seek(position)
    return size


def _shape(sizes: Any) -> Shape:
    """A shape of at most 32 valid sizes."""
    integers = isinstance(sizes, list | tuple) and all(type(size) is int for size in sizes)
    if not integers or len(sizes) > 32 or not all(0 <= size < 2**63 for size in sizes):
        raise ValueError
    return tuple(sizes)


def _header(file: Any) -> Header:
    """Read an array's header, but none of its numbers."""
    start = file.read(8)
    version = np.lib.format.read_magic(io.BytesIO(start))
    if version not in VERSIONS:
        raise ValueError
    counted = file.read(2 if version == (1, 0) else 4)
    length = int.from_bytes(counted, "little")
    if length > MOST_HEADER:
        raise ValueError
    text = io.BytesIO(counted + file.read(length))
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, by_column, dtype = read(text)
    if dtype.hasobject:
        raise ValueError
    return Header(_shape(shape), by_column, dtype, len(start) + len(counted) + length)


def _packed_shapes(archive: zipfile.ZipFile) -> Iterator[tuple[str, Shape]]:
    if len(archive.namelist()) > MOST_NAMES:
        raise ValueError
    for name in archive.namelist():
        with suppress(Exception), archive.open(name) as file:  # skip entries that are not arrays
            yield name.removesuffix(".npy"), _header(file).shape


def _contents(file: Any) -> tuple[dict[str, Any], int]:
    """The table of contents of a safetensors file, and the offset of its numbers."""
    size = int.from_bytes(file.read(8), "little")
    if not 2 <= size <= MOST_CONTENTS or size + 8 > _size(file):
        raise ValueError
    table = json.loads(file.read(size), object_pairs_hook=_unique)
    if not isinstance(table, dict):
        raise ValueError
    return {name: entry for name, entry in table.items() if name != "__metadata__"}, 8 + size


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A table without duplicate names, which would be ambiguous."""
    table = dict(pairs)
    if len(table) != len(pairs):
        raise ValueError
    return table


def _tensor(file: Any, name: str, shape: Shape) -> np.ndarray:
    contents, begin = _contents(file)
    # Check all of them: if two overlap or one is cut off, the file is damaged.
    end = 0
    for first, last in sorted(_offsets(entry) for entry in contents.values()):
        if not end <= first <= last <= _size(file) - begin:
            raise ValueError
        end = last
    kind = contents[name]["dtype"]
    first, last = _offsets(contents[name])
    if last - first != math.prod(shape) * np.dtype(TYPES[kind]).itemsize:
        raise ValueError
    file.seek(begin + first)
    numbers = np.fromfile(file, TYPES[kind], math.prod(shape)).reshape(shape)
    return (numbers.astype(np.uint32) << 16).view(np.float32) if kind == "BF16" else numbers


def _offsets(entry: dict[str, Any]) -> tuple[int, int]:
    first, last = _shape(entry["data_offsets"])
    return first, last


def _list(shapes: dict[str, Shape]) -> str:
    matrices = [name for name, shape in shapes.items() if len(shape) == 2]
    matrices.sort(key=lambda name: "word" not in name and "token" not in name)  # likely ones first
    more = f" and {len(matrices) - 6} more" if len(matrices) > 6 else ""
    return ", ".join(_printable(name) for name in matrices[:6]) + more if matrices else "none"


def _printable(name: str) -> str:
    """A name from an untrusted file, shortened and on one line."""
    short = name if len(name) <= 80 else f"{name[:77]}..."
    return short if short.isprintable() else repr(short)
