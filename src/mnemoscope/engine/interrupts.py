"""Ctrl-C, handled between two calls of compiled programs.

Python may raise KeyboardInterrupt inside JAX, which is not safe: a segmentation fault may kill the process and lose
finished trials. So while trials run, an interrupt is only recorded, and raised between two calls.
"""

import math
import os
import signal
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

# One press may arrive twice: from the terminal, and from the program that started this one.
SAME_PRESS_SECONDS = 1.0

_held = False
_asked = False
_pressed = -math.inf


class Interrupted(KeyboardInterrupt):
    """An interrupt, and what was finished before it."""

    def __init__(self, finished: Iterable[Any] = ()) -> None:
        super().__init__()
        self.finished = list(finished)


@contextmanager
def interrupts_held() -> Iterator[None]:
    """Hold an interrupt in this block until `stop_if_asked`; a second one is raised at once.

    Where another handler is installed, as in a cluster or a server, this does nothing; nor in
    threads, which never receive an interrupt.
    """
    global _held, _asked
    in_main_thread = threading.current_thread() is threading.main_thread()
    if not in_main_thread or signal.getsignal(signal.SIGINT) not in (signal.default_int_handler, _hear):
        yield
        return
    _asked = False  # an earlier interrupt that was never raised no longer matters
    signal.signal(signal.SIGINT, _hear)
    _held = True
    try:
        yield
    finally:
        _held = False
        if not _asked:  # otherwise the same press may still arrive a second time
            signal.signal(signal.SIGINT, signal.default_int_handler)


def stop_if_asked(finished: Iterable[Any] = ()) -> None:
    """Raise an interrupt that was recorded."""
    global _asked
    if _asked and threading.current_thread() is threading.main_thread():
        _asked = False
        raise Interrupted(finished)


@contextmanager
def keeping_partial(results: Mapping[Any, Any]) -> Iterator[None]:
    """Attach the results so far to an interrupt that passes through."""
    try:
        yield
    except Interrupted as stop:
        stop.finished += results.values()
        raise


def _hear(number: int, frame: FrameType | None) -> None:
    global _asked, _pressed
    now = time.monotonic()
    if now - _pressed < SAME_PRESS_SECONDS:
        return
    _pressed = now
    if not _held or _asked:
        _asked = False
        signal.default_int_handler(number, frame)
    _asked = True
    with suppress(OSError):  # the reader of stderr may have been stopped as well
        # Not `print`, which may be what was interrupted.
        os.write(2, b"stopping; Ctrl-C again stops at once\n")
