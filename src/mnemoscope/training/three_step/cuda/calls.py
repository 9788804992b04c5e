"""Python functions that launch kernels, as operations inside `jit`.

XLA calls a foreign function with a call frame: addresses, shapes and attributes, in C structures (xla/ffi/api/c_api.h,
version 0). They are read here by ctypes. The function only puts kernels on XLA's stream and returns, so that the GPU
does not wait for Python as long as it has something to do.
"""

import ctypes
from collections.abc import Callable
from typing import Any, NamedTuple

import jax

EXECUTE = 3
METADATA = 1
INTERNAL_ERROR = 13
SCALAR = 3


class Buffer(NamedTuple):
    """An array on the device."""

    address: int
    shape: tuple[int, ...]


class Frame(NamedTuple):
    """What a call is given: arrays to read, arrays to write, integers by name, and the stream."""

    inputs: list[Buffer]
    outputs: list[Buffer]
    attributes: dict[str, int]
    stream: int


def register(name: str, launch: Callable[[Frame], None]) -> None:
    """Make `launch` the operation `name`, for `jax.ffi.ffi_call` on CUDA devices."""

    def handle(pointer: Any) -> int | None:
        frame = pointer.contents
        if frame.extension_start:  # XLA asks which version this was written for, once
            if frame.extension_start.contents.type == METADATA:
                metadata = ctypes.cast(frame.extension_start, ctypes.POINTER(_MetadataExtension)).contents.metadata
                version = frame.api.contents.version
                metadata.contents.version.major = version.major
                metadata.contents.version.minor = version.minor
            return None
        if frame.stage != EXECUTE:
            return None
        try:
            launch(_read(frame))
        except Exception as error:
            return _error(frame, f"{name}: {error}")
        return None

    handler = _Handler(handle)
    _kept.append(handler)
    jax.ffi.register_ffi_target(name, jax.ffi.pycapsule(handler), platform="CUDA")


# What XLA holds a pointer to must not be collected.
_kept: list[Any] = []


class _Extension(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("type", ctypes.c_int), ("next", ctypes.c_void_p)]


class _Version(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("extension_start", ctypes.c_void_p),
        ("major", ctypes.c_int),
        ("minor", ctypes.c_int),
    ]


class _Metadata(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("version", _Version), ("traits", ctypes.c_uint32)]


class _MetadataExtension(ctypes.Structure):
    _fields_ = [("base", _Extension), ("metadata", ctypes.POINTER(_Metadata))]


class _Api(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("extension_start", ctypes.c_void_p),
        ("version", _Version),
        ("internal", ctypes.c_void_p),
        ("error_create", ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)),
        ("error_message", ctypes.c_void_p),
        ("error_destroy", ctypes.c_void_p),
        ("handler_register", ctypes.c_void_p),
        ("stream_get", ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)),
    ]


class _Buffer(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("extension_start", ctypes.c_void_p),
        ("dtype", ctypes.c_int),
        ("data", ctypes.c_void_p),
        ("rank", ctypes.c_int64),
        ("dims", ctypes.POINTER(ctypes.c_int64)),
    ]


class _Values(ctypes.Structure):
    """The arguments of a call, or its results."""

    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("extension_start", ctypes.c_void_p),
        ("size", ctypes.c_int64),
        ("types", ctypes.POINTER(ctypes.c_int)),
        ("values", ctypes.POINTER(ctypes.POINTER(_Buffer))),
    ]


class _Text(ctypes.Structure):
    _fields_ = [("pointer", ctypes.c_void_p), ("size", ctypes.c_size_t)]


class _Scalar(ctypes.Structure):
    _fields_ = [("dtype", ctypes.c_int), ("value", ctypes.POINTER(ctypes.c_int64))]


class _Attributes(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("extension_start", ctypes.c_void_p),
        ("size", ctypes.c_int64),
        ("types", ctypes.POINTER(ctypes.c_int)),
        ("names", ctypes.POINTER(ctypes.POINTER(_Text))),
        ("values", ctypes.POINTER(ctypes.POINTER(_Scalar))),
    ]


class _CallFrame(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("extension_start", ctypes.POINTER(_Extension)),
        ("api", ctypes.POINTER(_Api)),
        ("context", ctypes.c_void_p),
        ("stage", ctypes.c_int),
        ("arguments", _Values),
        ("results", _Values),
        ("attributes", _Attributes),
    ]


class _StreamArguments(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("extension_start", ctypes.c_void_p),
        ("context", ctypes.c_void_p),
        ("stream", ctypes.c_void_p),
    ]


class _ErrorArguments(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("extension_start", ctypes.c_void_p),
        ("message", ctypes.c_char_p),
        ("code", ctypes.c_int),
    ]


_Handler = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.POINTER(_CallFrame))


def _read(frame: _CallFrame) -> Frame:
    request = _StreamArguments(ctypes.sizeof(_StreamArguments), None, frame.context, None)
    if frame.api.contents.stream_get(ctypes.addressof(request)):
        raise RuntimeError("XLA gave no stream")
    found = frame.attributes
    attributes = {}
    for number in range(found.size):
        if found.types[number] != SCALAR:
            raise RuntimeError("expected integers as attributes")
        name = found.names[number].contents
        attributes[ctypes.string_at(name.pointer, name.size).decode()] = found.values[number].contents.value[0]
    return Frame(_buffers(frame.arguments), _buffers(frame.results), attributes, request.stream or 0)


def _buffers(values: _Values) -> list[Buffer]:
    arrays = (values.values[number].contents for number in range(values.size))
    return [Buffer(array.data or 0, tuple(array.dims[axis] for axis in range(array.rank))) for array in arrays]


def _error(frame: _CallFrame, message: str) -> int:
    request = _ErrorArguments(ctypes.sizeof(_ErrorArguments), None, message.encode(), INTERNAL_ERROR)
    return frame.api.contents.error_create(ctypes.addressof(request))
