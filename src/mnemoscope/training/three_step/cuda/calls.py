"""Python functions that launch kernels, as operations inside `jit`.

XLA calls a foreign function with the address of a call frame: C structures (xla/ffi/api/c_api.h, version 0) with
addresses, shapes and attributes. They are read here by their offsets, which takes microseconds where ctypes' own
structures take tens of them. The function only puts kernels on XLA's stream and returns, so that the GPU does not wait
for Python as long as it has something to do.
"""

import ctypes
import struct
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import jax

EXECUTE = 3
METADATA = 1
RECORDABLE = 1
INTERNAL_ERROR = 13

# struct_size, extension, api, context, stage; then for arguments, results and attributes each: struct_size, extension,
# how many, their types, and pointers to them (for attributes: to their names, and to them).
_FRAME = struct.Struct("<4Qi4x QQq2Q QQq2Q QQq3Q")
# Of an array, past struct_size, extension and type: data, number of dimensions, dimensions.
_BUFFER, _BUFFER_AT = struct.Struct("<QqQ"), 24
# Of the api: the version's numbers, and the functions that make an error and find the stream.
_VERSION_AT, _ERROR_AT, _STREAM_AT = 32, 48, 80
# Of the extension that asks for metadata: its type, and its metadata's address; of those: version and traits.
_TYPE_AT, _METADATA_AT, _TOLD_VERSION_AT, _TRAITS_AT = 8, 24, 24, 32

_Function = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)
# What XLA holds a pointer to must not be collected.
_kept: list[Any] = []


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

    def handle(address: int) -> int | None:
        fields = _FRAME.unpack(ctypes.string_at(address, _FRAME.size))
        _, extension, api, context, stage = fields[:5]
        if extension:  # XLA asks which version this was written for, once
            _tell_version(extension, api)
            return None
        if stage != EXECUTE:
            return None
        try:
            inputs, outputs = _buffers(fields[7], fields[9]), _buffers(fields[12], fields[14])
            launch(Frame(inputs, outputs, _attributes(*fields[17:21]), _stream(api, context)))
        except Exception as error:
            return _error(api, f"{name}: {error}")
        return None

    handler = _Function(handle)
    _kept.append(handler)
    jax.ffi.register_ffi_target(name, jax.ffi.pycapsule(handler), platform="CUDA")


def _words(address: int, count: int) -> tuple[int, ...]:
    return struct.unpack(f"<{count}Q", ctypes.string_at(address, 8 * count)) if count else ()


def _buffers(count: int, pointers: int) -> list[Buffer]:
    buffers = []
    for pointer in _words(pointers, count):
        data, rank, dims = _BUFFER.unpack(ctypes.string_at(pointer + _BUFFER_AT, _BUFFER.size))
        buffers.append(Buffer(data, _words(dims, rank)))
    return buffers


def _attributes(count: int, _: int, names: int, values: int) -> dict[str, int]:
    """Attributes are 64-bit integers here: a name is (text, length), a scalar is (type, address)."""
    attributes = {}
    for name, value in zip(_words(names, count), _words(values, count), strict=True):
        text, length = _words(name, 2)
        attributes[ctypes.string_at(text, length).decode()] = _words(_words(value, 2)[1], 1)[0]
    return attributes


@cache
def _function(address: int) -> Any:
    return _Function(address)


def _stream(api: int, context: int) -> int:
    request = (ctypes.c_uint64 * 4)(32, 0, context, 0)
    if _function(_words(api + _STREAM_AT, 1)[0])(ctypes.addressof(request)):
        raise RuntimeError("XLA gave no stream")
    return request[3]


def _tell_version(extension: int, api: int) -> None:
    if ctypes.c_int.from_address(extension + _TYPE_AT).value != METADATA:
        return
    (metadata,) = _words(extension + _METADATA_AT, 1)
    ctypes.memmove(metadata + _TOLD_VERSION_AT, api + _VERSION_AT, 8)
    # Only kernels, copies and fills are put on the stream, so XLA may record a call once and replay it.
    ctypes.c_uint32.from_address(metadata + _TRAITS_AT).value = RECORDABLE


def _error(api: int, message: str) -> int:
    text = ctypes.c_char_p(message.encode())
    request = struct.pack("<QQQi4x", 32, 0, ctypes.cast(text, ctypes.c_void_p).value or 0, INTERNAL_ERROR)
    return _function(_words(api + _ERROR_AT, 1)[0])(ctypes.cast(ctypes.c_char_p(request), ctypes.c_void_p))
