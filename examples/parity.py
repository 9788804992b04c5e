"""A task of one's own, the parity of two marked bits, and a model of a few lines that learns it."""

from dataclasses import dataclass

import jax
import optax

import mnemoscope as mn


@dataclass(frozen=True)
class Parity:
    length: int = 6
    vocab: int = 4  # a bit, plus 2 where it is marked
    labels: int = 2

    def sample(self, words, index):
        bits = mn.below(words, index, [2] * self.length)
        first, step = mn.below(words.named("marks"), index, [self.length, self.length - 1])
        second = (first + 1 + step) % self.length
        return bits.at[first].add(2).at[second].add(2), bits[first] ^ bits[second]


@dataclass(frozen=True)
class Bag:
    width: int = 32

    def init(self, key, task):
        a, b = jax.random.split(key)
        return {"in": jax.random.normal(a, (task.vocab, self.width)), "out": jax.random.normal(b, (self.width, 2)) / 9}

    def logits(self, params, tokens):
        return jax.nn.relu(params["in"][tokens].mean(axis=1)) @ params["out"]


if __name__ == "__main__":
    how = {"optimiser": optax.adam(0.03), "training": {"batch": 128, "max_steps": 64}, "target": 0.9}
    search = {"ends": (4, 1024), "resolution": 0.25, "seeds": 2, "most_seeds": 2}
    print(mn.capacity(Bag(), Parity(), along="length", **how, **search).answer)
