"""What every command prints with: tables for people, one JSON object for programs, one-line errors.

Results go to standard output. Everything else, progress above all, goes to standard error.
"""

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, runtime_checkable

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

BAR = "█"
PARTS = " ▏▎▍▌▋▊▉"
SECONDS_BETWEEN_LINES = 10.0


@runtime_checkable
class Made(Protocol):
    """A result that can be told as plain data."""

    def as_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        ...


def complain(line: str) -> int:
    """Say in one line what is wrong with the request; the exit status for that."""
    print(f"mnemoscope: {line}", file=sys.stderr)
    return 2


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


class Display:
    """A live bar on standard error that is taken away when its work ends."""

    def __init__(self) -> None:
        self.began = self.spoke = time.monotonic()
        self.console = Console(stderr=True)
        self.live: Progress | None = None

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.live is not None:
            self.live.stop()


class Watch(Display):
    """Progress on standard error: a live bar on a terminal, a plain line now and then elsewhere.

    Nothing is shown for work that is over within a second.
    """

    def __init__(self, what: str, total: float) -> None:
        super().__init__()
        self.what, self.total, self.done = what, total, 0.0

    def __enter__(self) -> "Watch":
        return self

    def advance(self, amount: float, label: str = "") -> None:
        """Note that `amount` more of the total is done."""
        self.done += amount
        now = time.monotonic()
        if now - self.began < 1.0:
            return
        if self.console.is_terminal:
            if self.live is None:
                columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn())
                self.live = Progress(
                    *columns, TimeRemainingColumn(), console=self.console, transient=True
                )
                self.live.add_task(self.what, total=self.total)
                self.live.start()
            task = self.live.task_ids[0]
            self.live.update(task, completed=self.done, description=f"{self.what} {label}".strip())
        elif now - self.spoke >= SECONDS_BETWEEN_LINES:
            self.spoke = now
            share = self.done / self.total
            print(f"{self.what} {label}: {share:.0%} done", file=sys.stderr, flush=True)


def deliver(
    made: Made, out: Path | None, as_json: bool, draw: Callable[[Any, Path], None],
    show: Callable[[Any], None],
) -> None:  # fmt: skip
    """A result as a picture where one was asked for, and as one JSON object or for people."""
    if out is not None:
        draw(made, out)
    if as_json:
        print_json({**made.as_dict(), "path": None if out is None else str(out)})
        return
    show(made)
    if out is not None:
        Console(highlight=False).print(f"\ndrawn: {out}")
