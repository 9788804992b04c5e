"""A small model, a small task and a sweep of them, which tests hand to workers."""

from dataclasses import dataclass
from typing import Any

import jax

import mnemoscope as mn
from mnemoscope.tasks.own import Lookup


@dataclass(frozen=True)
class Bag:
    """The sum over positions of an embedding, and a linear layer."""

    dim: int = 8

    def init(self, key: Any, task: Any) -> dict[str, Any]:
        inner, outer = jax.random.split(key)
        E = jax.random.normal(inner, (task.length, task.vocab, self.dim)) / self.dim**0.5
        return {"E": E, "W": jax.random.normal(outer, (self.dim, task.labels)) / self.dim**0.5}

    def logits(self, params: Any, tokens: Any) -> Any:
        return sum(params["E"][at, tokens[:, at]] for at in range(tokens.shape[1])) @ params["W"]

    def attention(self, params: Any, tokens: Any) -> Any:
        return jax.nn.one_hot(tokens[:, 0] * 0, tokens.shape[1])


def spec(**more: Any) -> mn.Own:
    """A training of a second."""
    return mn.Own(**{"model": Bag(), "task": Lookup(), "batch": 32, "max_steps": 128, "test_samples": 128, **more})


def jobs(count: int) -> list[tuple[mn.Own, int]]:
    """Seeds of two sizes."""
    return [(spec(max_steps=64 if seed % 2 else 128), seed) for seed in range(count)]
