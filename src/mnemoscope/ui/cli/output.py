"""What every command prints with: tables for people, one JSON object for programs, one-line errors.

Results go to standard output. Everything else, progress above all, goes to standard error.
"""

import json
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Protocol, TypeVar, runtime_checkable

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

from mnemoscope.engine.pace import duration, time_left

BAR = "█"
PARTS = " ▏▎▍▌▋▊▉"
SECONDS_BETWEEN_LINES, SECONDS_BETWEEN_DRAWINGS = 30.0, 0.5
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
    return "".join(one if one.isprintable() else repr(one)[1:-1] for one in text)


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


D = TypeVar("D", bound="Display")


class Standing(NamedTuple):
    """How work stands: of what, which share is done, and the rest in words."""

    what: str
    share: float
    text: str


class Display(ABC):
    """Progress on standard error: a live bar on a terminal, a plain line now and then elsewhere.

    A thread of its own looks how the work stands, so that something is said while a long call is
    under way, too. Nothing is shown for work that is over within a second.
    """

    def __init__(self) -> None:
        self.began = time.monotonic()
        self.console = Console(stderr=True)
        self._over = threading.Event()
        self._teller = threading.Thread(target=self._tell, daemon=True)

    def __enter__(self: D) -> D:
        self._teller.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._teller.join()

    @abstractmethod
    def stands(self) -> Standing | None:
        """How the work stands; None before there is anything to say."""

    def _tell(self) -> None:
        if self.console.is_terminal:
            self._draw()
            return
        while not self._over.wait(SECONDS_BETWEEN_LINES):
            now = self.stands()
            if now is not None:
                print(f"{now.what}: {now.text}", file=sys.stderr, flush=True)

    def _draw(self) -> None:
        if self._over.wait(1.0):
            return
        columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[text]}"))
        # Standard output is for results, which no bar may take along to standard error.
        with Progress(*columns, console=self.console, transient=True, redirect_stdout=False) as live:
            task = live.add_task("", total=1.0, text="")
            while True:
                now = self.stands()
                if now is not None:
                    live.update(task, description=now.what, completed=now.share, text=now.text)
                if self._over.wait(SECONDS_BETWEEN_DRAWINGS):
                    return


class Watch(Display):
    """Progress of work whose total is known, in any unit."""

    def __init__(self, what: str, total: float) -> None:
        super().__init__()
        self.what, self.total, self.done = what, total, 0.0

    def advance(self, amount: float) -> None:
        """Note that `amount` more of the total is done."""
        self.done += amount

    def stands(self) -> Standing:
        """The share that is done, and how long the rest takes at this pace."""
        share = min(1.0, self.done / self.total) if self.total else 1.0
        left = time_left(self.done, self.total, time.monotonic() - self.began)
        more = "" if left is None else f", about {duration(left)} left"
        return Standing(self.what, share, f"{share:.0%} done{more}")


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
