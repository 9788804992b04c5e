"""Ctrl-C, answered between two calls of compiled programs.

Python raises KeyboardInterrupt wherever it stands, inside JAX's own code too, which does not always
survive it: now and then the process dies of a segmentation fault, and what was finished is not
told. So while trials run, an interrupt is only noted, and raised where nothing is under way.
"""

import os
import signal
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

_asked = False


class Interrupted(KeyboardInterrupt):
    """An interrupt, and what was finished before it."""

    def __init__(self, finished: Iterable[Any] = ()) -> None:
        super().__init__()
        self.finished = list(finished)


@contextmanager
def interrupts_held() -> Iterator[None]:
    """Within, an interrupt waits for `stop_if_asked`. A second one does not wait.

    Where somebody else hears interrupts, a cluster's or a server's, they are left to it; so are
    threads, which never get one.
    """
    global _asked
    alone = threading.current_thread() is threading.main_thread()
    if not alone or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    _asked = False  # what was noted before, and not answered, came to its end another way
    signal.signal(signal.SIGINT, _note)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def stop_if_asked(finished: Iterable[Any] = ()) -> None:
    """Raise the interrupt that was noted, if there was one."""
    global _asked
    if _asked and threading.current_thread() is threading.main_thread():
        _asked = False
        raise Interrupted(finished)


@contextmanager
def handing_on(found: Mapping[Any, Any]) -> Iterator[None]:
    """An interrupt that comes by takes along what was found until then."""
    try:
        yield
    except Interrupted as stop:
        stop.finished += found.values()
        raise


def _note(number: int, frame: FrameType | None) -> None:
    global _asked
    _asked = not _asked
    if not _asked:  # the second one
        signal.default_int_handler(number, frame)
    with suppress(OSError):  # whoever read it may have been stopped as well
        # Not `print`, which may be what was interrupted.
        os.write(2, b"stopping; Ctrl-C again stops at once\n")
