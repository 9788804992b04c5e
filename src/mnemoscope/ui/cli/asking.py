"""What is said before long work, and the question whether to go ahead with it."""

import sys

from mnemoscope.experiments.forecast import Forecast
from mnemoscope.spec import SpecError
from mnemoscope.ui.cli.options import YES as YES

# Longer work is begun only after a --yes.
MOST_SECONDS = 3600.0
# Shorter work is not worth a word.
LEAST_SECONDS = 10.0


def say(text: str) -> None:
    """A line for people, beside the output."""
    print(text, file=sys.stderr, flush=True)


def ask_first(forecast: Forecast, platform: str, agreed: bool, *, far: bool = False, aloud: bool = True) -> None:
    """Say how long the work takes; refuse what may take more than an hour and was not agreed to.

    `far` is work for other machines, of which no more is known than of this one. Where it is not
    `aloud`, more work comes with this, which will say its own.
    """
    kind = "CPU" if platform == "cpu" else "GPU"
    where = f"in one process like this one ({kind})" if far else f"on this machine ({kind})"
    if forecast.most > MOST_SECONDS and not agreed:
        raise SpecError("yes", f"expected --yes for {forecast.what}, {forecast.said} {where}, got none")
    if aloud and forecast.most >= LEAST_SECONDS:
        say(f"{forecast.said} {where}: {forecast.what}")
