"""How long tests wait: for what they wait for, and never by the clock.

A machine with much else to do may take ten times as long as an idle one, and no test may fail of
that. What never comes is a hang: it ends the test after SECONDS, many times what anything takes.
How fast something is gets judged only where MNEMOSCOPE_IDLE=1 says that nothing else runs.
"""

import os
import time
from collections.abc import Callable
from typing import TypeVar

SECONDS = 900.0
MILLISECONDS = 1000 * SECONDS
IDLE = bool(os.environ.get("MNEMOSCOPE_IDLE"))

T = TypeVar("T")


def wait_until(ready: Callable[[], T | None], what: str, pause: Callable[[], object] = lambda: time.sleep(0.02)) -> T:
    """What `ready` says once it says something; `pause` lets time go by between two looks."""
    until = time.monotonic() + SECONDS
    while not (found := ready()):
        assert time.monotonic() < until, f"waited in vain: {what}"
        pause()
    return found
