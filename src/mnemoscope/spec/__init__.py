"""What to run: frozen, validated settings, one kind a file."""

from mnemoscope.spec.base import Spec, SpecError, read_toml
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
    "Retrieval",
    "Spec",
    "SpecError",
    "Then",
    "Trigger",
    "read_toml",
]
