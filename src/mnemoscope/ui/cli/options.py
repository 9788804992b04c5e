"""The options that are not part of a spec. Each is declared once, with its type, its parser and its help.

A parser raises `ValueError` with one line, "expected ..., got ..."; `main` puts the option's name before it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypedDict, Unpack, get_args

from cyclopts import Group, Parameter

from mnemoscope.spec import SpecError
from mnemoscope.spec.validators import Device, Measure, between, byte_count, one_of, whole


class Shown(TypedDict, total=False):
    """How an option is named and shown."""

    name: str | tuple[str, ...]
    n_tokens: int
    metavar: str | None
    group: Group
    show_default: str | None


def option(read: Callable[[str], Any], help: str, **shown: Unpack[Shown]) -> Parameter:
    """An option with one value, parsed by `read`."""
    return Parameter(converter=lambda _, tokens: read(tokens[0].value), negative="", help=help, **shown)


def count(at_least: int, at_most: int, help: str) -> Parameter:
    """A whole number, written as 4096, 1e5 or 16_384."""
    return option(whole(at_least, at_most), help)


def number(low: float, high: float, help: str) -> Parameter:
    """A number from `low` to `high`."""
    return option(between(low, high), help)


def choice(names: Any, help: str) -> Parameter:
    """One of the names of a `Literal`."""
    return option(one_of(*get_args(names)), help)


def flag(help: str, **shown: Unpack[Shown]) -> Parameter:
    """An option without a value."""
    return Parameter(**{"negative": "", "show_default": False, "help": help, **shown})


def read_ends(text: str) -> tuple[int, int]:
    """Parse LOW:HIGH, two whole numbers."""
    low, mark, high = text.partition(":")
    if not mark:
        raise ValueError(f"expected LOW:HIGH, got {text!r}")
    ends = [whole(1, 2**31 - 1)(end) for end in (low, high)]
    if not ends[0] < ends[1]:
        raise ValueError(f"expected LOW below HIGH, got {text!r}")
    return ends[0], ends[1]


def range_option(help: str) -> Parameter:
    """`--range LOW:HIGH`."""
    return option(read_ends, help, name="--range", n_tokens=1, metavar="LOW:HIGH")


def read_seeds(seeds: int, first: int) -> range:
    """The seeds to run; the last one must fit into the store's integers."""
    if first + seeds > 2**63:
        raise SpecError("seed", f"expected at most {2**63 - seeds:,} with {seeds:,} seeds, got {str(first)!r}")
    return range(first, first + seeds)


YES = flag("confirm work that may take more than an hour, or the removal of trials")
STORE = Parameter(help="the store's file, or `none` to keep nothing [default: in the user's data directory]")

Json = Annotated[bool, flag("print one JSON object instead of tables")]
Yes = Annotated[bool, YES]
StoreFile = Annotated[Path | None, STORE]
DeviceName = Annotated[Device, choice(Device, "where to compute; auto takes a GPU where JAX sees one")]
ClusterName = Annotated[
    str | None,
    Parameter(
        metavar="PLACE",
        help="run batches elsewhere: local:4 (processes), tcp://HOST:PORT (a Dask scheduler) or slurm:4 (jobs) "
        "[default: this process]",
    ),
]
Budget = Annotated[
    int | None,
    option(
        byte_count,
        "memory to stay within, such as 2GB; chunks shrink to fit, and tables over pairs of tokens that do not fit "
        "are replaced by a slower form [default: half of what is free]",
        metavar="SIZE",
    ),
]
Seeds = Annotated[int, count(1, 10**6, "how many seeds to run")]
FirstSeed = Annotated[int, count(0, 2**62, "the first seed")]
AnySeed = Annotated[int, count(0, 2**63 - 1, "the first seed")]
Target = Annotated[float, number(0.001, 0.999, "the accuracy to cross")]
MostSeeds = Annotated[int, count(3, 10**4, "the most seeds at one point")]
Ends = tuple[int, int] | None
Tolerance = Annotated[float, number(0.001, 10, "stop when the 95 % interval is within +- this share")]
MeasureName = Annotated[
    Measure,
    choice(
        Measure,
        "what crosses the target; accuracy_by_fact counts each token once, and first_gradient is the share of tokens "
        "that the matched filter names from the first gradient alone",
    ),
]
Picture = Annotated[Path | None, Parameter(help="also draw it into this file (.png, .svg or .pdf)")]


@dataclass(frozen=True)
class Work:
    """Where a command runs its trials and where it keeps them."""

    device: DeviceName = "auto"
    cluster: ClusterName = None
    store: StoreFile = None
    yes: Yes = False


WorkOptions = Annotated[Work, Parameter(name="*")]
DEFAULT_WORK = Work()
