"""The most items that the best matrix holds, for given items and labels: certified, not trained towards.

Items come in a fixed order, each with a label of its own. A matrix that holds some of them holds fewer, since every
item that is left out takes its condition and its label away. So each draw has one limit, found by bisection.
"""

import math
from collections.abc import Callable

import numpy as np

from mnemoscope.engine.device import find_device, numerics
from mnemoscope.spec import Memory
from mnemoscope.training.memory import MEMORY, draw_streams


def draw_items(spec: Memory, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """A seed's items and labels, a row each, as every trial of a memory with this seed has them."""
    place = find_device("cpu")
    program = MEMORY.program(spec, "cpu")
    with numerics("float32", place):
        pairs, _ = MEMORY.start(program, draw_streams([(spec, seed)]))
        return np.asarray(pairs.E[0], float)[: spec.items], np.asarray(pairs.U[0], float)[: spec.items]


def largest_held(holds: Callable[[int], bool | None], guess: float, most: int, resolution: float) -> float | None:
    """The limit of what holds, to within `resolution`; None if the most do, or where nothing is certified.

    The search begins with a step of two resolutions about the guess, and doubles it until the limit is between.
    """
    low, high, step = None, None, 2 * resolution
    at = guess
    while low is None or high is None:
        items = min(most, max(1, round(at)))
        held = True if items <= 1 else holds(items)
        if held is None or (held and items == most):
            return None
        low, high = (items, high) if held else (low, items)
        at = items * math.exp(step) + 1 if held else items * math.exp(-step) - 1
        step *= 2
    while high > (1 + resolution) * low and high - low > 1:
        middle = round(math.sqrt(low * high))
        middle = min(high - 1, max(low + 1, middle))
        held = holds(middle)
        if held is None:
            return None
        low, high = (middle, high) if held else (low, middle)
    # Between the last number that is held and the first that is not.
    return math.sqrt(low * high)
