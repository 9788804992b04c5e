"""A transformer with two heads, in Equinox, and a task with one fact to look up in every sequence."""

import equinox as eqx
import jax

import mnemoscope as mn


class Facts(eqx.Module):
    vocab: int = 8
    labels: int = 4
    length: int = 4

    def sample(self, words, index):
        tokens = mn.below(words, index, [self.vocab] * self.length)
        return tokens, mn.below(words.named("answers"), tokens[-1], [self.labels])[0]


class TwoHeads(eqx.Module):
    embed: eqx.nn.Embedding
    attend: eqx.nn.MultiheadAttention
    out: eqx.nn.Linear

    def __call__(self, tokens):
        x = jax.vmap(self.embed)(tokens)
        return self.out((x[-1:] + self.attend(x[-1:], x, x))[0])


def make(key, task, dim=16):
    a, b, c = jax.random.split(key, 3)
    attend, out = eqx.nn.MultiheadAttention(2, dim, key=b), eqx.nn.Linear(dim, task.labels, key=c)
    return TwoHeads(eqx.nn.Embedding(task.vocab, dim, key=a), attend, out)


two_heads = mn.from_equinox(make)

if __name__ == "__main__":
    print(mn.run(mn.Own(model=two_heads, task=Facts(), batch=64, max_steps=512), seeds=2).interval())
