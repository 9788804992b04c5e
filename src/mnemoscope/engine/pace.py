"""Durations in words, and the time left at the current pace."""

import math

# For each unit: the duration up to which it is used, and its length, both in seconds.
UNITS = {"second": (90.0, 1.0), "minute": (90 * 60.0, 60.0), "hour": (48 * 3600.0, 3600.0)}


def duration(seconds: float) -> str:
    """A duration to two digits: `40 seconds`, `12 minutes`, `3.5 hours`, `5 days`."""
    fitting = ((name, size) for name, (until, size) in UNITS.items() if seconds < until)
    name, size = next(fitting, ("day", 86400.0))
    count = float(f"{seconds / size:.2g}")
    if name == "second":
        count = float(max(1, math.ceil(count)))
    return f"{count:,.10g} {name}" + "s" * (count != 1)


def time_left(done: float, total: float, seconds: float) -> float | None:
    """Seconds left at the current pace; None while the pace is unknown."""
    if done <= 0 or seconds < 1.0:
        return None
    return max(0.0, total - done) / done * seconds
