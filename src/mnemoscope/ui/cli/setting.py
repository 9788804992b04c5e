"""The options that describe a setting: the same names in every command, in Python and in TOML.

Values stay text until `Retrieval` reads them, so that a wrong one gets the same one-line answer
wherever it came from.
"""

import dataclasses
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_args

from cyclopts import Group, Parameter
from pydantic_core import PydanticUndefined

from mnemoscope.models.matrices import take_matrix
from mnemoscope.spec import Retrieval, Spec, SpecError, read_option, read_toml
from mnemoscope.spec.validators import Device, byte_count, one_of, whole

S = TypeVar("S", bound=Spec)

SETTING = Group("Setting", sort_key=1)
# What most commands take besides.
JSON = Parameter(negative="", help="print one JSON object instead of tables")
DEVICE = Parameter(help="auto, cpu or gpu")
FIRST_SEED = Parameter(help="the first seed")
MEMORY = Parameter(
    help="memory to keep within, such as 2GB; chunks shrink to it, and tables by pair of tokens "
    "that do not fit are replaced by a slower form [default: half of what is free]"
)
GOING_ON = Group("Going on after the three steps", sort_key=2)


def field_option(kind: type[Spec], name: str, group: Group = SETTING) -> Parameter:
    """A spec's field as an option: its description, its choices and its default."""
    field = kind.model_fields[name]
    text = field.description or ""
    names = get_args(field.annotation)
    if names and all(isinstance(one, str) for one in names):
        text += f" ({', '.join(names)})"
    if field.default not in (PydanticUndefined, None):
        text += f" [default: {field.default}]"
    return Parameter(help=text, group=group)


_option = partial(field_option, Retrieval)


@dataclass(kw_only=True)
class Setting:
    """What to simulate."""

    vocab: Annotated[str | None, _option("vocab")] = None
    dim: Annotated[str | None, _option("dim")] = None
    length: Annotated[str | None, _option("length")] = None
    samples: Annotated[str | None, _option("samples")] = None
    width: Annotated[str | None, _option("width")] = None
    activation: Annotated[str | None, _option("activation")] = None
    embedding: Annotated[str | None, _option("embedding")] = None
    trigger: Annotated[str | None, _option("trigger")] = None
    eta: Annotated[str | None, _option("eta")] = None
    gamma: Annotated[str | None, _option("gamma")] = None
    attention: Annotated[str | None, _option("attention")] = None
    test_samples: Annotated[str | None, _option("test_samples")] = None
    then: Annotated[str | None, _option("then", group=GOING_ON)] = None
    steps: Annotated[str | None, _option("steps", group=GOING_ON)] = None
    lr: Annotated[str | None, _option("lr", group=GOING_ON)] = None
    spec: Annotated[
        Path | None, Parameter(help="a TOML file with settings; options given beside it win", group=SETTING)
    ] = None

    def read(self) -> Retrieval:
        """The setting's spec: the file's values, with the options laid over them."""
        try:
            return Retrieval.read(self.given())
        except SpecError as error:
            if self.spec is None or getattr(self, error.field, None) is not None:
                raise
            if error.field not in read_toml(self.spec, Retrieval):
                raise
            raise SpecError(error.field, f"{error.message} (in {str(self.spec)!r})") from None

    def given(self) -> dict[str, Any]:
        """The values that were given, as they came; an axis may still supply others."""
        values: dict[str, Any] = {} if self.spec is None else read_toml(self.spec, Retrieval)
        for field in dataclasses.fields(self):
            if field.name != "spec" and getattr(self, field.name) is not None:
                values[field.name] = getattr(self, field.name)
        return take_matrix(values)


def read_given(kind: type[S], options: dict[str, Any]) -> S:
    """A spec of that kind from a command's options, those of them that are its fields and given."""
    return kind.read({k: v for k, v in options.items() if k in kind.model_fields and v is not None})


def read_whole(option: str, value: str, at_least: int, at_most: int) -> int:
    """A whole number, such as how many seeds."""
    return read_option(option, whole(at_least, at_most), value)


def read_seeds(seeds: str, seed: str) -> tuple[int, int]:
    """How many seeds, and the first; the last must be one that can be kept, too."""
    count, first = read_whole("seeds", seeds, 1, 10**6), read_whole("seed", seed, 0, 2**63 - 1)
    if first + count > 2**63:
        raise SpecError("seed", f"expected at most {2**63 - count:,} with {count:,} seeds, got {seed!r}")
    return count, first


def read_memory(value: str | None) -> int | None:
    """The memory budget, in bytes."""
    return None if value is None else read_option("memory", byte_count, value)


def read_device(value: str) -> Device:
    """The device option. Who names a device will compile: what was compiled before is found."""
    from mnemoscope.engine.device import disable_autotuning, keep_compiled_programs

    name = read_option("device", one_of(*get_args(Device)), value)
    disable_autotuning()
    keep_compiled_programs()
    return next(device for device in get_args(Device) if device == name)
