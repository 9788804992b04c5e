"""Stages of a training curve, found by a rule: where the loss rests at a level."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

# The loss rests at a level while its smoothed value is this close.
NEAR = 0.05
# The end is reached when the loss stays below this.
LEARNED = 0.1


@dataclass(frozen=True)
class Stage:
    """The first and last step of a run at a level; None if the loss never rests there."""

    name: str
    level: float
    first: int | None
    last: int | None

    @property
    def steps(self) -> int:
        """How long it lasts."""
        return 0 if self.first is None or self.last is None else self.last - self.first + 1


def find_stages(loss: np.ndarray, names: Sequence[str], levels: Sequence[float], smooth: int = 1) -> list[Stage]:
    """For each level, the longest run of steps near it; for level 0, all steps since it was learned.

    A stochastic loss is smoothed by a running median of `smooth` steps first.
    """
    smoothed = _median(np.asarray(loss, float), smooth)
    stages = []
    for name, level in zip(names, levels, strict=True):
        if level > 0:
            stages.append(Stage(name, level, *_longest(np.abs(smoothed - level) <= NEAR)))
            continue
        over = np.flatnonzero(~(smoothed < LEARNED))
        first = int(over[-1]) + 1 if len(over) else 0
        learned = first < len(smoothed)
        stages.append(Stage(name, level, first if learned else None, len(smoothed) - 1 if learned else None))
    return stages


def _median(values: np.ndarray, width: int) -> np.ndarray:
    if width <= 1:
        return values
    half = width // 2
    padded = np.pad(values, half, mode="edge")
    return np.median(np.lib.stride_tricks.sliding_window_view(padded, 2 * half + 1), axis=1)


def _longest(flags: np.ndarray) -> tuple[int | None, int | None]:
    """First and last of the longest run of True."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], flags.astype(int), [0]])))
    starts, ends = edges[::2], edges[1::2]
    if not len(starts):
        return None, None
    best = int(np.argmax(ends - starts))
    return int(starts[best]), int(ends[best]) - 1
