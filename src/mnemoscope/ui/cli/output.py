"""How every command prints: tables for people, one JSON object for programs, one-line errors.

Results go to standard output, everything else to standard error.
"""

import json
import sys
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeVar, runtime_checkable

from rich import box
from rich.console import Console, RenderableType
from rich.table import Table

from mnemoscope.spec.summary import number as number

BAR = "█"
PARTS = ("", *"▏▎▍▌▋▊▉")
# Longer error messages are cut in the middle: the value they quote may be a whole file.
MOST_LETTERS = 1000


@runtime_checkable
class Result(Protocol):
    """A result that converts to plain data."""

    def as_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        ...


R = TypeVar("R", bound=Result | dict[str, Any])


def complain(line: str) -> int:
    """Print a one-line error; return the exit status of a wrong request."""
    print(f"mnemoscope: {as_line(line)}", file=sys.stderr)
    return 2


def as_line(text: str) -> str:
    """Text on one line, with control characters escaped."""
    if len(text) > MOST_LETTERS:
        text = f"{text[: MOST_LETTERS // 2]} … {text[-MOST_LETTERS // 2 :]}"
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in text)


def print_json(value: dict[str, Any]) -> None:
    """Print exactly one JSON object on standard output."""
    print(json.dumps(value, allow_nan=False))


def bar(share: float, width: int = 12) -> str:
    """A share between 0 and 1 as a bar, in eighths of a character."""
    eighths = round(max(0.0, min(1.0, share)) * width * 8)
    return (BAR * (eighths // 8) + PARTS[eighths % 8]).ljust(width)


def search_status(status: str, what: str) -> str:
    """How a search for a `what` ended, in words."""
    return {
        "found": "the interval is as narrow as asked for",
        "below-range": f"the {what} lies below the range",
        "above-range": f"the {what} lies above the range",
        "unresolved": "the interval is wider than asked for; allow more --seeds",
    }[status]


def echo(*parts: RenderableType, style: str | None = None) -> None:
    """Print lines and tables, without rich's colours for numbers."""
    Console(highlight=False).print(*parts, sep="\n", style=style)


def table(
    columns: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    left: Collection[str],
    title: str | None = None,
    no_wrap: bool = False,
) -> Table:
    """A table of text; columns are right-aligned unless their names are in `left`."""
    grid = Table(box=box.SIMPLE, title=title, title_justify="left", caption_justify="left")
    for name in columns:
        grid.add_column(name, justify="left" if name in left else "right", no_wrap=no_wrap)
    for row in rows:
        grid.add_row(*row)
    return grid


def deliver(
    result: R,
    as_json: bool,
    show: Callable[[R], None],
    out: Path | None = None,
    draw: Callable[[R, Path], None] | None = None,
) -> int:
    """Print a result as JSON, or for people with `show`; return 0, the exit status.

    A command with `draw` also writes the figure into `out`, if that is given.
    """
    if draw is not None and out is not None:
        draw(result, out)
    if as_json:
        data = result if isinstance(result, dict) else result.as_dict()
        # A run says by `path` how its gradients were taken.
        file = "drawn" if "path" in data else "path"
        print_json(data if draw is None else {**data, file: out and str(out)})
        return 0
    show(result)
    if out is not None:
        echo(f"\ndrawn: {out}")
    return 0
