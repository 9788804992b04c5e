"""Whether a training that did not get there was still on its way when its steps were over.

Then more steps might have been enough, and where it ended is no limit of what can be stored.
"""

from collections.abc import Iterable

import numpy as np

from mnemoscope.record import Outcome


def still_improving(outcome: Outcome, target: float) -> bool | None:
    """Whether, at its pace over the last half, it would reach the target in as many steps again.

    None where it was not the step limit that ended it, or where too little of its curve was kept.
    """
    accuracy = np.array([check["accuracy"] for check in outcome.curve])
    if outcome.status != "unreached" or len(accuracy) < 16:
        return None
    eighth = len(accuracy) // 8
    end = float(accuracy[-eighth:].mean())
    middle = float(accuracy[len(accuracy) // 2 : len(accuracy) // 2 + eighth].mean())
    pace = (end - middle) / (3 / 8)  # from the middle of one eighth to that of the other
    return pace > 0 and end + pace >= target


def share_improving(trials: Iterable[tuple[int, Outcome]], target: float) -> float | None:
    """Of the seeds' first failures, the share that was still improving; None where none failed.

    A seed's first failure, at the fewest items, is what its limit rests on.
    """
    first: dict[int, tuple[int, bool]] = {}
    for items, outcome in trials:
        improving = still_improving(outcome, target)
        if improving is None:
            continue
        if outcome.seed not in first or items < first[outcome.seed][0]:
            first[outcome.seed] = (items, improving)
    if not first:
        return None
    return sum(improving for _, improving in first.values()) / len(first)
