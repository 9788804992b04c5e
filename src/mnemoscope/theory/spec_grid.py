"""Many settings at once, for a diagram that is redrawn while a slider moves.

`SpecGrid` has the names of a `Retrieval`'s sizes and an array under each, so that a formula written
with them holds for one setting and for hundreds.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from mnemoscope.spec import Retrieval

# What a formula gives: a float for one setting, an array for many. Which of them it is, a type
# checker cannot follow; the tests check every call.
if TYPE_CHECKING:
    Number = Any
else:
    Number = float | np.ndarray
SIZES = ("vocab", "dim", "length", "samples", "width")


@dataclass(frozen=True)
class SpecGrid:
    """Settings that differ in their sizes, which are arrays of one shape."""

    vocab: np.ndarray
    dim: np.ndarray
    length: np.ndarray
    samples: np.ndarray
    width: np.ndarray
    activation: str = "relu"
    embedding: str = "gaussian"
    trigger: str = "keys"

    @classmethod
    def of(cls, values: Mapping[str, Any], **sizes: Any) -> "SpecGrid":
        """A setting with other sizes, which may be arrays of any shapes that go together."""
        told = {**values, **sizes}
        parts = np.broadcast_arrays(*(np.asarray(told[name], float) for name in SIZES))
        V, d, L, N, m = (part.ravel() for part in parts)
        return cls(V, d, L, N, m, told["activation"], told["embedding"], told["trigger"])

    def take(self, at: np.ndarray) -> "SpecGrid":
        """Some of them, or some of them several times."""
        kept = {name: getattr(self, name)[at] for name in SIZES}
        return SpecGrid(**kept, activation=self.activation, embedding=self.embedding, trigger=self.trigger)

    @cached_property
    def hidden(self) -> bool:
        """Whether there is an MLP, in all of them or in none."""
        return bool(self.width.any())


Sizes = Retrieval | SpecGrid
