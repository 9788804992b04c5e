"""Whether a setting fits in memory, said before anything is allocated."""

import contextlib
import os
from pathlib import Path

from mnemoscope.numerics import Place, Precision
from mnemoscope.spec import Retrieval, SpecError
from mnemoscope.training.streaming import chunk_by_sample, chunk_by_token

# Tables by pair of tokens are indexed with 32 bits.
MOST_VOCAB = 46_340

# For every large part, the settings that its size comes from.
BLAME = {
    "embeddings": ("vocab", "dim"),
    "tables by pair of tokens": ("vocab",),
    "value matrices": ("dim", "width"),
    "hidden units": ("width", "vocab"),
    "moments": ("dim", "width"),
    "one chunk": ("length", "vocab", "width"),
}


def free_bytes(place: Place) -> int | None:
    """Memory that is free on the device, or None where that cannot be told."""
    if place.platform != "cpu":
        stats = place.memory_stats()
        return stats["bytes_limit"] - stats["bytes_in_use"] if stats else None
    known = [free for free in (_free_in_system(), _free_in_container()) if free is not None]
    return min(known, default=None)


def _free_in_system() -> int | None:
    with contextlib.suppress(OSError, StopIteration, ValueError):
        lines = Path("/proc/meminfo").read_text().splitlines()
        return 1024 * int(next(x for x in lines if x.startswith("MemAvailable")).split()[1])
    with contextlib.suppress(OSError, ValueError, AttributeError):
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return None


def _free_in_container() -> int | None:
    """What a container's own limit leaves, where there is one."""
    folder = Path("/sys/fs/cgroup")
    with contextlib.suppress(OSError, ValueError):  # "max" is no number: no limit
        limit = int((folder / "memory.max").read_text())
        return max(0, limit - int((folder / "memory.current").read_text()))
    return None


def needed_bytes(spec: Retrieval, precision: Precision = "float32") -> dict[str, int]:
    """The large arrays of a trial, in bytes, by what they are for."""
    size = 8 if precision == "float64" else 4
    hidden = spec.width or spec.dim
    # Values, hidden units and logits of a chunk, and what is computed from them; or its tokens.
    vectors = chunk_by_sample(spec) * (spec.length * spec.dim + spec.width + spec.vocab) * size
    tokens = 4 * chunk_by_token(spec) * spec.length
    needed = {
        "embeddings": 2 * spec.vocab * spec.dim * size,
        # Counts, and up to three tables of the same shape in flight beside them.
        "tables by pair of tokens": spec.vocab**2 * (4 + 3 * size),
        "value matrices": 4 * spec.dim * hidden * size,
        "one chunk": 3 * max(vectors, tokens),
    }
    if spec.width:
        needed["hidden units"] = (5 * spec.vocab + spec.dim) * spec.width * size
    if spec.then == "adamw":
        needed["moments"] = 4 * spec.dim * (hidden + spec.dim) * size
    return needed


def check_memory(spec: Retrieval, precision: Precision, place: Place) -> None:
    """Refuse a setting that cannot fit."""
    free = free_bytes(place)
    needed = needed_bytes(spec, precision)
    total = sum(needed.values())
    if free is not None and total > free:
        part, most = max(needed.items(), key=lambda item: item[1])
        blame = max(BLAME[part], key=lambda field: getattr(spec, field))
        raise SpecError(
            blame,
            f"expected a size that fits in the {_readable(free)} free, got "
            f"{getattr(spec, blame):,}, which needs {_readable(total)} "
            f"({_readable(most)} for {part})",
        )
    if spec.vocab > MOST_VOCAB:
        raise SpecError("vocab", f"expected at most {MOST_VOCAB:,}, got {spec.vocab:,}")


def _readable(count: float) -> str:
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:.3g} PB"
