"""Validators of spec fields. Each error says what was expected and what came.

Values come from Python, a TOML file or the command line, so text such as `4096`, `1e5` or `16_384`
counts as a whole number, too.
"""

import contextlib
import difflib
import math
import re
from collections.abc import Callable, Iterable
from typing import Any, Literal

# Where to compute: `auto` means a GPU if there is one.
Device = Literal["auto", "cpu", "gpu"]
# What may cross a target: accuracy by sequence, attention accuracy, accuracy by fact, or the share of tokens that the
# matched filter names from the first gradient alone.
Measure = Literal["accuracy", "attention_accuracy", "accuracy_by_fact", "first_gradient"]


# How alike two words are that may be meant for each other: `gpy` and `gpu`, but not `tokens` and `then`.
ALIKE = 0.65


def nearest(word: str, known: Iterable[str]) -> str:
    """`; did you mean 'x'?` for the closest known word, or nothing if none is close."""
    close = difflib.get_close_matches(word, list(known), n=1, cutoff=ALIKE)
    return f"; did you mean '{close[0]}'?" if close else ""


def shown(value: Any) -> str:
    """A value on one short line, even if it is an array or a whole file."""
    text = " ".join(repr(value).split())
    return text if len(text) <= 300 else f"{text[:297]}..."


def one_line(error: BaseException) -> str:
    """What an error of the user's own code says, on one short line."""
    first = str(error).strip().splitlines()[:1]
    text = ": ".join([type(error).__name__, *first])
    return text if len(text) <= 200 else f"{text[:197]}..."


def _number(value: Any) -> float | None:
    """`value` as a number, finite or not; None if it is none."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        return float(value)
    except (ValueError, OverflowError):
        return None


def _whole_number(value: Any) -> int | None:
    """`value` as a whole number; None if it is none.

    Digits are read exactly: a float, which `1e5` must go through, would round above 2**53.
    """
    if isinstance(value, str) and len(value) < 100:
        with contextlib.suppress(ValueError):
            return int(value)
    number = _number(value)
    if number is None or not math.isfinite(number) or number != int(number):
        return None
    return value if isinstance(value, int) else int(number)


def whole(at_least: int, at_most: int | None = None) -> Callable[[Any], int]:
    """A validator for whole numbers in [at_least, at_most]."""
    expected = f"a whole number of at least {at_least}"
    if at_most is not None:
        expected += f" and at most {at_most:,}"

    def read(value: Any) -> int:
        exact = _whole_number(value)
        if exact is None or exact < at_least or (at_most is not None and exact > at_most):
            raise ValueError(f"expected {expected}, got {shown(value)}")
        return exact

    return read


def between(low: float, high: float, or_else: str = "") -> Callable[[Any], float]:
    """A validator for numbers in [low, high]; `or_else` names what else is accepted."""

    def read(value: Any) -> float:
        number = _number(value)
        if number is None or not low <= number <= high:
            raise ValueError(f"expected {or_else}a number from {low:g} to {high:g}, got {shown(value)}")
        return number

    return read


def step_size(low: float, high: float) -> Callable[[Any], float | Literal["limit"]]:
    """A validator for step sizes: `limit`, or a number in [low, high]."""
    read_number = between(low, high, "'limit' or ")
    return lambda value: "limit" if isinstance(value, str) and value == "limit" else read_number(value)


UNITS = {"": 1, "b": 1}
for _power, _letter in enumerate("kmgt", start=1):
    UNITS |= {f"{_letter}b": 1000**_power, f"{_letter}ib": 1024**_power}


def byte_count(value: str) -> int:
    """A number of bytes: `2GB`, `512 MiB` or `4e9`."""
    text = value.strip()
    digits = text.rstrip("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
    number, unit = _number(digits.strip()), UNITS.get(text[len(digits) :].lower())
    if number is None or unit is None or not 1 <= number * unit < 2**62:
        raise ValueError(f"expected a size such as 2GB, 512MiB or 4e9, got {shown(value)}")
    return int(number * unit)


# A user's embedding matrix, named after its content by `matrices.keep`.
FROM_FILE = re.compile(r"file:[0-9a-f]{16}")
# An object of the user's own: "module:object" as a person writes it, and with its identity, as settings hold it.
PLACE = re.compile(r"[^\W\d][\w.]*:[^\W\d][\w.]*")
OBJECT = re.compile(r"[^\s:@]+:[^\s:@]+@([0-9a-f]{16}|unhashed-[0-9a-f]+\.\d+)")
# Words before a colon that are laws of tokens or files, not modules.
RESERVED = ("file", "zipf")


def is_place(value: Any) -> bool:
    """Whether text says where an object stands, as "module:object"."""
    return isinstance(value, str) and PLACE.fullmatch(value) is not None and value.partition(":")[0] not in RESERVED


def is_kept_name(value: Any) -> bool:
    """Whether text is the name of an object, as settings hold it."""
    return isinstance(value, str) and OBJECT.fullmatch(value) is not None


def is_name(value: Any) -> bool:
    """Whether a value is the name of a law or of a stored matrix, rather than a file, an array or an object."""
    if isinstance(value, str):
        return not (value.startswith("file:") or is_place(value)) or FROM_FILE.fullmatch(value) is not None
    if callable(value):
        return False
    pair = isinstance(value, tuple) and len(value) == 2
    return not all(hasattr(part, "__array__") for part in (value if pair else (value,)))


def law_or_file(names: Iterable[str]) -> Callable[[Any], str]:
    """A validator for the name of a law, of a stored matrix, or of an object of the user's own."""
    law = one_of_names(names)

    def read(value: Any) -> str:
        kept = isinstance(value, str) and FROM_FILE.fullmatch(value) is not None
        return value if kept or is_kept_name(value) else law(value)

    return read


def law_or_object(names: Iterable[str]) -> Callable[[Any], str]:
    """The same where no matrix is taken."""
    law = one_of_names(names)
    return lambda value: value if is_kept_name(value) else law(value)


def one_of(*names: str) -> Callable[[Any], str]:
    """A validator for names from a fixed list."""
    return one_of_names(names)


def one_of_names(names: Iterable[str]) -> Callable[[Any], str]:
    """The same for a list that may grow. A near miss gets a suggestion."""

    def read(value: Any) -> str:
        if isinstance(value, str) and value in names:
            return value
        raise ValueError(f"expected one of {', '.join(names)}, got {shown(value)}{nearest(str(value), names)}")

    return read
