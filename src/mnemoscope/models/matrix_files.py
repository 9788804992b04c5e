"""Matrices in files that others wrote: what is in a file, and the numbers, checked before use.

A file may be anything under its name: cut short, damaged, or made to do harm. So nothing is taken
at its word. Sizes are held against the file's own before a number is read, only regular files are
opened, and whatever a parser makes of the rest ends in one line. No pickle is ever loaded:
safetensors and the headers of NumPy's files are read here, plain numbers by count.
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

# Tokens and dimensions, at most; and what their numbers may take in double precision.
MOST_ROWS, MOST_COLUMNS = 2**22, 2**15
MOST_BYTES = 2**33
# Bytes for each number while a matrix is made ready: as read, in single and in double precision,
# without its mean, squared, and what is kept of other forms of it.
BYTES_PER_NUMBER = 48
# Types of safetensors that hold real numbers; BF16 is the upper half of a float32.
TYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2"}
# Tables of contents are small: what is longer was made to fill memory.
MOST_CONTENTS, MOST_HEADER, MOST_NAMES = 2**24, 10_000, 2**14
# Of NumPy's headers.
VERSIONS = ((1, 0), (2, 0), (3, 0))

Shape = tuple[int, ...]


class Header(NamedTuple):
    """What an array of NumPy's says of itself, and the length of that."""

    shape: Shape
    by_column: bool
    dtype: np.dtype
    length: int


def read_parts(text: str) -> list[np.ndarray]:
    """The one or two matrices that `PATH`, `PATH#NAME` or `PATH#NAME,NAME` says, as float32."""
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
    """Refuse what is no matrix, or too large a one for what is free."""
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
    """Real, finite numbers, as float32."""
    if array.dtype.kind not in "fiu":
        raise SpecError("embedding", f"expected real numbers, got {array.dtype} in {shown}")
    with np.errstate(over="ignore"):  # what is too large for float32 is not finite there
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
    """A regular file; a pipe would wait for ever, and a device may have no end."""
    if not stat.S_ISREG(path.stat().st_mode):
        raise OSError(0, "not a regular file")
    with path.open("rb") as file, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # NumPy's, of old headers: the answer says it all
        yield file


def _shapes(path: Path) -> dict[str, Shape]:
    """Names and shapes of what is in a file."""
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
                    with zipfile.ZipFile(file) as kept:
                        return dict(_packed_shapes(kept))
    except OSError as error:
        reason = error.strerror or "not such a file"
        raise SpecError("embedding", f"expected a readable file, got {shown} ({reason})") from None
    except Exception:  # parsers of a stranger's file raise many kinds, and all mean the same
        raise SpecError("embedding", f"expected a {path.suffix} file of plain numbers, got {shown}") from None


def _matrix(path: Path, name: str, shape: Shape) -> np.ndarray:
    """One matrix, checked, as float32."""
    shown = repr(f"{path}#{name}" if name else str(path))
    check_shape(shape, shown)
    try:
        with _opened(path) as file:
            numbers = _numbers(path.suffix, file, name, shape)
    except Exception:
        raise SpecError("embedding", f"expected real numbers as its contents say, got {shown}") from None
    return check_numbers(numbers, shown)


def _numbers(suffix: str, file: Any, name: str, shape: Shape) -> np.ndarray:
    """The numbers themselves, of which there must be as many as the shape says."""
    if suffix == ".safetensors":
        return _tensor(file, name, shape)
    if suffix == ".npy":
        header = _header(file)
        _check_length(header, _size(file))
        return _laid_out(header, np.fromfile(file, header.dtype, math.prod(shape)))
    with zipfile.ZipFile(file) as kept:
        entry = next(item for item in kept.infolist() if item.filename.removesuffix(".npy") == name)
        with kept.open(entry) as packed:
            header = _header(packed)
            _check_length(header, entry.file_size)
            data = packed.read()  # to the end, where its checksum is looked at
        return _laid_out(header, np.frombuffer(data, header.dtype))


def _laid_out(header: Header, numbers: np.ndarray) -> np.ndarray:
    return numbers.reshape(header.shape, order="F" if header.by_column else "C")


def _check_length(header: Header, there: int) -> None:
    """Before anything is allocated, that the numbers are there and nothing besides."""
    plain = header.dtype.kind in "fiu"
    if not plain or header.length + math.prod(header.shape) * header.dtype.itemsize != there:
        raise ValueError


def _size(file: Any) -> int:
    at = file.tell()
    end = file.seek(0, io.SEEK_END)
    file.seek(at)
    return end


def _shape(sizes: Any) -> Shape:
    """A shape whose sizes are sizes; one of very many is none that we could speak of."""
    sizes_only = isinstance(sizes, list | tuple) and all(type(size) is int for size in sizes)
    if not sizes_only or len(sizes) > 32 or not all(0 <= size < 2**63 for size in sizes):
        raise ValueError
    return tuple(sizes)


def _header(file: Any) -> Header:
    """An array's header; its numbers are not read yet, however many it says."""
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


def _packed_shapes(kept: zipfile.ZipFile) -> Iterator[tuple[str, Shape]]:
    if len(kept.namelist()) > MOST_NAMES:
        raise ValueError
    for name in kept.namelist():
        with suppress(Exception), kept.open(name) as file:  # others may be there besides
            yield name.removesuffix(".npy"), _header(file).shape


def _contents(file: Any) -> tuple[dict[str, Any], int]:
    """The table of contents of a safetensors file, and where its numbers begin."""
    size = int.from_bytes(file.read(8), "little")
    if not 2 <= size <= MOST_CONTENTS or size + 8 > _size(file):
        raise ValueError
    table = json.loads(file.read(size), object_pairs_hook=_once)
    if not isinstance(table, dict):
        raise ValueError
    return {name: entry for name, entry in table.items() if name != "__metadata__"}, 8 + size


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A table in which no name comes twice: which of the two would be meant?"""
    table = dict(pairs)
    if len(table) != len(pairs):
        raise ValueError
    return table


def _tensor(file: Any, name: str, shape: Shape) -> np.ndarray:
    contents, begin = _contents(file)
    # All of them are looked at: where two overlap or one is cut off, the file is not what it says.
    before = 0
    for first, last in sorted(_offsets(entry) for entry in contents.values()):
        if not before <= first <= last <= _size(file) - begin:
            raise ValueError
        before = last
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
    flat = [name for name, shape in shapes.items() if len(shape) == 2]
    flat.sort(key=lambda name: "word" not in name and "token" not in name)  # likely ones first
    more = f" and {len(flat) - 6} more" if len(flat) > 6 else ""
    return ", ".join(_named(name) for name in flat[:6]) + more if flat else "none"


def _named(name: str) -> str:
    """A name out of a file, which may hold anything: short, and on one line."""
    short = name if len(name) <= 80 else f"{name[:77]}..."
    return short if short.isprintable() else repr(short)
