"""Many settings at once, for a diagram that is redrawn while a slider moves.

`Cells` has the names of a `Retrieval`'s sizes and an array under each, so that a formula written
with them holds for one setting and for hundreds.
"""

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
class Cells:
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
    def around(cls, spec: Retrieval, **sizes: Any) -> "Cells":
        """The setting with other sizes, which may be arrays of any shapes that go together."""
        told = [np.asarray(sizes.get(name, getattr(spec, name)), float) for name in SIZES]
        same = [part.ravel() for part in np.broadcast_arrays(*told)]
        return cls(*same, spec.activation, spec.embedding, spec.trigger)

    def take(self, at: np.ndarray) -> "Cells":
        """Some of them, or some of them several times."""
        kept = {name: getattr(self, name)[at] for name in SIZES}
        return Cells(**kept, activation=self.activation, embedding=self.embedding,
                     trigger=self.trigger)  # fmt: skip

    @cached_property
    def hidden(self) -> bool:
        """Whether there is an MLP, in all of them or in none."""
        return bool(self.width.any())


Sizes = Retrieval | Cells
