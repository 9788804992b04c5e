"""A small module of PyTorch measured end to end: one training, and how many facts it holds."""

from dataclasses import dataclass

import torch

import mnemoscope as mn


@dataclass(frozen=True)
class Facts:
    facts: int = 8
    labels: int = 4
    length: int = 1
    vocab = property(lambda self: self.facts)

    def sample(self, words, index):
        tokens = mn.below(words, index, [self.facts])
        return tokens, mn.below(words.named("answers"), tokens[0], [self.labels])[0]


def make(task, dim=4):
    return torch.nn.Sequential(
        torch.nn.Embedding(task.vocab, dim), torch.nn.Flatten(), torch.nn.Linear(dim, task.labels)
    )


model = mn.from_torch(make, frozen=("0.weight",))

if __name__ == "__main__":
    training = dict(batch=64, max_steps=256, lr=0.05, test_samples=256)
    spec = mn.Own(model=model, task=Facts(), **training)
    print(f"accuracy of 8 facts: {mn.run(spec, seeds=4, store=None).interval()}")
    found = mn.capacity(
        model, Facts(), along="facts", target=0.95, training=training, seeds=4, most_seeds=4, resolution=0.2, store=None
    )
    print(f"capacity: {found.estimate:.1f} facts, 95 % interval {found.low:.1f} to {found.high:.1f}")
