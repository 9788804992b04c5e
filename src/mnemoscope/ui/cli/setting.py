"""The options of a setting, generated from the fields of its spec.

A command names the spec it takes. Every field becomes an option with the field's type, description and default:

    @takes(Retrieval, file=True)
    def run(setting: Setting[Retrieval], *, seeds: Seeds = 8) -> int:
        spec = setting.read()
"""

import dataclasses
import functools
import inspect
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, Generic, TypeVar, cast

from cyclopts import Group, Parameter
from pydantic import TypeAdapter
from pydantic_core import PydanticUndefined

from mnemoscope.models.matrices import take_matrix
from mnemoscope.spec import Spec, SpecError, Transformer, read_toml
from mnemoscope.spec.installed import free_names
from mnemoscope.spec.names import LAWS, with_registered
from mnemoscope.spec.retrieval import NO_FURTHER_TRAINING
from mnemoscope.spec.transformer import GROUPS
from mnemoscope.spec.validators import is_place
from mnemoscope.tasks.token_files import take_probabilities
from mnemoscope.ui.cli.options import option

S = TypeVar("S", bound=Spec)

SETTING = Group("Setting", sort_key=1)
FURTHER = Group("Training beyond the three steps", sort_key=2)
# Options that take an object of the user's own, as MODULE:OBJECT.
OWN = ("embedding", "tokens", "frequencies")
SPEC_FILE = Parameter(help="a TOML file with the setting; options override it", group=SETTING)


class Setting(Generic[S]):
    """The options given for a spec, None for every field that was not given. `takes` makes the subclasses."""

    kind: ClassVar[type[Spec]]
    spec: Path | None = None

    def given(self) -> dict[str, Any]:
        """The file's values, overridden by the options; an axis may still supply others."""
        values = {} if self.spec is None else read_toml(self.spec, self.kind)
        named = {name: getattr(self, name, None) for name in self.kind.model_fields}
        given = {**values, **{name: value for name, value in named.items() if value is not None}}
        if "vocab" not in given and is_place(given.get("tokens")):
            return given  # a function of V, which an axis or a search supplies
        return take_matrix(take_probabilities(given))

    def read(self, over: Mapping[str, Any] = MappingProxyType({})) -> S:
        """The spec; the values in `over` override those that were given."""
        try:
            return cast(S, self.kind.read({**self.given(), **over}))
        except SpecError as error:
            overridden = getattr(self, error.field, None) is not None
            if self.spec is None or overridden or error.field not in read_toml(self.spec, self.kind):
                raise
            raise SpecError(error.field, f"{error.message} (in {str(self.spec)!r})") from None


def takes(
    kind: type[Spec], *, without: Collection[str] = (), file: bool = False
) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Give a command the fields of a spec as options; its parameter `setting` holds those that were given.

    `file` adds `--spec`, a TOML file.
    """
    fields: list[tuple[str, Any, Any]] = [
        (name, Annotated[with_registered(kind.model_fields[name].annotation) | None, field_option(kind, name)], None)
        for name in kind.model_fields
        if name not in without
    ]
    if file:
        fields.append(("spec", Annotated[Path | None, SPEC_FILE], None))
    # Without this, dataclasses puts the class in the module `types`, and Cyclopts takes it for a built-in one.
    space = {"__module__": __name__, "kind": kind}
    options = dataclasses.make_dataclass(
        f"{kind.__name__}Options", fields, bases=(Setting,), namespace=space, kw_only=True
    )
    hint = Annotated[options | None, Parameter(name="*")]

    def give(command: Callable[..., int]) -> Callable[..., int]:
        @functools.wraps(command)
        def call(*words: Any, setting: Any = None, **named: Any) -> int:
            return command(setting or options(), *words, **named)

        signature = inspect.signature(command)
        parameters = {**signature.parameters}
        if twice := {name for name, *_ in fields} & set(parameters):
            raise TypeError(f"{command.__name__} has options of its own with a field's name: {sorted(twice)}")
        # After the words of a command that takes any, and an option like the others.
        own = parameters.pop("setting").replace(annotation=hint, default=None, kind=inspect.Parameter.KEYWORD_ONLY)
        words = [name for name, part in parameters.items() if part.kind is inspect.Parameter.VAR_POSITIONAL]
        parameters = {name: parameters[name] for name in words} | {"setting": own} | parameters
        call.__annotations__ = {**command.__annotations__, "setting": hint}
        call.__dict__["__signature__"] = signature.replace(parameters=list(parameters.values()))
        return call

    return give


def group_of(kind: type[Spec], name: str) -> Group:
    """The group of help that a field stands in: of a transformer the last one that began before it."""
    if kind is Transformer:
        names = list(kind.model_fields)
        began = [first for first in GROUPS if names.index(first) <= names.index(name)]
        return Group(GROUPS[began[-1]], sort_key=len(began))
    further = "then" in kind.model_fields and name in NO_FURTHER_TRAINING
    return FURTHER if further else SETTING


def field_option(kind: type[Spec], name: str) -> Parameter:
    """A field of a spec as an option."""
    field = kind.model_fields[name]

    def read(text: str) -> Any:
        if text.startswith("file:") or (name in OWN and (is_place(text) or text in free_names("laws", LAWS))):
            return text  # a matrix, probabilities or a law: read once the whole setting is known
        kind.check_value(name, text)
        annotated = cast(Any, Annotated)
        return TypeAdapter(annotated[field.annotation, *field.metadata]).validate_python(text)

    return option(
        read,
        (field.description or "").replace("{laws}", ", ".join([*LAWS, *free_names("laws", LAWS)])),
        group=group_of(kind, name),
        metavar="NAME" if field.annotation is str else None,
        show_default=None if field.default in (PydanticUndefined, None) else str(field.default),
    )
