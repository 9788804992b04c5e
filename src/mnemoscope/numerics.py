"""Where and how numbers are computed: device, precision, and whether a setting fits in memory."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, TypeAlias

import jax

from mnemoscope.spec import Retrieval, SpecError
from mnemoscope.training.streaming import BYTES_PER_CHUNK, TOKENS_PER_CHUNK

Precision = Literal["float32", "float64"]
Device = Literal["auto", "cpu", "gpu"]
# A device as JAX hands it out; its class is not one that type checkers can name.
Place: TypeAlias = Any


def find_device(name: Device) -> Place:
    """The device of that name; `auto` is a GPU where JAX sees one, and the CPU elsewhere."""
    if name == "auto":
        return jax.devices()[0]
    try:
        return jax.devices(name)[0]
    except RuntimeError:
        raise SpecError(
            "device", f"expected a device that JAX sees ({jax.default_backend()}), got {name!r}"
        ) from None


@contextlib.contextmanager
def numerics(precision: Precision, device: Place) -> Iterator[None]:
    """Run the block in this precision on this device.

    Matrix products are told to keep full precision: GPUs would otherwise round float32 operands.
    """
    with (
        jax.enable_x64(precision == "float64"),
        jax.default_device(device),
        jax.default_matmul_precision("highest"),
    ):
        yield


def keep_compiled_programs() -> None:
    """Keep what XLA compiles in the user's cache folder, for the next run to find."""
    home = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    folder = Path(home) / "mnemoscope" / "compiled"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return  # a home that cannot be written to costs compile time, nothing else
    jax.config.update("jax_compilation_cache_dir", str(folder))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.1)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", 0)


def free_bytes(device: Place) -> int | None:
    """Memory that is free on the device, or None where that cannot be told."""
    if device.platform != "cpu":
        stats = device.memory_stats()
        return stats["bytes_limit"] - stats["bytes_in_use"] if stats else None
    with contextlib.suppress(OSError, StopIteration, ValueError):
        lines = Path("/proc/meminfo").read_text().splitlines()
        return 1024 * int(next(x for x in lines if x.startswith("MemAvailable")).split()[1])
    with contextlib.suppress(OSError, ValueError, AttributeError):
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return None


def needed_bytes(
    spec: Retrieval, precision: Precision = "float32", place: Place = None
) -> dict[str, int]:
    """The large arrays of a trial, in bytes, by what they are for."""
    size = 8 if precision == "float64" else 4
    here = "cpu" if place is None or place.platform == "cpu" else "gpu"
    hidden = spec.width or spec.dim
    needed = {
        "embeddings": 2 * spec.vocab * spec.dim * size,
        # Counts, and two tables of the same shape in flight beside them.
        "tables by pair of tokens": spec.vocab**2 * (4 + 2 * size),
        "value matrices": 4 * spec.dim * hidden * size,
        "one chunk": 4 * max(BYTES_PER_CHUNK[here], 4 * TOKENS_PER_CHUNK[here], 4 * spec.length),
    }
    if spec.width:
        needed["hidden units"] = (3 * spec.vocab + spec.dim) * spec.width * size
    if spec.then == "adamw":
        needed["moments"] = 4 * spec.dim * (hidden + spec.dim) * size
    return needed


def check_memory(spec: Retrieval, precision: Precision, device: Place) -> None:
    """Refuse a setting that cannot fit, before anything is allocated."""
    free = free_bytes(device)
    needed = needed_bytes(spec, precision, device)
    total = sum(needed.values())
    if free is None or total <= free:
        return
    part, most = max(needed.items(), key=lambda item: item[1])
    blame = "width" if spec.width > max(spec.vocab, spec.dim) else "vocab"
    blame = "dim" if spec.dim > max(spec.vocab, spec.width) else blame
    raise SpecError(
        blame,
        f"expected a size that fits in the {_readable(free)} free, got "
        f"{getattr(spec, blame):,}, which needs {_readable(total)} ({_readable(most)} for {part})",
    )


def _readable(count: float) -> str:
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:.3g} PB"
