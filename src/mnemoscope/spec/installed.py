"""Names that installed packages add: entry points of four groups, listed without being imported.

    [project.entry-points."mnemoscope.models"]
    two-head = "mypackage.models:two_head"

The groups are `mnemoscope.models`, `.tasks`, `.laws` and `.studies`. A name that is taken is left out, with a warning.
"""

import logging
from collections.abc import Collection
from functools import cache
from importlib.metadata import entry_points
from typing import Literal, NamedTuple

from mnemoscope.spec.base import SpecError
from mnemoscope.spec.validators import is_place, nearest

log = logging.getLogger(__name__)

Group = Literal["models", "tasks", "laws", "studies"]
# Models of our own, which `run` and `capacity` name without a colon.
BUILT_IN: dict[str, tuple[str, ...]] = {"models": ("transformer",)}


class Added(NamedTuple):
    """What a package adds under a name: where it stands, and the package."""

    place: str
    package: str


@cache
def installed(group: Group) -> dict[str, Added]:
    """The names of a group."""
    found: dict[str, Added] = {}
    for point in entry_points(group=f"mnemoscope.{group}"):
        package = f"{point.dist.name} {point.dist.version}" if point.dist else "a package"
        if found.get(point.name, (point.value,))[0] != point.value:
            say_taken(group, point.name, package, found[point.name].package)
        else:
            found.setdefault(point.name, Added(point.value, package))
    return found


def free_names(group: Group, taken: Collection[str]) -> dict[str, Added]:
    """The names of a group without those that Mnemoscope has itself."""
    for name in installed(group).keys() & taken:
        say_taken(group, name, installed(group)[name].package, "mnemoscope")
    return {name: added for name, added in installed(group).items() if name not in taken}


def say_taken(group: str, name: str, package: str, owner: str) -> None:
    """Warn that a package's name is left out."""
    log.warning(
        "%s: expected a name for one of its %s that is not taken, got %r, which is %s's", package, group, name, owner
    )


def place_of(option: str, group: Group, text: str) -> str:
    """Where the object of that name stands; "module:object" stands for itself."""
    if is_place(text):
        return text
    known = installed(group)
    if text not in known:
        names = [*BUILT_IN.get(group, ()), *known]
        listed = f" or one of {', '.join(names)}" if len(names) > 1 else "".join(f" or {name}" for name in names)
        raise SpecError(option, f"expected MODULE:OBJECT{listed}, got {text!r}{nearest(text, names)}")
    return known[text].place
