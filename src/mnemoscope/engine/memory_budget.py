"""What memory there is, and whether a setting fits in it, said before anything is allocated."""

import math
from typing import NamedTuple

from mnemoscope.engine.device import Place, Precision
from mnemoscope.engine.free_memory import free_in_host, readable
from mnemoscope.engine.layout import Layout, Platform, choose_layout, needed_bytes
from mnemoscope.spec import Retrieval, SpecError

# The share of free memory that is planned with, unless a budget is given.
SHARE = 0.5

# For every large part, the settings that its size comes from.
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
    """Memory that is free on the device, or None where that cannot be told."""
    if place.platform != "cpu":
        stats = place.memory_stats()
        return stats["bytes_limit"] - stats["bytes_in_use"] if stats else None
    return free_in_host()


class MemoryBudget(NamedTuple):
    """The memory of a device that a caller may use: what is free, and its own budget, if any."""

    platform: Platform
    free: int | None
    budget: int | None

    @classmethod
    def of(cls, place: Place, budget: int | None = None) -> "MemoryBudget":
        """The memory of this device now."""
        return cls("cpu" if place.platform == "cpu" else "gpu", free_bytes(place), budget)

    @property
    def planned(self) -> int | None:
        """Bytes to plan with: the budget, or half of what is free.

        Half to the next power of two below, so that a little more or less of free memory does not
        make another layout, and another program to compile.
        """
        if self.budget is not None or self.free is None:
            return self.budget
        return 2 ** int(math.log2(max(1, SHARE * self.free)))


def plan_memory(spec: Retrieval, precision: Precision, memory: MemoryBudget) -> Layout:
    """The layout for this trial; a setting that cannot fit is refused.

    With a budget the trial keeps within it. Without, it takes half of what is free, or more where
    only more will do.
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
