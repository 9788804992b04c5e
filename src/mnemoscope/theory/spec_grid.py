"""Many settings at once, for a diagram that is redrawn while a slider moves.

`SpecGrid` has the sizes of a `Retrieval` as arrays. A formula that takes `Sizes` works for one
setting and for hundreds.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, runtime_checkable

import numpy as np

from mnemoscope.spec import Retrieval

# A formula returns a float for one setting and an array for many. A type checker cannot tell which;
# the tests check every call.
if TYPE_CHECKING:
    Number = Any
else:
    Number = float | np.ndarray
SIZES = ("vocab", "dim", "length", "samples", "width")


@runtime_checkable
class Sizes(Protocol):
    """What a formula needs of a setting: numbers in a `Retrieval`, arrays in a `SpecGrid`."""

    kind: ClassVar[str]

    @property
    def vocab(self) -> Number: ...
    @property
    def dim(self) -> Number: ...
    @property
    def length(self) -> Number: ...
    @property
    def samples(self) -> Number: ...
    @property
    def width(self) -> Number: ...
    @property
    def hidden(self) -> bool: ...
    @property
    def activation(self) -> str: ...
    @property
    def embedding(self) -> str: ...
    @property
    def trigger(self) -> str: ...
    @property
    def attention(self) -> str: ...


@dataclass(frozen=True)
class SpecGrid:
    """Settings that differ only in their sizes, which are arrays of one shape."""

    kind: ClassVar[str] = Retrieval.kind

    vocab: np.ndarray
    dim: np.ndarray
    length: np.ndarray
    samples: np.ndarray
    width: np.ndarray
    activation: str = "relu"
    embedding: str = "gaussian"
    trigger: str = "keys"
    attention: str = "learned"

    @classmethod
    def of(cls, values: Mapping[str, Any], **sizes: Any) -> "SpecGrid":
        """A setting with some sizes replaced by arrays, broadcast against each other."""
        merged = {**values, **sizes}
        parts = np.broadcast_arrays(*(np.asarray(merged[name], float) for name in SIZES))
        V, d, L, N, m = (part.ravel() for part in parts)
        return cls(V, d, L, N, m, merged["activation"], merged["embedding"], merged["trigger"])

    def take(self, at: np.ndarray) -> "SpecGrid":
        """The settings at these indices, which may repeat."""
        return replace(self, **{name: getattr(self, name)[at] for name in SIZES})

    @property
    def hidden(self) -> bool:
        """Whether there is an MLP: all settings have one, or none has."""
        return bool(self.width.any())
