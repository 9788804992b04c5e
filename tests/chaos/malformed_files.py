"""Matrix files that are not what they say, made from a fixed seed: the same ones every time.

Each is wrong for certain, not only by chance: a flipped byte gets its highest bit changed, which no
text of a header has; numbers are damaged only where a checksum covers them.
"""

import io
import json
import os
import pickle
import random
import socket
import struct
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

SEED = 20260301
ROWS, DIM = 96, 24
Z = np.random.default_rng(SEED).normal(size=(ROWS, DIM)).astype(np.float32)
Named = tuple[str, bytes]


class Trap:
    """What, unpickled, leaves a file behind."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        return (Path.touch, (self.mark,))


def write_all(folder: Path) -> tuple[list[str], Path]:
    """All of them, as a user would name them; and the mark that no pickle may leave."""
    mark = folder / "a-pickle-was-loaded"
    made = [*_npy(), *_safetensors(), *_npz(), *_pickles(mark)]
    paths = []
    for number, (name, data) in enumerate(made):
        path = folder / f"{number:03}-{name}"
        path.write_bytes(data)
        paths.append(str(path))
    return paths + list(_no_files(folder)), mark


def npy(array: np.ndarray = Z) -> bytes:
    """A file as NumPy writes it."""
    file = io.BytesIO()
    np.save(file, array, allow_pickle=False)
    return file.getvalue()


def header(text: str | bytes, data: bytes = Z.tobytes(), version: int = 1) -> bytes:
    """A .npy file with a header of one's own."""
    told = text.encode("latin1") if isinstance(text, str) else text
    size = struct.pack("<H" if version == 1 else "<I", len(told) + 1)
    return b"\x93NUMPY" + bytes([version, 0]) + size + told + b"\n" + data


def described(descr: object = "<f4", shape: object = (ROWS, DIM), order: object = False) -> str:
    """What a header says."""
    return f"{{'descr': {descr!r}, 'fortran_order': {order!r}, 'shape': {shape!r}}}"


def tensors(contents: object, data: bytes = Z.tobytes(), size: int | None = None) -> bytes:
    """A .safetensors file with a table of contents of one's own."""
    text = contents if isinstance(contents, bytes) else json.dumps(contents).encode()
    return struct.pack("<Q", len(text) if size is None else size) + text + data


def tensor(**changes: object) -> dict[str, object]:
    """One entry of such a table."""
    usual = {"dtype": "F32", "shape": [ROWS, DIM], "data_offsets": [0, Z.nbytes]}
    return {name: told for name, told in {**usual, **changes}.items() if told is not ...}


