"""What to run: frozen, validated settings, one file per kind."""

from mnemoscope.spec.base import Spec, SpecError, read_option, read_toml
from mnemoscope.spec.facts import Facts, Mixing
from mnemoscope.spec.flow import Flow
from mnemoscope.spec.memory import Memory, Method
from mnemoscope.spec.names import Activation, Embedding
from mnemoscope.spec.noisy import Noisy
from mnemoscope.spec.own import Own
from mnemoscope.spec.retrieval import LETTERS, Attention, Retrieval, Then, Trigger
from mnemoscope.spec.transformer import Transformer

# Kinds by name; `engine.kinds.register` adds to them.
KINDS: dict[str, type[Spec]] = {kind.kind: kind for kind in (Retrieval, Facts, Memory, Flow, Own, Noisy, Transformer)}

__all__ = [
    "KINDS",
    "LETTERS",
    "Activation",
    "Attention",
    "Embedding",
    "Facts",
    "Flow",
    "Memory",
    "Method",
    "Mixing",
    "Noisy",
    "Own",
    "Retrieval",
    "Spec",
    "SpecError",
    "Then",
    "Transformer",
    "Trigger",
    "read_option",
    "read_toml",
]
