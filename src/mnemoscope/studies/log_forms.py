r"""Which law do limits follow: proportional up to logarithms, or another power?

    size = c N (ln N)^k                                                                      (L1)
    N    = c size^p                                                                          (L2)

Both have two constants, so Akaike's criterion compares only how well they fit: n ln(mean square of the residuals in
ln size, or ln N over p). (L1) is linear in ln ln N. With k held at 0, 1, 1.5 and 2 it has one constant, and the four
are compared in the same way.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from mnemoscope.experiments.estimate.power_law import DECISIVE
from mnemoscope.studies.base import Verdict, within
from mnemoscope.studies.scaling_fit import columns_of, fit_size

LOGS = (0.0, 1.0, 1.5, 2.0)
# With fewer sizes, two laws with two constants differ by chance.
FEWEST = 5


def log_name(k: float) -> str:
    """N (ln N)^k in words."""
    return "N" if k == 0 else "N ln N" if k == 1 else f"N (ln N)^{k:g}"


def power_of(points: Sequence[dict[str, Any]], k: float) -> dict[str, float] | None:
    """The power of size in N (ln N)^k with its interval; None if there are too few points.

    `constant` is size over N (ln N)^k, the power held at one: its geometric mean and range.
    """
    kept = [point for point in points if point["stored"] and point["stored"] > 1.5]
    if len(kept) < FEWEST or len({point["size"] for point in kept}) < 3:
        return None
    size, stored, error = columns_of(kept)
    log = np.log(stored)
    # The error of ln N grows by dln(N (ln N)^k)/dln N.
    return fit_size(size, log + k * np.log(log), error * (1 + k / log))


def compare_logs(points: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
    """Compare the forms; None if there are too few points.

    `logs` is the fitted k of (L1), `best` the k of the four with the least criterion, and `lead` its lead over the
    next. `over_power` is the lead of (L1) over (L2).
    """
    kept = [point for point in points if point["stored"] and point["stored"] > 1.5]
    if len(kept) < FEWEST or len({point["size"] for point in kept}) < FEWEST:
        return None
    size, stored, _ = columns_of(kept)
    x, n = np.log(size), np.log(stored)
    held = {k: float(np.var(x - n - k * np.log(n))) for k in LOGS}
    logs, with_logs = _line(np.log(n), x - n)
    power, of_power = _line(x, n)
    count = len(kept)
    ranked = sorted(held, key=lambda k: held[k])
    return {
        "best": ranked[0],
        "lead": count * _log_ratio(held[ranked[1]], held[ranked[0]]),
        "logs": logs,
        "free_power": power,
        # Residuals of (L2) in ln N, over p, are residuals in ln size, as those of (L1) are.
        "over_power": count * _log_ratio(of_power / power**2, with_logs),
        "scatter": {log_name(k): math.sqrt(value) for k, value in held.items()},
    }


def judge_logs(
    fit: dict[str, float] | None, forms: dict[str, Any] | None, least: float, most: float, *, ahead: bool
) -> Verdict:
    """Judge by the power in the best form, which must lie in the box.

    Refuted if it lies outside, or if (L2) is decisively ahead of (L1). With `ahead`, support requires that (L1) is
    decisively ahead of (L2); without, that it is not decisively behind.
    """
    if fit is None or forms is None:
        return "inconclusive"
    box = within(fit["low"], fit["high"], least, most)
    if box == "refuted" or forms["over_power"] <= -DECISIVE:
        return "refuted"
    return "inconclusive" if ahead and forms["over_power"] < DECISIVE else box


def say_logs(fit: dict[str, float] | None, forms: dict[str, Any] | None, size: str) -> str:
    """The fit and the comparison in one line."""
    if fit is None or forms is None:
        return "too few limits were found"
    ahead = forms["over_power"]
    behind = "ahead of" if ahead >= 0 else "behind"
    return (
        f"{log_name(forms['best'])} fits best of four (by {forms['lead']:.1f}), grows as "
        f"({size})^{fit['power']:.3f} [{fit['low']:.3f}, {fit['high']:.3f}] over "
        f"{fit['points']} sizes, {size} over it {fit['constant']:.3f}; k = {forms['logs']:.2f}; "
        f"logarithms are {abs(ahead):.1f} {behind} N as ({size})^{forms['free_power']:.3f}"
    )


def _line(x: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """The slope of a straight line, and the mean square about it."""
    slope, level = np.polyfit(x, y, 1)
    return float(slope), float(np.mean((y - level - slope * x) ** 2))


def _log_ratio(above: float, below: float) -> float:
    return math.log((above + 1e-12) / (below + 1e-12))
