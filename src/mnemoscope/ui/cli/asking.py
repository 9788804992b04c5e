"""Announce long work, and ask for --yes before very long work."""

import sys

from mnemoscope.experiments.forecast import Forecast
from mnemoscope.spec import SpecError

# Longer work needs --yes.
MOST_SECONDS = 3600.0
# Shorter work is not announced.
LEAST_SECONDS = 10.0


def say(text: str) -> None:
    """Print a line on standard error."""
    print(text, file=sys.stderr, flush=True)


def ask_first(forecast: Forecast, platform: str, agreed: bool, *, far: bool = False, aloud: bool = True) -> None:
    """Announce how long the work takes; refuse work that may take more than an hour without --yes.

    `far` marks work for other machines, which are assumed to be as fast as this one. Without `aloud` nothing is
    announced: a later call announces the whole.
    """
    kind = "CPU" if platform == "cpu" else "GPU"
    where = f"in one process like this one ({kind})" if far else f"on this machine ({kind})"
    if forecast.most > MOST_SECONDS and not agreed:
        raise SpecError("yes", f"expected --yes for {forecast.what}, {forecast.said} {where}, got none")
    if aloud and forecast.most >= LEAST_SECONDS:
        say(f"{forecast.said} {where}: {forecast.what}")
