"""The transformer of `mnemoscope facts`, written again in Equinox: how many facts each of the two holds."""

import time

import equinox as eqx
import jax
import jax.numpy as jnp

import mnemoscope as mn
from mnemoscope.experiments.facts import facts_capacity_many

DIM, HEADS, HEAD, WIDTH, LENGTH, BATCH, STEPS, RATE = 16, 2, 8, 32, 8, 128, 2048, 0.01


class Facts(eqx.Module):
    subjects: int = 4
    length: int = LENGTH
    vocab = property(lambda self: 4 * self.subjects + 1)  # subjects, relations, noise, the end
    labels = property(lambda self: self.subjects * min(8, self.subjects))

    def sample(self, words, index):
        S, D = self.subjects, min(8, self.subjects)
        s, r, *noise = mn.below(words, index, [S, S, *[2 * S] * (self.length - 3)])
        answer = mn.below(words.named("answers"), s * S + r, [D])[0]
        return jnp.stack([s, S + r, *(2 * S + token for token in noise), 4 * S + 0 * s]), r * D + answer


class Transformer(eqx.Module):
    E: jax.Array
    U: jax.Array
    QKVO: jax.Array
    inner: eqx.nn.Linear
    outer: jax.Array

    def __call__(self, tokens):
        x = self.E[tokens]
        q, k, v = jnp.einsum("ihkd,td->ihtk", self.QKVO[:3], x)
        a = jax.nn.softmax(jnp.einsum("hk,htk->ht", q[:, -1], k) / HEAD**0.5)
        x = jnp.einsum("ht,htk,hkd->d", a, v, self.QKVO[3])
        return self.U @ (x + jax.nn.relu(self.inner(x)) @ self.outer)


def make(key, task):
    keys = jax.random.split(key, 5)
    E, U = (jax.random.normal(keys[i], (n, DIM)) / DIM**0.5 for i, n in enumerate((task.vocab, task.labels)))
    scale = jnp.array([1 / HEAD, 1 / HEAD, 1 / HEAD, 1 / DIM])[:, None, None, None] ** 0.5
    QKVO = scale * jax.random.normal(keys[2], (4, HEADS, HEAD, DIM))
    inner, outer = eqx.nn.Linear(DIM, WIDTH, key=keys[3]), jax.random.normal(keys[4], (WIDTH, DIM)) / (3 * WIDTH) ** 0.5
    return Transformer(E, U, QKVO, inner, outer)


transformer = mn.from_equinox(make, frozen=("E", "U"))


def compare(seeds=8, target=0.99, store=None):
    """Each one's capacity in subjects, S = R, and the seconds that it took."""
    how = dict(most_seeds=seeds, seeds=seeds, resolution=0.05, store=store, progress=False)
    training = dict(batch=BATCH, max_steps=STEPS, lr=RATE)
    built_in = mn.Facts(subjects=2, relations=2, answers=2, dim=DIM, heads=HEADS, head_dim=HEAD, width=WIDTH,
                        length=LENGTH, target=target, batch=BATCH, max_steps=STEPS)  # fmt: skip
    began = time.perf_counter()
    (ours,) = facts_capacity_many([built_in], "equal", rates=[RATE], **how)
    between = time.perf_counter()
    own = mn.capacity(transformer, Facts(), along="subjects", target=target, training=training, **how)
    return ours.limits, own.limits, between - began, time.perf_counter() - between


if __name__ == "__main__":
    ours, own, first, second = compare()
    for name, limits, seconds in (("built in", ours, first), ("in Equinox", own, second)):
        ends = f"{limits.low:.1f} to {limits.high:.1f}"
        print(f"{name}: {limits.estimate:.1f} subjects and relations, 95 % interval {ends}, {seconds:.0f} s")
