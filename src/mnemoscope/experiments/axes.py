"""Axes of a sweep, from words such as `dim=32:256:8` or `dim=32,48,64`."""

import math
from collections.abc import Sequence
from itertools import product
from typing import Any, NamedTuple

from mnemoscope.spec import Retrieval, Spec, SpecError
from mnemoscope.spec.validators import nearest

MOST_VALUES = 10_000
# The largest ratio of two ends that can be computed with.
WIDEST = 1e300
# More settings than anybody runs, and than fit comfortably in memory.
MOST_SETTINGS = 100_000


class Fields(NamedTuple):
    """What may be an axis: fields that are counted, that are names, and that are any number."""

    counted: tuple[str, ...]
    named: tuple[str, ...]
    sized: tuple[str, ...]


# The fields of a `Retrieval` along which a sweep makes sense.
FIELDS = Fields(
    ("vocab", "dim", "length", "samples", "width", "steps", "test_samples"),
    ("activation", "embedding", "trigger", "attention", "then"),
    ("eta", "gamma", "lr"),
)


class Axis(NamedTuple):
    """One field of the spec, and the values it takes."""

    field: str
    values: tuple[Any, ...]


def read_axis(option: str, text: str, of: Spec | None = None) -> Axis:
    """`field=low:high:count`, log-spaced, or `field=a,b,c`: values that the field can have.

    The fields are those of a `Retrieval`, or the axes of a setting with axes of its own.
    """
    if of is not None:
        axis = _read(option, text, _fields_of(of))
        for value in axis.values:
            try:
                of.vary(**{axis.field: value})
            except SpecError as error:
                raise SpecError(option, str(error)) from None
        return axis
    axis = _read(option, text, FIELDS)
    for value in axis.values:
        try:
            Retrieval.check_value(axis.field, value)
        except SpecError as error:
            prefix = "" if option == axis.field else f"{axis.field}: "
            raise SpecError(option, f"{prefix}{error.message}") from None
    return axis


def _fields_of(spec: Spec) -> Fields:
    counted = tuple(name for name, value in spec.axes.items() if isinstance(value, int) and not isinstance(value, bool))
    sized = tuple(name for name, value in spec.axes.items() if isinstance(value, float))
    return Fields(counted, tuple(name for name in spec.axes if name not in (*counted, *sized)), sized)


def _read(option: str, text: str, fields: Fields) -> Axis:
    field, _, values = text.partition("=")
    field = field.strip().replace("-", "_")
    known = [*fields.counted, *fields.named, *fields.sized]
    if field not in known:
        example = "dim" if "dim" in known else known[0]
        raise SpecError(option, f"expected an axis such as {example}=32:256:8, got {text!r}{nearest(field, known)}")
    if ":" in values:
        return Axis(field, _spaced(option, field, values, fields))
    listed = tuple(part.strip() for part in values.split(",") if part.strip())
    if not listed:
        raise SpecError(option, f"expected at least one value, got {text!r}")
    if field in fields.named:
        return Axis(field, tuple(dict.fromkeys(listed)))
    # Sorted, without duplicates.
    return Axis(field, tuple(sorted({_number(option, part) for part in listed})))


def _spaced(option: str, field: str, text: str, fields: Fields) -> tuple[float | int, ...]:
    parts = text.split(":")
    if field in fields.named or len(parts) != 3:
        raise SpecError(option, f"expected low:high:count, or values with commas, got {text!r}")
    low, high, count = (_number(option, part) for part in parts)
    if not 0 < low < high or not high / low < WIDEST:
        raise SpecError(option, f"expected 0 < low < high, got {text!r}")
    if not 2 <= count <= MOST_VALUES or count != int(count):
        raise SpecError(option, f"expected a count from 2 to {MOST_VALUES:,}, got {parts[2]!r}")
    step = math.log(high / low) / (int(count) - 1)
    values = [low * math.exp(step * k) for k in range(int(count))]
    if field in fields.counted:
        # Close values may round to the same number.
        return tuple(dict.fromkeys(round(value) for value in values))
    return tuple(values)


def _number(option: str, text: str) -> float:
    try:
        value = float(text.replace("_", ""))
    except ValueError:
        raise SpecError(option, f"expected a number, got {text!r}") from None
    if math.isnan(value):
        raise SpecError(option, f"expected a number, got {text!r}")
    return value


def grid(base: dict[str, Any] | Spec, axes: Sequence[Axis], option: str = "y") -> list[Any]:
    """A spec for every combination of the axes' values, the last axis fastest, on top of a base."""
    names = [axis.field for axis in axes]
    if len(set(names)) < len(names):
        raise SpecError(option, f"expected two different axes, got {names[0]!r} twice")
    values_of = base if isinstance(base, dict) else {}
    for name in names:  # an axis overrides an option, which must be valid nevertheless
        if name in values_of:
            Retrieval.check_value(name, values_of[name])
    count = math.prod(len(axis.values) for axis in axes)
    if count > MOST_SETTINGS:
        raise SpecError(option, f"expected axes of at most {MOST_SETTINGS:,} settings in all, got {count:,}")
    places = [dict(zip(names, values, strict=True)) for values in product(*(axis.values for axis in axes))]
    if isinstance(base, Spec):
        return [base.vary(**place) for place in places]
    return [Retrieval.read({**base, **place}) for place in places]