def npz(entries: dict[str, bytes], packed: bool = True) -> bytes:
    """A .npz file of these entries."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED if packed else zipfile.ZIP_STORED) as kept:
        for name, data in entries.items():
            kept.writestr(zipfile.ZipInfo(name), data)
    return file.getvalue()


def flipped(data: bytes, at: int) -> bytes:
    """One byte with its highest bit changed."""
    return data[:at] + bytes([data[at] ^ 0x80]) + data[at + 1 :]


def wrong_numbers() -> Iterator[tuple[str, np.ndarray]]:
    """Numbers of the right kind that cannot be used."""
    for name, value in (("nan", np.nan), ("inf", np.inf), ("minus-inf", -np.inf)):
        one = Z.copy()
        one[3, 5] = value
        yield f"one-{name}", one
        yield f"all-{name}", np.full_like(Z, value)
    yield "too-large", np.full((ROWS, DIM), 1e300)
    yield "zeros", np.zeros_like(Z)
    yield "one-row", np.concatenate([Z[:1], np.zeros_like(Z)])
    yield "as-good-as-one-row", np.concatenate([Z[:1] * np.float32(1e37), Z * np.float32(1e-44)])


SHAPES: tuple[object, ...] = (
    (),
    (ROWS,),
    (4, 24, 24),
    (0, DIM),
    (ROWS, 0),
    (0, 0),
    (-ROWS, DIM),
    (ROWS, -DIM),
    (-ROWS, -DIM),
    (ROWS + 1, DIM),
    (ROWS, DIM - 1),
    (DIM - 1, ROWS),
    (2**22, 2**15),
    (2**20, 2**10),
    (2**22 + 1, 1),
    (2**31, 2**31),
    (2**62, 4),
    (2**63, 1),
    (10**30, DIM),
    (10**4000, 1),
    (1,) * 40,
    (1,) * 900,
    (float(ROWS), DIM),
    ("96", DIM),
    (None, DIM),
    (True, DIM),
    ((ROWS, DIM),),
    None,
    5,
    "shape",
)


def _npy() -> Iterator[Named]:
    chance = random.Random(SEED)
    whole = npy()
    start = len(whole) - Z.nbytes
    for at in sorted({0, 1, 6, 8, 9, 10, start, len(whole) - 1, *chance.sample(range(len(whole)), 30)}):
        yield f"cut-{at}.npy", whole[:at]
    for at in sorted(chance.sample(range(start), 70)):
        yield f"flip-{at}.npy", flipped(whole, at)
    for more in (1, 4, 4096):
        yield f"longer-{more}.npy", whole + bytes(more)
    for number, shape in enumerate(SHAPES):
        yield f"shape-{number}.npy", header(described(shape=shape))
    for number, descr in enumerate(
        (
            "<c8",
            "<c16",
            "|b1",
            "|S4",
            "<U1",
            "<M8[s]",
            "<m8[s]",
            "|V4",
            "|O",
            "<f3",
            "<q9",
            "",
            None,
            5,
            [("a", "<f4")],
            [("a", "<f4", (3,))],
            ("<f4", (3,)),
            "|S4000000000",
            "<f4,<f4",
            "f" * 999,
            [],
            {},
            ["<f4"],
            "<f8",
            "<f2",
        )
    ):
        yield f"descr-{number}.npy", header(described(descr))
    for name, one in wrong_numbers():
        yield f"{name}.npy", npy(one)
    for number, text in enumerate(
        (
            "",
            "{",
            "[]",
            "5",
            "None",
            "{}",
            "'shape'",
            "(" * 3000,
            "[" * 3000 + "]" * 3000,
            "{'a': 1}",
            "-" * 4000 + "1",
            "9" * 5000,
            "\0" * 50,
            "__import__('os').abort()",
            "f'{1/0}'",
            "lambda: 0",
            described()[:-1],
            described() * 2,
            described()[:-1] + ", 'more': 1}",
            "#" + described(),
            described().replace("shape", "shap"),
            described().replace(": ", ""),
            described(order="maybe"),
            described(order=7),
            "'''" + described(),
            "\\\n" * 40,
        )
    ):
        yield f"text-{number}.npy", header(text)
    yield "not-unicode.npy", header(described().encode() + b"\xff\xfe", version=3)
    yield "version-0.npy", header(described(), version=0)
    yield "version-9.npy", header(described(), version=9)
    yield "endless-1.npy", b"\x93NUMPY\1\0\xff\xff" + b" " * 70_000
    yield "endless-2.npy", b"\x93NUMPY\2\0\xff\xff\xff\xff" + b" " * 70_000
    yield "endless-there.npy", header(described() + " " * 200_000, version=2)
    yield "text.npy", b"0.1 0.2\n0.3 0.4\n"
    yield "noise.npy", chance.randbytes(5000)
    yield "another-kind.npy", npz({"a.npy": npy()})


def _safetensors() -> Iterator[Named]:
    chance = random.Random(SEED + 1)
    end = Z.nbytes
    whole = tensors({"table": tensor()})
    start = len(whole) - end
    for at in sorted({0, 1, 7, 8, 9, start, len(whole) - 1, *chance.sample(range(len(whole)), 25)}):
        yield f"cut-{at}.safetensors", whole[:at]
    for at in sorted(chance.sample(range(start), 40)):
        yield f"flip-{at}.safetensors", flipped(whole, at)
    for size in (0, 1, start - 9, start + 1, 2**24 + 1, 2**27, 2**31, 2**40, 2**63, 2**64 - 1):
        yield f"size-{size}.safetensors", tensors({"table": tensor()}, size=size)
    for number, at in enumerate(
        (
            [0, end + 4],
            [4, end + 4],
            [-4, end - 4],
            [-end, 0],
            [end, 0],
            [end, 2 * end],
            [0, 0],
            [0],
            [0, end, end],
            [],
            None,
            "0",
            {"0": end},
            [0.0, float(end)],
            ["0", str(end)],
            [False, end],
            [2**63, 2**63 + end],
            [2**70, 2**70 + end],
            [0, end // 2],
            ...,
        )
    ):
        yield f"offsets-{number}.safetensors", tensors({"t": tensor(data_offsets=at)})
    half = tensor(shape=[ROWS // 2, DIM], data_offsets=[0, end // 2])
    for number, other in enumerate(
        (
            half,
            tensor(shape=[ROWS // 2, DIM], data_offsets=[4, end // 2 + 4]),
            tensor(shape=[9], data_offsets=[end // 2 - 4, end // 2 + 32]),
            tensor(shape=[9], data_offsets=[8, 44]),
            tensor(shape=[9], data_offsets=[end, end + 36]),
            tensor(shape=[9], data_offsets=[44, 8]),
        )
    ):
        yield f"overlap-{number}.safetensors", tensors({"t": half, "u": other})
    for number, kind in enumerate(
        ("I8", "I64", "U8", "BOOL", "F8_E4M3", "F128", "f32", "F16", "F64", "", 32, None, ["F32"], {}, ...)
    ):
        yield f"dtype-{number}.safetensors", tensors({"t": tensor(dtype=kind)})
    for number, shape in enumerate(SHAPES):
        told = list(shape) if isinstance(shape, tuple) else shape
        yield f"shape-{number}.safetensors", tensors({"t": tensor(shape=told)})
    for name, one in wrong_numbers():
        kind = {"float32": "F32", "float64": "F64"}[str(one.dtype)]
        told = tensor(dtype=kind, shape=list(one.shape), data_offsets=[0, one.nbytes])
        yield f"{name}.safetensors", tensors({"t": told}, one.tobytes())
    yield (
        "bf16-nan.safetensors",
        tensors({"t": tensor(dtype="BF16", data_offsets=[0, end // 2])}, b"\xc0\x7f" * (end // 4)),
    )
    twice = b'{"t":%b,"t":%b}' % ((json.dumps(tensor()).encode(),) * 2)
    for number, text in enumerate(
        (
            b"[]",
            b"5",
            b"null",
            b'"t"',
            b"{}",
            b"true",
            b"{" * 5000,
            b"[" * 100_000,
            twice,
            b"\xff\xfe{}",
            b"{'t': 1}",
            b'{"t": NaN}',
            b'{"t":' + b"9" * 5000 + b"}",
            b'{"__metadata__": {"a": "b"}}',
            b'{"t": 5}',
            b'{"t": null}',
            b'{"t": []}',
            b'{"t": {}}',
            b"{} trailing",
            b" " * 5000,
            b"\0" * 90,
            b'{"\\ud800": {}}',
        )
    ):
        yield f"json-{number}.safetensors", tensors(text)
    yield ("two-names.safetensors", tensors({name: tensor() for name in ("a\nTraceback:\n", "\x1b[31mred" * 900)}))
    yield ("many-names.safetensors", tensors({f"t{number}": tensor(shape=[2, 2]) for number in range(20_000)}))
    yield "noise.safetensors", chance.randbytes(5000)


def _npz() -> Iterator[Named]:
    chance = random.Random(SEED + 2)
    whole = npz({"table.npy": npy()})
    for at in sorted({0, 1, 4, 30, len(whole) - 1, *chance.sample(range(len(whole)), 20)}):
        yield f"cut-{at}.npz", whole[:at]
    stored = npz({"table.npy": npy()}, packed=False)
    begin = stored.index(b"\x93NUMPY")
    for at in sorted(chance.sample(range(begin, begin + len(npy())), 25)):
        yield f"flip-{at}.npz", flipped(stored, at)  # what is there, which a checksum covers
    directory = stored.rindex(b"PK\1\2")
    for name, at, told in (
        ("signature", directory, b"PK\7\7"),
        ("method", directory + 10, b"\x63\0"),
        ("checksum", directory + 16, b"\0\0\0\0"),
        ("unpacked", directory + 24, b"\xff\xff\xff\x7f"),
        ("offset", directory + 42, b"\xff\xff\xff\x7f"),
        ("password", directory + 8, b"\1\0"),
    ):
        yield f"{name}.npz", stored[:at] + told + stored[at + len(told) :]
    for number, shape in enumerate(SHAPES):
        yield f"shape-{number}.npz", npz({"t.npy": header(described(shape=shape))})
    for name, one in wrong_numbers():
        yield f"{name}.npz", npz({"t.npy": npy(one)})
    yield "bomb-in-header.npz", npz({"t.npy": b"\x93NUMPY\2\0\xff\xff\xff\xff" + b" " * 2**26})
    yield "bomb-of-zeros.npz", npz({"t.npy": header(described(shape=(2**18, 16)), bytes(2**24))})
    yield "bomb-beside.npz", npz({"t.npy": npy() + bytes(2**26)})
    yield "empty.npz", npz({})
    yield "no-array.npz", npz({"read.me": b"text"})
    yield "folder.npz", npz({"t.npy/": b""})
    yield "two-names.npz", npz({"a.npy": npy(), "b\n.npy": npy()})
    yield "many-names.npz", npz({f"{number}.npy": b"" for number in range(2**14 + 1)})
    yield "nested.npz", npz({"t.npy": npz({"t.npy": npy()})})
    yield "complex.npz", npz({"t.npy": npy(Z.astype(complex))})
    yield "noise.npz", b"PK\3\4" + chance.randbytes(5000)
    yield "another-kind.npz", npy()


def _pickles(mark: Path) -> Iterator[Named]:
    trap = Trap(mark)
    held = io.BytesIO()
    np.save(held, np.array([[trap, trap]] * 3, dtype=object), allow_pickle=True)
    for ending in ("npy", "npz", "safetensors"):
        yield f"pickle.{ending}", pickle.dumps(trap)
    yield "object.npy", held.getvalue()
    yield "object.npz", npz({"t.npy": held.getvalue()})
    yield "pickle-inside.npz", npz({"t.npy": pickle.dumps(trap)})


def _no_files(folder: Path) -> Iterator[str]:
    """What is no file at all, under a name that says it is."""
    for ending in ("npy", "npz", "safetensors"):
        (folder / f"folder.{ending}").mkdir()
        yield str(folder / f"folder.{ending}")
        os.mkfifo(folder / f"pipe.{ending}")
        yield str(folder / f"pipe.{ending}")
        for name, to in (("endless", "/dev/zero"), ("nothing", "/dev/null"), ("gone", "nowhere")):
            (folder / f"{name}.{ending}").symlink_to(to)
            yield str(folder / f"{name}.{ending}")
        (folder / f"loop.{ending}").symlink_to(f"loop.{ending}")
        yield str(folder / f"loop.{ending}")
        yield str(folder / f"absent.{ending}")
        yield str(folder / ("long" * 200 + f".{ending}"))
        yield str(folder / f"nul\0.{ending}")
        yield str(folder / f"line\nbreak.{ending}")
        yield str(folder / f"file.{ending}" / "below.npy")
    with socket.socket(socket.AF_UNIX) as one:
        here = Path.cwd()
        os.chdir(folder)  # a socket's name must be short
        try:
            one.bind("socket.npy")
        finally:
            os.chdir(here)
    yield str(folder / "socket.npy")
    (folder / "good.npy").write_bytes(npy())
    yield f"{folder / 'good.npy'}#name"
    yield f"{folder / 'good.npy'}\0"
    yield ""
    yield "."
    yield "#"
    yield str(folder / "z.txt")
