"""GPU kernels: what of them can be tested without a GPU, and, where there is one, that they equal XLA's path."""

import ctypes
import logging
import math
import re
import struct
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from mnemoscope.engine import random
from mnemoscope.engine.device import Precision, find_device, numerics
from mnemoscope.engine.layout import choose_layout
from mnemoscope.models.frozen import make_frozen
from mnemoscope.spec import Retrieval
from mnemoscope.spec.token_laws import UNIFORM
from mnemoscope.tasks.retrieval import sample
from mnemoscope.training.three_step import by_token
from mnemoscope.training.three_step.algorithm import Rates, three_steps
from mnemoscope.training.three_step.cuda import calls, mlp, passes, toolkit
from mnemoscope.training.three_step.cuda.products import (
    EXACT,
    power_of_two,
    product_of_pairs,
    product_over_rows,
    product_with_counts,
    product_with_table,
    product_with_transpose,
    split,
)
from mnemoscope.training.three_step.streaming import Count, Source

FLOAT32 = 2.0**-24


def rounding_of(terms: int) -> float:
    """Three standard errors of a sum of so many products, each with an error of 2^-22 of it at most."""
    return 3 * 2.0**-22 * np.sqrt(terms)


def normal(seed: int, *shape: int, scale: float = 1.0) -> np.ndarray:
    return (scale * np.random.default_rng(seed).standard_normal(shape)).astype(np.float32)


def relative(found: jax.Array, expected: np.ndarray) -> float:
    return float(np.linalg.norm(np.asarray(found, np.float64) - expected) / np.linalg.norm(expected))


@pytest.mark.parametrize("scale", [1e-12, 1.0, 3e7])
def test_pairs_of_float16_hold_22_bits(scale: float):
    x = normal(0, 1000, scale=scale)
    up = power_of_two(jnp.max(jnp.abs(x)))
    high, low = split(up * x)
    back = (np.asarray(high, np.float64) + np.asarray(low, np.float64)) / float(up)
    # Half a unit of the eleventh bit of `low`, or, for the smallest numbers, of float16's own.
    assert np.all(np.abs(back - x) <= 2.0**-22 * np.abs(x) + 2.0**-25 / float(up))
    assert math.frexp(float(up))[0] == 0.5


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e6])
def test_products_are_nearly_those_of_float32(scale: float):
    x, y = normal(1, 60, 48, scale=scale), normal(2, 70, 48)
    scaled, up = product_with_transpose(jnp.asarray(x), jnp.asarray(y))
    exact = x.astype(np.float64) @ y.astype(np.float64).T
    assert relative(scaled / up, exact) < rounding_of(48) / np.sqrt(48)
    found = product_of_pairs(jnp.asarray(x), jnp.asarray(y.T), jnp.max(jnp.abs(x)))
    assert relative(found, exact) < rounding_of(48) / np.sqrt(48)
    counts = np.random.default_rng(3).integers(-EXACT, EXACT + 1, (50, 60))
    found = product_with_counts(jnp.asarray(counts, jnp.int32), jnp.asarray(x))
    assert relative(found, counts @ x.astype(np.float64)) < rounding_of(60) / np.sqrt(60)


def test_a_product_with_large_counts_is_nearly_that_of_float32():
    random_numbers = np.random.default_rng(6)
    p = np.arange(1, 201.0) ** -1.1
    counts = random_numbers.poisson(1e6 * np.outer(p, p)).astype(np.int32)
    x = normal(7, 200, 48)
    exact = counts @ x.astype(np.float64)
    for rows in (None, jnp.asarray(counts.sum(axis=1))):
        found = product_with_table(jnp.asarray(counts), jnp.asarray(x), rows)
        assert relative(found, exact) < rounding_of(200) / np.sqrt(200)
    assert not np.asarray(product_with_table(jnp.zeros((3, 200), jnp.int32), jnp.asarray(x))).any()


@pytest.mark.parametrize("rows", [3, 64, 1000, 1025])
def test_a_product_in_parts_is_the_product(rows: int):
    x, y = normal(4, rows, 5), normal(5, rows, 7)
    with jax.default_matmul_precision("highest"):
        found = product_over_rows(jnp.asarray(x), jnp.asarray(y))
    assert relative(found, x.astype(np.float64).T @ y.astype(np.float64)) < 3 * FLOAT32 * np.sqrt(rows)


