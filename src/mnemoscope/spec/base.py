"""What all specs share: frozen, validated, with canonical JSON and a stable id."""

import hashlib
import json
import stat
import tomllib
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, TypeVar, cast

from pydantic import BaseModel, TypeAdapter, ValidationError

from mnemoscope.spec.validators import nearest

# A settings file has a few lines; anything longer, perhaps endless, is something else.
MOST_BYTES = 100_000

S = TypeVar("S", bound="Spec")
T = TypeVar("T")


class SpecError(ValueError):
    """A setting that cannot be run: the field, and one line that says what was expected."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(f"{field}: {message}" if field else message)
        self.field = field
        self.message = message

    def __reduce__(self) -> tuple[type["SpecError"], tuple[str, str]]:
        """Pickle both arguments, so that the error survives the way from another process."""
        return type(self), (self.field, self.message)


class Spec(BaseModel, frozen=True, extra="forbid"):
    """One setting of one kind of experiment.

    Defaults never change: the id leaves out values that equal their default, so that a field added
    later does not rename earlier experiments.
    """

    kind: ClassVar[str] = ""
    # A trial's history: the model after each of a few steps, or a curve of measurements.
    history: ClassVar[Literal["steps", "curve"]] = "curve"
    # Whether a trial can be run by itself, in double precision too, and reports its own progress.
    alone: ClassVar[bool] = False

    if not TYPE_CHECKING:  # type checkers see pydantic's, with a keyword for every field

        def __init__(self, **values: Any) -> None:
            """Validate named values; the first mistake becomes a `SpecError`."""
            _check_names(values, type(self).model_fields)
            try:
                super().__init__(**values)
            except ValidationError as error:
                raise _as_spec_error(error) from None

    @property
    def path(self) -> Literal["exact", "autodiff"]:
        """How gradients are taken: by formulas of this setting's own, or by automatic differentiation."""
        return "autodiff"

    @property
    def hashed(self) -> bool:
        """Whether its identity is known, so that trials of it may be kept."""
        return True

    @classmethod
    def read(cls: type[S], values: dict[str, Any]) -> S:
        """A spec from values still to be validated, such as text."""
        return cls(**values)

    @classmethod
    def check_value(cls, name: str, value: Any) -> None:
        """Refuse a value that a field cannot have, whatever the others are."""
        try:
            _field_reader(cls, name).validate_python(value)
        except ValidationError as error:
            raise SpecError(name, _as_spec_error(error).message) from None

    def __repr_args__(self) -> Iterator[tuple[str, Any]]:
        """What a repr shows: the values that differ from their defaults."""
        yield from self.canonical_values().items()

    def canonical_values(self) -> dict[str, Any]:
        """The values that differ from their defaults."""
        return self.model_dump(exclude_defaults=True)

    def told_values(self) -> dict[str, Any]:
        """The same as a title tells them."""
        return self.canonical_values()

    def canonical(self) -> str:
        """Canonical JSON: sorted keys, no spaces, no defaults."""
        return json.dumps({"kind": self.kind, **self.canonical_values()}, sort_keys=True, separators=(",", ":"))

    @cached_property
    def id(self) -> str:
        """The first sixteen hexadecimal digits of the canonical JSON's SHA-256."""
        return hashlib.sha256(self.canonical().encode()).hexdigest()[:16]

    @property
    def axes(self) -> dict[str, Any]:
        """What searches and diagrams may vary, with its values here."""
        return {}

    def rises_along(self, axis: str) -> bool:
        """Whether accuracy grows along an axis."""
        return True

    def tokens_seen(self, steps: float | None) -> int:
        """The tokens of a trial that took this many steps, where steps have tokens."""
        return 0

    def vary(self: S, **changes: Any) -> S:
        """This setting at other places on its axes."""
        return self.replace(**changes)

    def allows(self, axis: str, value: int) -> bool:
        """Whether there is such a setting."""
        try:
            self.vary(**{axis: value})
        except SpecError:
            return False
        return True

    def most_allowed(self, axis: str, low: int, high: int) -> int:
        """The largest value up to `high` that there is a setting for, if there is one for `low`."""
        if self.allows(axis, high):
            return high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self.allows(axis, middle) else (low, middle)
        return low

    def value_of(self, axis: str) -> Any:
        """The value on an axis."""
        return getattr(self, axis)

    def replace(self: S, **changes: Any) -> S:
        """This setting with some values changed, validated again."""
        return type(self).read({**self.model_dump(), **changes})


@lru_cache(maxsize=64)
def _field_reader(kind: type[Spec], name: str) -> TypeAdapter:
    field, annotated = kind.model_fields[name], cast(Any, Annotated)
    return TypeAdapter(annotated[field.annotation, *field.metadata])


def _check_names(values: dict[str, Any], known: Mapping[str, Any], where: str = "") -> None:
    for name in values:
        if name not in known:
            raise SpecError(where and "spec", f"expected known settings, got {name!r}{where}{nearest(name, known)}")


def _as_spec_error(error: ValidationError) -> SpecError:
    """The first mistake, in one line."""
    first = error.errors()[0]
    cause = first.get("ctx", {}).get("error")
    if isinstance(cause, SpecError):
        return SpecError(cause.field, cause.message)
    field = str(first["loc"][0]) if first["loc"] else ""
    if first["type"] == "missing":
        return SpecError(field, "expected a value, got none")
    return SpecError(field, first["msg"].removeprefix("Value error, "))


def read_option(option: str, read: Callable[[Any], T], value: Any) -> T:
    """Validate an option that is not part of a spec; an error names the option."""
    try:
        return read(value)
    except ValueError as error:
        raise SpecError(option, str(error)) from None


def read_toml(path: Path, kind: type[Spec]) -> dict[str, Any]:
    """The values in a TOML file, with known names but still to be validated."""
    shown = repr(str(path))
    try:
        if not stat.S_ISREG(path.stat().st_mode):  # a pipe would never answer
            raise OSError(0, "not a regular file")
        with path.open("rb") as file:
            text = file.read(MOST_BYTES + 1)
        if len(text) > MOST_BYTES:
            raise ValueError(f"longer than {MOST_BYTES:,} bytes")
        table = tomllib.loads(text.decode())
    except OSError as error:
        raise SpecError("spec", f"expected a readable TOML file, got {shown} ({error.strerror})") from None
    except (ValueError, RecursionError) as error:  # not UTF-8, not TOML, or beyond Python's limits
        raise SpecError("spec", f"expected TOML, got {shown}: {str(error).splitlines()[0]}") from None
    values = {name.replace("-", "_"): value for name, value in table.items()}
    _check_names(values, kind.model_fields, f" in {shown}")
    return values
