"""What to run: frozen, validated settings, one kind a file."""

from mnemoscope.spec.base import Spec, SpecError, read_toml
from mnemoscope.spec.facts import Facts, Mixing
from mnemoscope.spec.retrieval import (
    LETTERS,
    Activation,
    Attention,
    Embedding,
    Retrieval,
    Then,
    Trigger,
)

__all__ = [
    "LETTERS",
    "Activation",
    "Attention",
    "Embedding",
    "Facts",
    "Mixing",
    "Retrieval",
    "Spec",
    "SpecError",
    "Then",
    "Trigger",
    "read_toml",
]
