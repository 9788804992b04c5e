"""Where and how numbers are computed: device, precision, and the cache of compiled programs."""

import contextlib
import importlib.metadata
import logging
import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeAlias

import jax

from mnemoscope.engine.files import cache_home
from mnemoscope.spec import SpecError
from mnemoscope.spec.validators import Device

log = logging.getLogger(__name__)

Precision = Literal["float32", "float64"]
# A device as JAX hands it out; its class is not one that type checkers can name.
Place: TypeAlias = Any


def find_device(name: Device) -> Place:
    """The device of that name; `auto` is a GPU if JAX sees one, otherwise the CPU.

    JAX is first used here, so this also sets it up.
    """
    set_up_jax()
    try:
        place = jax.devices(None if name == "auto" else name)[0]
    except RuntimeError:
        raise SpecError("device", f"expected a device that JAX sees ({jax.default_backend()}), got {name!r}") from None
    if place.platform != "cpu":
        warn_of_slow_sums(importlib.metadata.version("jaxlib"))
    return place


# Releases whose compiler adds float32 numbers to a common place by trying again and again, where GPUs have an
# instruction for it: https://github.com/jax-ml/jax/issues/38806. Our own kernels are not affected; embeddings that are
# trained, and attention that is a softmax, are.
SLOW_SUMS = ("0.10.2", "0.11.0")


@cache
def warn_of_slow_sums(version: str) -> None:
    """One line, once, where JAX's version makes some programs slow on a GPU."""
    if version in SLOW_SUMS:
        log.warning("jaxlib %s adds up gradients slowly on a GPU (jax-ml/jax#38806): 0.11.1 and later do not", version)


@contextlib.contextmanager
def numerics(precision: Precision, device: Place) -> Iterator[None]:
    """Run the block in this precision on this device.

    Matrix products keep full precision: GPUs would otherwise round float32 operands.
    """
    with jax.enable_x64(precision == "float64"), jax.default_device(device), jax.default_matmul_precision("highest"):
        yield


# Inside a compiled loop XLA's CPU compiler uses one core. Up to this many multiplications in a step,
# that is still faster than a call for every step.
ONE_CORE = 2**24


def loops_inside(arrays: Any, products: int) -> bool:
    """Whether one compiled loop of several steps is faster than a call each, on the arrays' device."""
    (place,) = jax.tree.leaves(arrays)[0].devices()
    return place.platform != "cpu" or products <= ONE_CORE


# Linux lets a process map 65,530 regions of memory; every compiled program takes some.
MOST_REGIONS = 30_000


def programs_crowd() -> bool:
    """Whether compiled programs have used up many of the regions that a process may map.

    Otherwise a process that compiles hundreds of shapes would fail with "cannot allocate memory",
    however much memory is free.
    """
    try:
        with Path("/proc/self/maps").open("rb") as regions:
            return sum(1 for _ in regions) > MOST_REGIONS
    except OSError:
        return False


def forget_programs() -> None:
    """Clear JAX's caches if compiled programs crowd the process; they are compiled or loaded again."""
    if programs_crowd():
        jax.clear_caches()


# XLA's GPU compiler times many kernels for every product. For programs that run a few seconds the library's own choice
# is as fast, and compiles in a third of the time. JAX has no option of its own that turns this off for every program.
NO_AUTOTUNING = "--xla_gpu_autotune_level=0 --xla_gpu_enable_triton_gemm=false"


@cache
def set_up_jax() -> None:
    """Set JAX up for our programs, once and before its first use; the user's own settings stay.

    XLA's GPU compiler does not autotune, and compiled programs are cached in the user's cache folder
    for the next process.
    """
    os.environ.setdefault("XLA_FLAGS", NO_AUTOTUNING)
    if getattr(jax.config, "jax_compilation_cache_dir") is not None:  # noqa: B009
        return  # set by the user, in the environment or in Python
    folder = cache_home() / "compiled"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        log.info("compiled programs are not cached: %s", error)  # this costs time, nothing else
        return
    log.debug("compiled programs are cached in %s", folder)
    jax.config.update("jax_compilation_cache_dir", str(folder))
    for name, value in (("min_compile_time_secs", 0.1), ("min_entry_size_bytes", 0)):
        if f"JAX_PERSISTENT_CACHE_{name}".upper() not in os.environ:
            jax.config.update(f"jax_persistent_cache_{name}", value)


def untouched_environment() -> dict[str, str]:
    """The environment for a process whose JAX has the user's own settings, without our flags."""
    flags = os.environ.get("XLA_FLAGS", NO_AUTOTUNING)
    # Empty flags count as the user's choice, so `set_up_jax` leaves them alone in that process.
    return {**os.environ, "XLA_FLAGS": "" if flags == NO_AUTOTUNING else flags}


def share_gpu() -> None:
    """Allocate a GPU's memory as needed, where JAX would take three quarters of it at once.

    Call this before creating the first array; the user's own setting stays.
    """
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
