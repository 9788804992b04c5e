"""Calls in this process that would wait for ever, ended when patience ends."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from patience import SECONDS


@contextmanager
def no_hang(what: object) -> Iterator[None]:
    """Fail instead of waiting for ever; in the main thread, where signals arrive."""

    def tell(*_: Any) -> None:
        raise TimeoutError(f"no end after {SECONDS:g} s: {what}")

    before = signal.signal(signal.SIGALRM, tell)
    signal.alarm(round(SECONDS))
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
