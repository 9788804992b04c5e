"""Tasks of the user's own, and how samples are drawn from them.

    vocab, labels, length                                   sizes: tokens, answers, and positions of a sequence
    sample(words, index) -> tokens, label[, position]       one sample, from the stream and its index alone

`words` is the same stream for every sample of a seed (`engine.words`); draws that belong to a sample take its `index`.
`position` says where attention should be.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int32, UInt32

from mnemoscope.engine.words import Words, below
from mnemoscope.spec import SpecError
from mnemoscope.spec.validators import one_line

Sample = Callable[[Words, Any], tuple[Any, ...]]


@runtime_checkable
class AnyTask(Protocol):
    """What a task needs; no base class."""

    @property
    def vocab(self) -> int:
        """Tokens are 0..vocab-1."""
        ...

    @property
    def labels(self) -> int:
        """Labels are 0..labels-1."""
        ...

    @property
    def length(self) -> int:
        """Tokens in a sequence."""
        ...

    def sample(self, words: Words, index: Any) -> tuple[Any, ...]:
        """Tokens and label of the sample of this index, and the position to attend to if there is one."""
        ...


@dataclass(frozen=True)
class Task:
    """A task from its parts, for those who need no class of their own."""

    vocab: int
    labels: int
    length: int
    sample: Sample

    @property
    def origin(self) -> Sample:
        """The function whose name it takes."""
        return self.sample


@dataclass(frozen=True)
class Lookup:
    """The label of each token is drawn once; the first token is asked for. What models are tried on."""

    vocab: int = 16
    labels: int = 4
    length: int = 4

    def sample(self, words: Words, index: Any) -> tuple[Any, Any, int]:
        """A sequence of uniform tokens, and the label of the first."""
        tokens = below(words, index, [self.vocab] * self.length)
        return tokens, below(words.named("label"), tokens[0], [self.labels])[0], 0


class Samples(NamedTuple):
    """A batch of samples; `position` is None for a task that has none."""

    tokens: Int32[Array, "B T"]
    label: Int32[Array, "B"]
    position: Int32[Array, "B"] | None


def draw_samples(place: str, task: AnyTask, words: Words, index: UInt32[Array, "B"]) -> Samples:
    """The samples of these indices, with their shapes checked; `place` is the task's name in a refusal."""

    def one(at: UInt32[Array, ""]) -> tuple[Any, ...]:
        return tuple(jnp.asarray(part) for part in task.sample(words, at))

    try:
        parts = jax.vmap(one)(index)
    except Exception as error:  # a user's function may raise anything
        raise SpecError("task", f"expected tokens and a label from {place}, got {one_line(error)}") from None
    shapes = [part.shape[1:] for part in parts]
    if shapes not in ([(task.length,), ()], [(task.length,), (), ()]):
        expected = f"{task.length} tokens, a label and perhaps a position"
        raise SpecError("task", f"expected {expected} from {place}, got shapes {', '.join(map(str, shapes)) or 'none'}")
    tokens, label, *position = (part.astype(jnp.int32) for part in parts)
    return Samples(tokens, label, position[0] if position else None)