def test_counts_that_float16_cannot_hold_take_the_other_product():
    layout = choose_layout(Retrieval(vocab=512, dim=16, length=16, samples=10_000), platform="gpu")
    few = Retrieval(vocab=512, dim=16, length=16, samples=10_000).program()
    many = Retrieval(vocab=32, dim=16, length=16, samples=10_000).program()
    assert by_token.few_counts(few, layout, Count.of(10_000))
    assert not by_token.few_counts(many, layout, Count.of(10_000))


@pytest.mark.parametrize("few", [True, False])
def test_the_centred_product_is_that_of_counts_without_their_means(few: bool):
    spec = Retrieval(vocab=40, dim=12, length=6, samples=900)
    streams = random.streams(spec, 0)
    frozen = make_frozen(spec, streams)
    source = Source(streams["train"], frozen.permutation)
    counts = by_token.count_pairs(spec.program(), choose_layout(spec), source, Count.of(spec.samples))
    found = by_token._centred_product(spec.program(), frozen, counts, Count.of(spec.samples), few)
    K = np.asarray(counts.pairs, np.float64)
    assert relative(found, (K - K.mean(axis=0)) @ np.asarray(frozen.Z, np.float64)) < rounding_of(40)


def test_without_a_gpu_one_line_says_why(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(toolkit, "_load", lambda names: (_ for _ in ()).throw(toolkit.CudaError("no libcuda here")))
    monkeypatch.setattr(passes, "_register", lambda: toolkit.Module("passes.cu"))
    with caplog.at_level(logging.WARNING):
        assert not passes.usable.__wrapped__()
    (record,) = caplog.records
    assert record.getMessage() == (
        "CUDA kernels cannot be used (no libcuda here): continuing without them, more slowly"
    )


def test_a_library_that_is_not_there_is_named():
    with pytest.raises(toolkit.CudaError, match="no libmissing on this machine"):
        toolkit._load(["libmissing.so.1"])


def test_kernels_can_be_switched_off(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("MNEMOSCOPE_KERNELS", "0")
    monkeypatch.setattr(passes, "_register", lambda: pytest.fail("was asked for"))
    assert not passes.usable.__wrapped__()


def test_a_call_frame_is_read_by_its_offsets():
    """A frame as xla/ffi/api/c_api.h lays it out, put together from ctypes' own structures."""
    dims = (ctypes.c_int64 * 2)(3, 5)

    class Array(ctypes.Structure):
        _fields_ = [
            ("struct_size", ctypes.c_size_t),
            ("extension", ctypes.c_void_p),
            ("dtype", ctypes.c_int),
            ("data", ctypes.c_void_p),
            ("rank", ctypes.c_int64),
            ("dims", ctypes.POINTER(ctypes.c_int64)),
        ]

    arrays = [Array(48, None, 11, address, 2, dims) for address in (4096, 8192)]
    pointers = (ctypes.c_void_p * 2)(*(ctypes.addressof(array) for array in arrays))
    found = calls._buffers(2, ctypes.addressof(pointers))
    assert found == [calls.Buffer(4096, (3, 5)), calls.Buffer(8192, (3, 5))]
    text, number = ctypes.create_string_buffer(b"length"), ctypes.c_int64(64)
    name = ctypes.create_string_buffer(struct.pack("<QQ", ctypes.addressof(text), 6))
    scalar = ctypes.create_string_buffer(struct.pack("<i4xQ", 4, ctypes.addressof(number)))
    names, scalars = (ctypes.c_void_p * 1)(ctypes.addressof(name)), (ctypes.c_void_p * 1)(ctypes.addressof(scalar))
    assert calls._attributes(1, 0, ctypes.addressof(names), ctypes.addressof(scalars)) == {"length": 64}
    assert calls._FRAME.size == 168


class Launches(toolkit.Module):
    """A module that notes what is launched."""

    multiprocessors, all_shared_bytes, shared_bytes = 132, 232_448, 230_400

    def __init__(self) -> None:
        self.kernels: list[tuple[str, int, int]] = []

    def launch(self, name: str, *arguments: Any) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        _, _, shared, _, addresses, *numbers = arguments
        assert shared <= self.all_shared_bytes
        self.kernels.append((name, len(addresses), len(numbers)))

    def zero(self, *_: int) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Nothing to fill."""

    def copy(self, *_: int) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Nothing to copy."""


def declared(name: str) -> tuple[int, int]:
    """How many arrays and how many numbers a kernel takes, as its source says."""
    folder = Path(toolkit.__file__).parent
    source = "".join((folder / file).read_text() for file in ("passes.cu", "mlp.cu")).replace("\\", "")
    # Kernels that come in several sizes are made by macros, and those of `spread` by one of that name for each variant.
    even, uneven = source.split("#else\n\n// A block's range")
    source = uneven if name.startswith("spread_ranges") else even if name.startswith("spread") else source
    written = re.sub(r"^spread_(ranges_)?\d+$", "name", re.sub(r"^(pool|add_pulls)_\w+$", r"\1_##name", name))
    (parameters,) = re.findall(rf"(?<![\w#]){re.escape(written)}\(\s*((?:const )?u32\* [^)]*)\)\s*{{", source)
    kinds = ["*" in parameter for parameter in parameters.split(",")]
    return sum(kinds), len(kinds) - sum(kinds)


@pytest.mark.parametrize("vocab", [300, 1024, 3000, 9000, 40_000, 90_000])
@pytest.mark.parametrize("batch", [(), (4,)])
@pytest.mark.parametrize("uneven", [False, True], ids=["uniform", "uneven"])
def test_kernels_are_launched_with_what_they_take(
    vocab: int, batch: tuple[int, ...], uneven: bool, monkeypatch: pytest.MonkeyPatch
):
    launches = Launches()
    monkeypatch.setattr(passes, "_module", lambda *_: launches)
    monkeypatch.setattr(mlp, "_module", lambda *_, **__: launches)
    V, n, d, D, m = vocab, 32_768, 40, 64, 100

    def call(launch: Any, inputs: list[tuple[int, ...]], outputs: list[tuple[int, ...]]) -> None:
        read, write = (
            [calls.Buffer(8 * at, (*batch, *shape)) for at, shape in enumerate(side)] for side in (inputs, outputs)
        )
        launch(calls.Frame(read, write, {"length": 64, "additive": 1, "phi": 2, "locked": 0}, 0))

    stream: list[tuple[int, ...]] = [(2,), (V if uneven else 0,)]
    drawn, ordered = [*stream, (n,), (V + 1,)], [*stream, (n,), (V + 1,), (n,), ()]
    tiled = [(n,), (V + 1,), (n,), (), (2, n, D), (2, 128, D), (2,), (V, m)]
    call(passes._order, [*stream, (V,), (), ()], [(n,), (V + 1,), (n,), (V,)])
    call(passes._count, [*ordered, (V, V), (V,)], [(V, V), (V,)])
    call(passes._spread, [*ordered, (V, V), (V,), (V,), ()], [(V,), ()])
    call(passes._winners, [*stream, *[(V,)] * 5, (), (), (V, V), (V,)], [(V, V), (V,)])
    call(mlp._launch_pool, [*drawn, (V, d), (d,), (2,)], [(2, n, D)])
    call(mlp._launch_add_hidden, tiled, [(V, m)])
    call(mlp._launch_pull_back, tiled, [(n, D), (n,)])
    call(mlp._launch_add_pulls, [*drawn, (V, d), (d,), (n, D), (n,), (V,), ()], [(V,), ()])
    assert len(launches.kernels) == 10
    for name, arrays, numbers in launches.kernels:
        assert (arrays, numbers) == declared(name), name


SPECS = [
    dict(vocab=64, dim=16, length=5, samples=3000),
    dict(vocab=333, dim=40, length=7, samples=5000, trigger="additive"),
    dict(vocab=1024, dim=128, length=64, samples=32768),
    dict(vocab=2000, dim=64, length=600, samples=20000),
    dict(vocab=16000, dim=32, length=16, samples=200_000),
    dict(vocab=128, dim=32, length=16, samples=2000, attention="locked"),
    dict(vocab=512, dim=64, length=16, samples=300_000),
    dict(vocab=300, dim=16, length=8, samples=4000, width=64, activation="relu"),
    dict(vocab=300, dim=64, length=64, samples=6000, width=100, activation="hermite3"),
    dict(vocab=300, dim=128, length=65, samples=3000, width=256, activation="gelu", trigger="additive"),
    dict(vocab=300, dim=256, length=16, samples=5000, width=512, activation="tanh", trigger="additive"),
    dict(vocab=300, dim=36, length=33, samples=200, width=70, activation="hermite2"),
    dict(vocab=300, dim=32, length=4, samples=150_000, width=64, activation="linear", trigger="additive"),
    dict(vocab=64, dim=16, length=5, samples=3000, tokens="zipf:1"),
    dict(vocab=333, dim=40, length=7, samples=5000, tokens="zipf:2", trigger="additive"),
    dict(vocab=1024, dim=128, length=64, samples=32768, tokens="zipf:1.1"),
    dict(vocab=2000, dim=64, length=600, samples=20_000, tokens="zipf:0.5"),
    dict(vocab=16_000, dim=32, length=16, samples=200_000, tokens="zipf:1"),
    dict(
        vocab=300, dim=128, length=65, samples=3000, width=256, activation="gelu", trigger="additive", tokens="zipf:1"
    ),
    dict(vocab=1024, dim=64, length=64, samples=32768, width=100, activation="hermite3", tokens="zipf:1.5"),
]


@pytest.mark.gpu
@pytest.mark.parametrize("words", SPECS, ids=lambda words: "-".join(map(str, words.values())))
def test_kernels_equal_xlas_path(words: dict[str, object], monkeypatch: pytest.MonkeyPatch):
    place = find_device("gpu")
    spec = Retrieval(**words)  # pyright: ignore[reportArgumentType]
    assert passes.usable(spec.tokens != UNIFORM)

    def learn(precision: Precision = "float32") -> list[np.ndarray]:
        with numerics(precision, place):
            streams = random.streams(spec, 0)
            frozen = make_frozen(spec, streams)
            source = Source.of(spec, streams["train"], frozen.permutation)
            layout = choose_layout(spec, precision, "gpu")
            rates, count = Rates.of(spec), Count.of(spec.samples)
            learned = jax.jit(lambda: three_steps(spec.program(), layout, frozen, source, count, rates))()
            return [np.asarray(part, np.float64) for part in jax.device_get(learned)]

    ours = learn()
    for module in (passes, mlp):
        monkeypatch.setattr(module, "usable", lambda uneven: False)
    jax.clear_caches()
    # Frequent tokens make alpha a small difference of large sums: float32 itself is then as far from float64.
    for found, same, exact in zip(ours, learn(), learn("float64"), strict=True):
        rounding = np.linalg.norm(same - exact)
        assert np.linalg.norm(found - exact) <= max(1e-5 * np.linalg.norm(exact), 3 * rounding)


@pytest.mark.gpu
@pytest.mark.parametrize("tokens", ["uniform", "zipf:0.7", "zipf:1.5"])
@pytest.mark.parametrize(("vocab", "length", "samples"), [(64, 5, 3000), (1000, 33, 70_000), (16_000, 20, 150_001)])
def test_counts_are_equal_to_the_bit(vocab: int, length: int, samples: int, tokens: str):
    place = find_device("gpu")
    spec = Retrieval(vocab=vocab, dim=16, length=length, samples=samples, tokens=tokens)
    with numerics("float32", place):
        streams = random.streams(spec, 0)
        frozen = make_frozen(spec, streams)
        source = Source.of(spec, streams["train"], frozen.permutation)
        layout = choose_layout(spec, "float32", "gpu")
        counts = by_token.count_pairs(spec.program(), layout, source, Count.of(samples))
        batch = sample(source.key, lax.iota(jnp.uint32, samples), source.permutation, length, source.table)
        pairs = jnp.zeros((vocab, vocab), jnp.int32).at[batch.label[:, None], batch.tokens].add(1)
    assert bool((counts.pairs == pairs).all())
    assert int(counts.labels.sum()) == samples


def test_kernels_are_compiled_once_for_all_processes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    asked: list[tuple[str, str]] = []

    def compile_source(source: str, architecture: str, defined: Mapping[str, int]) -> bytes:
        asked.append((source, architecture))
        return f"{source} {architecture} {dict(defined)}".encode()

    monkeypatch.setattr(toolkit, "compile_source", compile_source)
    monkeypatch.setattr(toolkit, "_load", lambda names: SimpleNamespace(nvrtcVersion=lambda *numbers: 0))
    first = toolkit.compile_once("a", "sm_90", {"D": 64}, tmp_path)
    assert toolkit.compile_once("a", "sm_90", {"D": 64}, tmp_path) == first
    assert asked == [("a", "sm_90")]
    others = [("b", "sm_90", {"D": 64}), ("a", "sm_80", {"D": 64}), ("a", "sm_90", {"D": 32})]
    assert len({first, *(toolkit.compile_once(*other, tmp_path) for other in others)}) == 4
    for folder in (None, tmp_path / "missing"):  # nothing can be kept: compiled again
        assert toolkit.compile_once("a", "sm_90", {"D": 64}, folder) == first
    assert len(asked) == 6
