"""The free memory of this machine, and an early refusal of what will not fit.

Factorising a matrix that does not fit may kill the whole process: LAPACK does not report that memory has run out.
"""

import contextlib
import os
from pathlib import Path

from mnemoscope.spec import SpecError

# How many arrays of a square matrix's size, itself included, are held while its eigenvectors are
# computed and used, while it is inverted by its singular values, and while a system is solved.
EIGENVECTORS, SINGULAR, SOLVED = 7, 9, 4


def free_in_host() -> int | None:
    """Free bytes on this machine, or None if unknown."""
    known = [free for free in (_free_in_system(), _free_in_container()) if free is not None]
    return min(known, default=None)


def _free_in_system() -> int | None:
    with contextlib.suppress(OSError, StopIteration, ValueError):
        lines = Path("/proc/meminfo").read_text().splitlines()
        return 1024 * int(next(line for line in lines if line.startswith("MemAvailable")).split()[1])
    with contextlib.suppress(OSError, ValueError, AttributeError):
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return None


def _free_in_container() -> int | None:
    """What the container's own limit leaves, if there is one."""
    folder = Path("/sys/fs/cgroup")
    with contextlib.suppress(OSError, ValueError):  # "max" is not a number: no limit
        limit = int((folder / "memory.max").read_text())
        return max(0, limit - int((folder / "memory.current").read_text()))
    return None


def check_fits(field: str, size: str, needed: float, what: str) -> None:
    """Refuse a size that needs more bytes than are free."""
    free = free_in_host()
    if free is not None and needed > free:
        raise SpecError(
            field,
            f"expected a size that fits in the {readable(free)} free, got {size}, which "
            f"needs {readable(needed)} for {what}",
        )


def readable(count: float) -> str:
    """A number of bytes for people: `1.23 GB`."""
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:.3g} PB"
