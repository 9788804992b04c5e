"""The identity of a user's object: a hash of its source and of every value that it closes over.

A function counts with its source, its defaults, its closure, and the globals that it names; a class with its source
and its bases; an instance with its class and its values. The object's own package, and code that is not installed, are
followed to their source, so that an edited helper makes another object. What belongs to a library counts by name.
"""

import dis
import functools
import hashlib
import inspect
import sys
import sysconfig
import textwrap
from collections.abc import Iterator, Mapping
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

# Deeper than any object that a person writes.
DEEPEST = 60
_INSTALLED = tuple({sysconfig.get_paths()[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")})
_PLAIN = (type(None), bool, int, float, complex, str, bytes, type(...), type(NotImplemented))


class Unhashable(Exception):  # noqa: N818 - it is an answer, not an error
    """An object's identity cannot be known; the text says which part of it is at fault."""


def digest(thing: Any) -> str:
    """Sixteen hexadecimal digits of an object's source and values."""
    return _Reader(thing).digest()


class _Reader:
    """Feeds an object, part by part, into one hash."""

    def __init__(self, thing: Any) -> None:
        self.thing, self.hash = thing, hashlib.sha256()
        self.seen: dict[int, int] = {}
        self.kept: list[Any] = []  # what is seen stays alive, so that no other object gets its number
        self.package = home_of(thing).partition(".")[0]

    def digest(self) -> str:
        self.read(self.thing, 0)
        return self.hash.hexdigest()[:16]

    def say(self, *words: Any) -> None:
        self.hash.update(repr(words).encode())

    def read(self, part: Any, depth: int) -> None:
        """One part of the object."""
        if depth > DEEPEST:
            raise Unhashable("a value nested too deeply")
        if isinstance(part, _PLAIN):
            self.say(type(part).__name__, part)
            return
        if id(part) in self.seen:
            self.say("again", self.seen[id(part)])
            return
        self.seen[id(part)] = len(self.seen)
        self.kept.append(part)
        inner = _unwrapped(part)
        if inner is not None:
            self.say("wrapped", type(part).__qualname__)
            self.read(inner, depth + 1)
        elif isinstance(part, ModuleType):
            self.say("module", part.__name__)
        elif isinstance(part, FunctionType):
            self.function(part, depth)
        elif isinstance(part, type):
            self.class_(part, depth)
        elif isinstance(part, BuiltinFunctionType | np.ufunc | np.dtype) or type(part).__module__ == "typing":
            self.say("library", getattr(part, "__module__", ""), getattr(part, "__qualname__", repr(part)))
        else:
            self.value(part, depth)

    def function(self, part: FunctionType, depth: int) -> None:
        """Source, defaults, closure, and the globals it names; a library's by its name and closure."""
        self.say("function", part.__module__, part.__qualname__)
        if self.follows(part.__module__):
            self.say(_source(part))
            self.globals(part, depth)
        marks = {name: value for name, value in vars(part).items() if name == "__wrapped__" or name[:2] != "__"}
        for inner in (part.__defaults__, part.__kwdefaults__, marks):
            self.read(inner, depth + 1)
        for name, cell in zip(part.__code__.co_freevars, part.__closure__ or (), strict=True):
            self.say(name)
            try:
                inside = cell.cell_contents
            except ValueError:  # a name that is not bound yet
                continue
            self.read(inside, depth + 1)

    def globals(self, part: FunctionType, depth: int) -> None:
        """The globals that its code names, in its functions within too."""
        for name in sorted(set(_global_names(part.__code__))):
            if name in part.__globals__:
                self.say(name)
                self.read(part.__globals__[name], depth + 1)

    def class_(self, part: type, depth: int) -> None:
        """The source, the bases, and what the methods name."""
        self.say("class", part.__module__, part.__qualname__)
        if not self.follows(part.__module__):
            return
        self.say(_source(part))
        for base in part.__bases__:
            self.read(base, depth + 1)
        for name, member in sorted(vars(part).items()):
            method = _unwrapped(member) or member
            if isinstance(method, FunctionType) and method.__module__ == part.__module__ and _written(method):
                self.say(name)
                self.globals(method, depth)

    def value(self, part: Any, depth: int) -> None:
        """A container, an array, or an instance with values."""
        if isinstance(part, list | tuple):
            self.say(type(part).__qualname__, len(part))
            for one in part:
                self.read(one, depth + 1)
        elif isinstance(part, set | frozenset):
            self.say("set", sorted(digest(one) for one in part))
        elif isinstance(part, Mapping):
            self.say(type(part).__qualname__, len(part))
            for name, one in part.items():
                self.read(name, depth + 1)
                self.read(one, depth + 1)
        elif hasattr(part, "__array__"):
            array = np.asarray(part.detach() if hasattr(part, "detach") else part)
            if array.dtype.hasobject:
                raise Unhashable(f"an array of {array.dtype}")
            self.say("array", array.shape, array.dtype.str)
            self.hash.update(np.ascontiguousarray(array).tobytes())
        elif type(part).__module__ in ("builtins", "io", "_io", "_thread", "threading", "random", "numpy.random"):
            raise Unhashable(f"a {type(part).__name__}")
        elif hasattr(part, "__dict__"):
            self.read(type(part), depth + 1)
            self.read(dict(vars(part)), depth + 1)
        else:
            raise Unhashable(f"a {type(part).__name__}")

    def follows(self, module: str | None) -> bool:
        """Whether the source of a module is the user's: of the object's own package, or not installed."""
        if module is None or module.partition(".")[0] == "mnemoscope":
            return False
        if module.partition(".")[0] == self.package:
            return True
        file = getattr(sys.modules.get(module), "__file__", None)
        return file is not None and not file.startswith(_INSTALLED)


def home_of(thing: Any) -> str:
    """The module of the function or class that an object is, wraps, or is an instance of."""
    inner = thing.func if isinstance(thing, functools.partial) else _unwrapped(thing)
    if inner is not None:
        return home_of(inner[0] if isinstance(inner, tuple) else inner)
    origin = getattr(thing, "origin", None)
    if origin is not None:
        return home_of(origin)
    own = thing if isinstance(thing, type | FunctionType | BuiltinFunctionType) else type(thing)
    return str(getattr(own, "__module__", None) or "")


def _unwrapped(part: Any) -> Any:
    """What a wrapper wraps: a partial, a bound method, a compiled function; None for anything else."""
    if isinstance(part, functools.partial):
        return (part.func, part.args, part.keywords)
    if isinstance(part, MethodType):
        return (part.__func__, part.__self__)
    if isinstance(part, staticmethod | classmethod):
        return part.__func__
    if isinstance(part, property):
        return part.fget
    if isinstance(part, functools.cached_property):
        return part.func
    if isinstance(part, type | FunctionType):
        return None
    inner = getattr(part, "__wrapped__", None)
    return inner if callable(inner) else None


def _source(part: Any) -> str:
    """The source text, without the indentation of the place where it stands."""
    try:
        return textwrap.dedent(inspect.getsource(part))
    except (OSError, TypeError):
        raise Unhashable(f"{part.__qualname__}, whose source cannot be read") from None


def _written(method: FunctionType) -> bool:
    """Whether a person wrote a method, rather than a decorator such as dataclass."""
    return not method.__code__.co_filename.startswith("<") or method.__code__.co_filename.startswith("<ipython")


def _global_names(code: CodeType) -> Iterator[str]:
    """The globals that compiled code loads, in functions defined inside it, too."""
    yield from (one.argval for one in dis.get_instructions(code) if one.opname in ("LOAD_GLOBAL", "LOAD_NAME"))
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _global_names(constant)
