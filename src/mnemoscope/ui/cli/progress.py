"""Progress on standard error: one display for every command, a live bar on a terminal, plain lines elsewhere.

In a notebook the bar is in the cell's output, and goes away when the work is done.
"""

import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from html import escape
from typing import Any, NamedTuple

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

from mnemoscope.engine.pace import duration, time_left
from mnemoscope.engine.record import AnyJob
from mnemoscope.experiments.forecast import counted
from mnemoscope.experiments.sweep import Tally
from mnemoscope.ui.cli.asking import say

SECONDS_BETWEEN_LINES, SECONDS_BETWEEN_DRAWINGS = 30.0, 0.5


class Standing(NamedTuple):
    """The state of the work: what it is, the share done, and a text."""

    what: str
    share: float
    text: str


class Watch:
    """Progress of work, reported by `advance` or by sweeps, which call the watch with their tally.

    A thread displays it, so it also moves during a long call. Work of less than a second shows nothing. `permit`
    is called with the first trials to run, before they start.
    """

    def __init__(
        self, what: str = "trials", total: float = 0.0, permit: Callable[[Sequence[AnyJob]], None] | None = None
    ) -> None:
        self.what, self.total, self.done = what, total, 0.0
        self.permit = permit
        self.tally: Tally | None = None
        self.began = time.monotonic()
        self.console = Console(stderr=True)
        self._crashed = 0
        self._waited: Tally | None = None
        self._over = threading.Event()
        self._display = threading.Thread(target=self._show, daemon=True)

    def __enter__(self) -> "Watch":
        self._display.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._over.set()
        self._display.join()

    def advance(self, amount: float) -> None:
        """Note that `amount` more of the total is done."""
        self.done += amount

    def __call__(self, tally: Tally, what: str = "trials") -> None:
        """Report the state of a sweep."""
        if self.permit is not None and tally.left:
            permit, self.permit = self.permit, None
            permit(tally.left)
        if tally is not self.tally:
            self._crashed = self.crashed
        self.tally, self.what = tally, what
        if tally.waiting and tally is not self._waited:
            self._waited = tally
            say(f"waiting for {counted(tally.waiting, 'trial')} that another process is computing")

    @property
    def crashed(self) -> int:
        """How many trials crashed, over all sweeps."""
        return self._crashed + (self.tally.failed if self.tally is not None else 0)

    def status(self) -> int:
        """The exit status: 1 if trials crashed, after a line that says so."""
        if self.crashed:
            say(f"{counted(self.crashed, 'trial')} crashed; they will run again next time")
        return 1 if self.crashed else 0

    def stands(self) -> Standing | None:
        """The state of the latest sweep, or the share of the total; None before there is either."""
        if self.tally is not None:
            share = self.tally.worked / self.tally.work if self.tally.work else 1.0
            return Standing(self.what, min(1.0, share), self.tally.said)
        if not self.total:
            return None
        share = min(1.0, self.done / self.total)
        left = time_left(self.done, self.total, time.monotonic() - self.began)
        more = "" if left is None else f", about {duration(left)} left"
        return Standing(self.what, share, f"{share:.0%} done{more}")

    def _show(self) -> None:
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
        # Standard output is for results: rich must not redirect it to standard error.
        with Progress(*columns, console=self.console, transient=True, redirect_stdout=False) as live:
            task = live.add_task("", total=1.0, text="")
            while True:
                now = self.stands()
                if now is not None:
                    live.update(task, description=now.what, completed=now.share, text=now.text)
                if self._over.wait(SECONDS_BETWEEN_DRAWINGS):
                    return


class NotebookWatch(Watch):
    """Progress in the output of a notebook's cell."""

    def _show(self) -> None:
        from IPython.display import HTML, display  # pyright: ignore[reportMissingImports]

        if self._over.wait(1.0):
            return
        shown: Any = display(HTML(""), display_id=True)
        while True:
            now = self.stands()
            if now is not None:
                shown.update(HTML(f"<progress value='{now.share:.3f}'></progress> {escape(f'{now.what}: {now.text}')}"))
            if self._over.wait(SECONDS_BETWEEN_DRAWINGS):
                break
        shown.update(HTML(""))


def in_notebook() -> bool:
    """Whether a notebook's kernel runs this process."""
    ipython = sys.modules.get("IPython")
    return ipython is not None and hasattr(ipython.get_ipython(), "kernel")


@contextmanager
def watch(show: bool | None, what: str = "trials", total: float = 0.0) -> Iterator[Watch | None]:
    """Show progress while this lasts: where somebody looks on, or wherever `show` is True."""
    kind = NotebookWatch if in_notebook() else Watch if show or sys.stderr.isatty() else None
    if kind is None:
        yield None
        return
    with kind(what, total) as watching:
        yield watching
