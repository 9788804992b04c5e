"""Bits stored against bits available, where weights are rounded to b bits.

    stored      facts that the rounded weights name, times log2 of the answers that each may have
    available   b for each weight

A fact that is named by chance counts, too: the figure is for memories that name far more than chance would.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from mnemoscope.engine.record import UNROUNDED, Trial


@dataclass(frozen=True)
class StoredBits:
    """What weights of so many bits store; the accuracies are means over seeds, where one setting was run."""

    bits: int
    weights: int
    named: float | None
    answers: float | None
    before: float | None = None
    after: float | None = None

    @property
    def stored(self) -> float | None:
        """The bits of the facts that are named."""
        if self.named is None or self.answers is None:
            return None
        return self.named * math.log2(max(1.0, self.answers))

    @property
    def available(self) -> int:
        """The bits of the weights."""
        return self.bits * self.weights

    def as_dict(self) -> dict[str, float | None]:
        """Plain data, ready for JSON."""
        share = None if self.stored is None else self.stored / self.available
        numbers = {"bits_stored": self.stored, "bits_available": self.available, "share": share}
        lost = {} if self.before is None else {"accuracy_before": self.before, "accuracy_after": self.after}
        return {"bits": self.bits, **numbers, **lost}

    def words(self, where: str = "the weights") -> str:
        """One line for people."""
        stored = "nothing known to be" if self.stored is None else f"{self.stored:,.0f}"
        text = f"{stored} stored, {self.available:,} available in {where}"
        return text if self.before is None else f"{text}; {self._lost()}"

    def _lost(self) -> str:
        return f"accuracy {self.before:.3f} before rounding, {self.after:.3f} after"


def before_and_after(trials: Iterable[Trial]) -> tuple[float | None, float | None]:
    """The mean accuracies of trainings before and after their weights were rounded."""
    pairs = [(trial.metrics.get(UNROUNDED), trial.accuracy) for trial in trials]
    known = [(before, after) for before, after in pairs if before is not None and after is not None]
    if not known:
        return None, None
    return math.fsum(before for before, _ in known) / len(known), math.fsum(after for _, after in known) / len(known)
