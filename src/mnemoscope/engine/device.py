"""Where and how numbers are computed: device, precision, and what is kept of compilation."""

import contextlib
import logging
import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeAlias

import jax

from mnemoscope.spec import SpecError
from mnemoscope.spec.validators import Device

log = logging.getLogger(__name__)

Precision = Literal["float32", "float64"]
# A device as JAX hands it out; its class is not one that type checkers can name.
Place: TypeAlias = Any


def find_device(name: Device) -> Place:
    """The device of that name; `auto` is a GPU where JAX sees one, and the CPU elsewhere.

    This is where JAX is first used, so it is set up here.
    """
    set_up_jax()
    if name == "auto":
        return jax.devices()[0]
    try:
        return jax.devices(name)[0]
    except RuntimeError:
        raise SpecError("device", f"expected a device that JAX sees ({jax.default_backend()}), got {name!r}") from None


@contextlib.contextmanager
def numerics(precision: Precision, device: Place) -> Iterator[None]:
    """Run the block in this precision on this device.

    Matrix products are told to keep full precision: GPUs would otherwise round float32 operands.
    """
    with jax.enable_x64(precision == "float64"), jax.default_device(device), jax.default_matmul_precision("highest"):
        yield


# Inside a compiled loop XLA's CPU compiler uses one core. Below so many products in a step that is
# still faster than a call for every step.
ONE_CORE = 2**24


def loops_inside(arrays: Any, products: int) -> bool:
    """Whether several steps are better one compiled loop than one call each, where `arrays` are."""
    (place,) = jax.tree.leaves(arrays)[0].devices()
    return place.platform != "cpu" or products <= ONE_CORE


# Linux gives a process 65,530 pieces of memory; every compiled program takes some.
MOST_PIECES = 30_000


def programs_crowd() -> bool:
    """Whether compiled programs have used up much of what a process may map.

    A process that goes through hundreds of shapes would otherwise end with "cannot allocate
    memory", however much memory is free.
    """
    try:
        with Path("/proc/self/maps").open("rb") as pieces:
            return sum(1 for _ in pieces) > MOST_PIECES
    except OSError:
        return False


def forget_programs() -> None:
    """Let go of what JAX keeps of compiled functions; they are compiled, or found, again."""
    if programs_crowd():
        jax.clear_caches()


# XLA's GPU compiler tries many kernels for every product and times them. For programs that are
# compiled for a few seconds of work the library's own choice is as fast, and there three times
# sooner. JAX has no option of its own for it that holds for every program.
NO_AUTOTUNING = "--xla_gpu_autotune_level=0 --xla_gpu_enable_triton_gemm=false"


@cache
def set_up_jax() -> None:
    """Set JAX up for our programs, once and before its first use; what the user has set stays.

    XLA's GPU compiler does not try out kernels, and compiled programs are kept in the user's cache
    folder for the next process to find.
    """
    os.environ.setdefault("XLA_FLAGS", NO_AUTOTUNING)
    if getattr(jax.config, "jax_compilation_cache_dir") is not None:  # noqa: B009
        return  # the user's own, from the environment or from Python
    home = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    folder = Path(home) / "mnemoscope" / "compiled"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        log.info("compiled programs are not kept: %s", error)  # this costs time, nothing else
        return
    log.debug("compiled programs are kept in %s", folder)
    jax.config.update("jax_compilation_cache_dir", str(folder))
    for name, value in (("min_compile_time_secs", 0.1), ("min_entry_size_bytes", 0)):
        if f"JAX_PERSISTENT_CACHE_{name}".upper() not in os.environ:
            jax.config.update(f"jax_persistent_cache_{name}", value)


def untouched_environment() -> dict[str, str]:
    """The environment for a process whose JAX is to be as the user has set it, without our flags."""
    flags = os.environ.get("XLA_FLAGS", NO_AUTOTUNING)
    # Empty flags are a user's choice, too, which `set_up_jax` leaves alone in that process.
    return {**os.environ, "XLA_FLAGS": "" if flags == NO_AUTOTUNING else flags}


def share_gpu() -> None:
    """Take a GPU's memory as it is needed, where JAX would take three quarters of it at once.

    Call it before the first array; what the user has set stays.
    """
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
