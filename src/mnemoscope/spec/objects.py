"""Objects of the user's own in settings: laws, tasks, models and optimisers, named by place and content.

    mylaws:rademacher@1f0c...       "module:object", and sixteen digits of its source and values
    mylaws:noisy@unhashed-3a9b.0    an object whose identity cannot be known: its trials are not kept

A setting holds this name alone. The object is found among those that this process has seen, or is imported; its digits
must then agree. One that cannot be imported, such as a function of a notebook, travels with the setting.
"""

import logging
import os
import secrets
import sys
from collections.abc import Iterable
from functools import partial
from importlib import import_module
from types import FunctionType
from typing import Any

from mnemoscope.spec.base import SpecError
from mnemoscope.spec.identity import Unhashable, digest, home_of
from mnemoscope.spec.validators import is_place, nearest, one_line, shown

log = logging.getLogger(__name__)

_objects: dict[str, Any] = {}
_process = secrets.token_hex(4)


def import_object(option: str, place: str) -> Any:
    """The object at "module:object"; the folder one is in is searched, too."""
    module_name, _, path = place.partition(":")
    if not is_place(place):
        raise SpecError(option, f"expected MODULE:OBJECT, got {shown(place)}")
    here = os.getcwd()  # noqa: PTH109 - text, as sys.path has it
    if here not in sys.path and "" not in sys.path:
        sys.path.append(here)
    try:
        module = import_module(module_name)
    except Exception as error:  # a module may do anything when it is imported
        got = f"{module_name!r}: {one_line(error)}"
        raise SpecError(option, f"expected a module that can be imported, got {got}") from None
    except SystemExit:
        raise SpecError(option, f"expected a module that can be imported, got {module_name!r}, which exits") from None
    found: Any = module
    for name in path.split("."):
        if not hasattr(found, name):
            near = nearest(name, [known for known in vars(module) if not known.startswith("_")])
            raise SpecError(option, f"expected an object of {module_name}, got {place!r}{near}")
        found = getattr(found, name)
    return found


def name_object(option: str, thing: Any) -> str:
    """Remember an object, or the one at "module:object", and return its name for settings."""
    place = thing if isinstance(thing, str) else _place_of(thing)
    if isinstance(thing, str):
        thing = import_object(option, thing)
    try:
        name = f"{place}@{digest(thing)}"
    except Unhashable as why:
        known = [name for name, one in _objects.items() if one is thing]
        name = known[0] if known else f"{place}@unhashed-{_process}.{len(_objects)}"
        if not known:
            log.warning(
                "%s: expected source and values that can be hashed, got %s: its trials are not kept", place, why
            )
    _objects[name] = thing
    return name


def find_object(option: str, name: str) -> Any:
    """The object of that name; an imported one must have the same source and values."""
    if name in _objects:
        return _objects[name]
    place, _, digits = name.rpartition("@")
    if "<" in place or digits.startswith("unhashed") or not is_place(place):
        raise SpecError(option, f"expected an object that this process knows, got {place!r}: it cannot be imported")
    thing = import_object(option, place)
    try:
        own = digest(thing)
    except Unhashable:
        own = "none"
    if own != digits:
        raise SpecError(option, f"expected the source of {place} with the hash {digits}, got {own}: it has changed")
    _objects[name] = thing
    return thing


def place_in(name: str) -> str:
    """The "module:object" of a name."""
    return name.rpartition("@")[0]


def is_hashed(name: str) -> bool:
    """Whether trials under this name may be kept: its object's identity is known."""
    return "@unhashed-" not in name


def travelling(names: Iterable[str]) -> dict[str, Any]:
    """The objects of these names that another process could not import."""
    return {name: _objects[name] for name in names if name in _objects and not _importable(name)}


def arrive(objects: dict[str, Any]) -> None:
    """Know objects that came with a setting from another process."""
    for name, thing in objects.items():
        _objects.setdefault(name, thing)


def _place_of(thing: Any) -> str:
    """ "module:object" for an object: its own name, that of a global that holds it, or of what it was made from."""
    module = home_of(thing)
    named = [name for name, one in vars(sys.modules.get(module, object)).items() if one is thing]
    if named:
        return f"{module}:{named[0]}"
    own = getattr(thing, "origin", None) or thing
    own = own.func if isinstance(own, partial) else getattr(own, "__func__", own)
    own = own if isinstance(own, type | FunctionType) else getattr(own, "__wrapped__", type(own))
    return f"{module or 'builtins'}:{getattr(own, '__qualname__', type(own).__qualname__)}"


def _importable(name: str) -> bool:
    """Whether importing the name in a fresh process gives this very object."""
    module, _, path = place_in(name).partition(":")
    found: Any = sys.modules.get(module)
    if module == "__main__" or "<" in path or not is_hashed(name):
        return False
    for part in path.split("."):
        found = getattr(found, part, None)
    return found is _objects[name]
