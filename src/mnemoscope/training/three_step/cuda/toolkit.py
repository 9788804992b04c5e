"""NVRTC and the CUDA driver, by ctypes: compile a source for the device at hand, and launch its kernels.

NVRTC comes with JAX's CUDA wheels and the driver with the GPU, so nothing has to be installed. We need a dozen
functions of the two. CuPy, Warp and cuda-core wrap the same functions and add tens to hundreds of megabytes; of the
three only Warp joins `jit`, and it does so as `calls` does.
"""

import ctypes
import hashlib
import importlib.util
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import jax

# cuDeviceGetAttribute and cuFuncSetAttribute, as cuda.h numbers them.
MULTIPROCESSORS, MOST_SHARED_BYTES, MAJOR, MINOR = 16, 97, 75, 76
FUNCTION_SHARED_BYTES, FUNCTION_OWN_SHARED_BYTES = 8, 1
# Of a block's shared memory, what the kernels' own variables may take.
RESERVED = 2048


class CudaError(RuntimeError):
    """A call of NVRTC or of the driver failed, or one of them is not there."""


class Module:
    """A compiled source, loaded into the current CUDA context."""

    def __init__(self, name: str, **defined: int) -> None:
        """Compile `name`, a file beside this one, for the device at hand with these macros."""
        self._driver = _load(["libcuda.so.1"])
        device = ctypes.c_int()
        self._check("cuCtxGetDevice", ctypes.byref(device))
        self.multiprocessors, self.all_shared_bytes, major, minor = (
            self._attribute(number, device) for number in (MULTIPROCESSORS, MOST_SHARED_BYTES, MAJOR, MINOR)
        )
        self.shared_bytes = self.all_shared_bytes - RESERVED
        folder = Path(__file__).parent
        source = "\n".join((folder / part).read_text() for part in ("draws.cuh", name))
        # Beside JAX's own compiled programs, where these are kept.
        kept_in = getattr(jax.config, "jax_compilation_cache_dir")  # noqa: B009
        image = compile_once(source, f"sm_{major}{minor}", defined, kept_in and Path(kept_in))
        self._module = ctypes.c_void_p()
        self._check("cuModuleLoadData", ctypes.byref(self._module), image)
        self._functions: dict[str, ctypes.c_void_p] = {}

    def launch(
        self,
        name: str,
        grid: tuple[int, int, int],
        threads: int,
        shared: int,
        stream: int,
        addresses: Sequence[int],
        *numbers: int,
    ) -> None:
        """Start a kernel on a stream. It takes arrays by their addresses, then 32-bit integers."""
        values = [*map(ctypes.c_void_p, addresses), *map(ctypes.c_int, numbers)]
        pointers = (ctypes.c_void_p * len(values))(*(ctypes.addressof(value) for value in values))
        self._check(
            "cuLaunchKernel",
            self._function(name),
            *grid,
            threads,
            1,
            1,
            shared,
            ctypes.c_void_p(stream),
            pointers,
            None,
        )

    def zero(self, address: int, words: int, stream: int) -> None:
        """Set 32-bit words to zero."""
        self._check("cuMemsetD32Async", ctypes.c_uint64(address), 0, ctypes.c_size_t(words), ctypes.c_void_p(stream))

    def copy(self, target: int, source: int, size: int, stream: int) -> None:
        """Copy bytes on the device."""
        self._check(
            "cuMemcpyDtoDAsync_v2",
            ctypes.c_uint64(target),
            ctypes.c_uint64(source),
            ctypes.c_size_t(size),
            ctypes.c_void_p(stream),
        )

    def _function(self, name: str) -> ctypes.c_void_p:
        if name not in self._functions:
            function = ctypes.c_void_p()
            self._check("cuModuleGetFunction", ctypes.byref(function), self._module, name.encode())
            own = ctypes.c_int()
            self._check("cuFuncGetAttribute", ctypes.byref(own), FUNCTION_OWN_SHARED_BYTES, function)
            # More than 48 KB of shared memory has to be asked for.
            self._check("cuFuncSetAttribute", function, FUNCTION_SHARED_BYTES, self.all_shared_bytes - own.value)
            self._functions[name] = function
        return self._functions[name]

    def _attribute(self, number: int, device: ctypes.c_int) -> int:
        value = ctypes.c_int()
        self._check("cuDeviceGetAttribute", ctypes.byref(value), number, device)
        return value.value

    def _check(self, name: str, *arguments: Any) -> None:
        status = getattr(self._driver, name)(*arguments)
        if status:
            text = ctypes.c_char_p()
            self._driver.cuGetErrorString(status, ctypes.byref(text))
            raise CudaError(f"{name}: {(text.value or b'unknown error').decode()} ({status})")


def compile_once(source: str, architecture: str, defined: Mapping[str, int], folder: Path | None) -> bytes:
    """`compile_source`, or what an earlier process compiled and left in the folder."""
    if folder is None:
        return compile_source(source, architecture, defined)
    version = (ctypes.c_int(), ctypes.c_int())
    _load(_nvrtc_files()).nvrtcVersion(*map(ctypes.byref, version))
    told = repr((source, architecture, sorted(defined.items()), [part.value for part in version]))
    path = folder / f"kernels-{hashlib.sha256(told.encode()).hexdigest()[:32]}.cubin"
    with suppress(OSError):
        return path.read_bytes()
    image = compile_source(source, architecture, defined)
    with suppress(OSError):  # a folder that cannot be written costs time, nothing else
        part = path.with_suffix(f".{os.getpid()}")
        part.write_bytes(image)
        part.replace(path)
    return image


def compile_source(source: str, architecture: str, defined: Mapping[str, int]) -> bytes:
    """CUDA C++ to machine code."""
    nvrtc = _load(_nvrtc_files())
    program = ctypes.c_void_p()

    def check(name: str, *arguments: Any) -> None:
        status = getattr(nvrtc, name)(*arguments)
        if status:
            raise CudaError(f"{name}: status {status}{_log(nvrtc, program)}")

    check("nvrtcCreateProgram", ctypes.byref(program), source.encode(), b"kernels.cu", 0, None, None)
    macros = (f"-D{name}={value}" for name, value in defined.items())
    words = [word.encode() for word in (f"--gpu-architecture={architecture}", "--std=c++17", *macros)]
    check("nvrtcCompileProgram", program, len(words), (ctypes.c_char_p * len(words))(*words))
    size = ctypes.c_size_t()
    check("nvrtcGetCUBINSize", program, ctypes.byref(size))
    image = ctypes.create_string_buffer(size.value)
    check("nvrtcGetCUBIN", program, image)
    nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
    return image.raw


def _log(nvrtc: ctypes.CDLL, program: ctypes.c_void_p) -> str:
    size = ctypes.c_size_t()
    if not program or nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size)):
        return ""
    text = ctypes.create_string_buffer(size.value)
    nvrtc.nvrtcGetProgramLog(program, text)
    return f", {text.value.decode(errors='replace').strip()}"


def _nvrtc_files() -> list[str]:
    """Where NVRTC may be: in the wheels that JAX's CUDA plugin asks for, or where the loader looks."""
    spec = importlib.util.find_spec("nvidia")
    roots = [Path(root) for root in (spec.submodule_search_locations or [])] if spec else []
    found = [path for root in roots for path in sorted(root.glob("*/lib/libnvrtc.so.1[0-9]"), reverse=True)]
    return [*map(str, found), "libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"]


def _load(names: Sequence[str]) -> ctypes.CDLL:
    for name in names:
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    raise CudaError(f"no {names[-1].split('.')[0]} on this machine")
