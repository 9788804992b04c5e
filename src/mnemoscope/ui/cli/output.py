"""What every command prints with: tables for people, one JSON object for programs, one-line errors.

Results go to standard output, everything else to standard error.
"""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from rich.console import Console

BAR = "█"
PARTS = " ▏▎▍▌▋▊▉"
# A longer complaint is cut in its middle: what came may be a whole file's text.
MOST_LETTERS = 1000


@runtime_checkable
class Made(Protocol):
    """A result that can be told as plain data."""

    def as_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        ...


def complain(line: str) -> int:
    """Say in one line what is wrong with the request; the exit status for that."""
    print(f"mnemoscope: {as_line(line)}", file=sys.stderr)
    return 2


def as_line(text: str) -> str:
    """Text in one line that a terminal shows as it is: letters that it would obey are spelt out."""
    if len(text) > MOST_LETTERS:
        text = f"{text[: MOST_LETTERS // 2]} … {text[-MOST_LETTERS // 2 :]}"
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in text)


def print_json(value: dict[str, Any]) -> None:
    """Exactly one JSON object on standard output."""
    print(json.dumps(value, allow_nan=False))


def bar(share: float, width: int = 12) -> str:
    """A share of one as a bar, in eighths of a character."""
    eighths = round(max(0.0, min(1.0, share)) * width * 8)
    drawn = BAR * (eighths // 8) + (PARTS[eighths % 8] if eighths % 8 else "")
    return drawn.ljust(width)


def number(value: float | None, digits: int = 3) -> str:
    """A number for a table cell, or a dash."""
    return "–" if value is None else f"{value:.{digits}f}"


def deliver(
    made: Made, out: Path | None, as_json: bool, draw: Callable[[Any, Path], None], show: Callable[[Any], None]
) -> None:
    """A result as a picture where one was asked for, and as one JSON object or for people."""
    if out is not None:
        draw(made, out)
    if as_json:
        print_json({**made.as_dict(), "path": None if out is None else str(out)})
        return
    show(made)
    if out is not None:
        Console(highlight=False).print(f"\ndrawn: {out}")
