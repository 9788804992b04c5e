"""The memory budget, and whether a setting fits in it, checked before anything is allocated."""

import math
from typing import NamedTuple

from mnemoscope.engine.device import Place, Precision
from mnemoscope.engine.free_memory import free_in_host, readable
from mnemoscope.engine.layout import Layout, Platform, choose_layout, needed_bytes
from mnemoscope.spec import Retrieval, SpecError

# The share of free memory to use, unless a budget is given.
SHARE = 0.5

# The fields that determine the size of each large part.
BLAME = {
    "embeddings": ("vocab", "dim"),
    "tables by pair of tokens": ("vocab",),
    "sums by label": ("vocab", "dim"),
    "logits of a block of tokens": ("vocab",),
    "value matrices": ("dim", "width"),
    "hidden units": ("width", "vocab"),
    "moments": ("dim", "width"),
    "one chunk": ("length", "vocab", "width"),
}


def free_bytes(place: Place) -> int | None:
    """Free bytes on the device, or None if unknown."""
    if place.platform != "cpu":
        stats = place.memory_stats()
        return stats["bytes_limit"] - stats["bytes_in_use"] if stats else None
    return free_in_host()


class MemoryBudget(NamedTuple):
    """The memory that a caller may use: what is free on the device, and the caller's budget, if any."""

    platform: Platform
    free: int | None
    budget: int | None

    @classmethod
    def of(cls, place: Place, budget: int | None = None) -> "MemoryBudget":
        """The budget on this device, with the memory that is free now."""
        return cls("cpu" if place.platform == "cpu" else "gpu", free_bytes(place), budget)

    @property
    def planned(self) -> int | None:
        """Bytes to plan with: the budget, or half of what is free.

        Half is rounded down to a power of two, so that small changes of free memory do not lead to
        another layout, and another program to compile.
        """
        if self.budget is not None or self.free is None:
            return self.budget
        return 2 ** int(math.log2(max(1, SHARE * self.free)))


def plan_memory(spec: Retrieval, precision: Precision, memory: MemoryBudget) -> Layout:
    """Choose the layout of this trial, and refuse a setting that cannot fit.

    With a budget the trial stays within it. Without one, it uses half of what is free, or more if it needs more.
    """
    layout = choose_layout(spec, precision, memory.platform, memory.planned)
    needed = needed_bytes(spec, layout, precision)
    total = sum(needed.values())
    for most_bytes, name in ((memory.free, "free"), (memory.budget, "of the memory budget")):
        if most_bytes is not None and total > most_bytes:
            part, most = max(needed.items(), key=lambda item: item[1])
            blame = max(BLAME[part], key=lambda field: getattr(spec, field))
            raise SpecError(
                blame,
                f"expected a size that fits in the {readable(most_bytes)} {name}, got "
                f"{getattr(spec, blame):,}, which needs {readable(total)} "
                f"({readable(most)} for {part})",
            )
    return layout
