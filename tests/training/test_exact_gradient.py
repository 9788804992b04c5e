"""Who knows the first gradient exactly is not held by the Gaussian surrogate (D1).

`pytest tests/training/test_exact_gradient.py -n 0 -s` prints the figures of docs/theory/bound.md.
"""

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
import pytest
from lattice import Lattice, exact_gradient

from mnemoscope import Retrieval
from mnemoscope.engine import random
from mnemoscope.experiments.decoders import rms_entry, see
from mnemoscope.tasks.retrieval import sample
from mnemoscope.theory.bound import allowed_share, counted_nats, noisy_nats, surrogate_nats, written_nats

SPEC = Retrieval(vocab=8, dim=2, length=2, samples=60)
DRAWS = SPEC.samples * SPEC.length
EMBEDDINGS, PERMUTATIONS = 2, 6


class Trial(NamedTuple):
    """Embeddings with their lattice, the counts of a training set, and the answer."""

    U: np.ndarray
    Z: np.ndarray
    lattice: Lattice
    counts: np.ndarray
    permutation: np.ndarray
    gradient: list[Fraction]


def count(tokens: np.ndarray, labels: np.ndarray, vocab: int) -> np.ndarray:
    """M[y, v]: how often token v stood in a sequence of label y."""
    M = np.zeros((vocab, vocab), int)
    np.add.at(M, (np.repeat(labels, tokens.shape[1]), tokens.ravel()), 1)
    return M


def make_trials() -> Iterator[Trial]:
    V, d, L, N = SPEC.vocab, SPEC.dim, SPEC.length, SPEC.samples
    for seed in range(EMBEDDINGS):
        random = np.random.default_rng(seed)
        U, Z = (random.normal(size=(V, d)) / math.sqrt(d) for _ in range(2))
        lattice = Lattice(U, Z)
        for _ in range(PERMUTATIONS):
            permutation, tokens = random.permutation(V), random.integers(V, size=(N, L))
            position = random.integers(L, size=N)
            M = count(tokens, permutation[tokens[np.arange(N), position]], V)
            yield Trial(U, Z, lattice, M, permutation, exact_gradient(M, U, Z, DRAWS))


@pytest.fixture(scope="module")
def trials() -> list[Trial]:
    return list(make_trials())


def test_the_gradient_is_a_sum_over_counts():
    """What the decoder is given is what the simulator computes."""
    seen, streams = see(SPEC, 5), random.streams(SPEC, 5)
    batch = sample(
        streams["train"], jnp.arange(SPEC.samples, dtype=jnp.uint32), jnp.asarray(seen.permutation), SPEC.length
    )
    M = count(np.asarray(batch.tokens), np.asarray(batch.label), SPEC.vocab)
    G = np.array([float(entry) for entry in exact_gradient(M, seen.U, seen.Z, DRAWS)])
    assert np.allclose(G, seen.gradient.ravel(), atol=1e-6)


def test_exact_counts_name_every_label_where_the_surrogate_allows_two_thirds(trials: list[Trial]):
    for trial in trials:
        counts, exact = trial.lattice.read_counts(trial.gradient, DRAWS)
        assert exact
        assert np.array_equal(counts, trial.counts - trial.counts[-1])
        assert np.array_equal(trial.lattice.read_labels(trial.gradient, DRAWS), trial.permutation)
    allowed = allowed_share(SPEC.vocab, surrogate_nats(SPEC))
    by_token = share_by_token(surrogate_nats(SPEC))
    print(
        f"\nnamed every label in {len(trials)} trials, the surrogate allows {allowed:.3f}, "
        f"{by_token:.3f} with the first part of (D2) alone"
    )
    assert allowed == pytest.approx(0.647, abs=0.001)
    assert by_token == pytest.approx(0.794, abs=0.001)
    # What is proved of the exact gradient allows it.
    assert allowed_share(SPEC.vocab, counted_nats(SPEC)) == 1


def share_by_token(nats: float) -> float:
    """Fano's inequality token by token, the weaker part of (D2), solved for the share."""
    V = SPEC.vocab
    shares = np.linspace(1 / V, 1 - 1e-9, 100_001)
    coin = -shares * np.log(shares) - (1 - shares) * np.log1p(-shares)
    needed = math.lgamma(V + 1) - V * (coin + (1 - shares) * math.log(V - 1))
    return float(shares[needed <= nats].max())


def shares_through(
    trials: list[Trial], seen: Callable[[Trial, float], tuple[list[Fraction], float]]
) -> tuple[float, float]:
    """The mean share that the decoder names of what it sees, and its standard error."""
    shares = []
    for trial in trials:
        size = rms_entry(SPEC, trial.U, trial.Z, np.zeros(SPEC.dim))
        G, error = seen(trial, size)
        shares.append(np.mean(trial.lattice.read_labels(G, DRAWS, error) == trial.permutation))
    return float(np.mean(shares)), float(np.std(shares, ddof=1)) / math.sqrt(len(shares))


@pytest.mark.parametrize("noise", [1e-36, 1e-28, 1e-16, 0.1, 1.0])
def test_through_noise_it_names_no_more_than_is_proved(trials: list[Trial], noise: float):
    random = np.random.default_rng(7)

    def blur(trial: Trial, size: float) -> tuple[list[Fraction], float]:
        error = noise * size
        return [entry + Fraction(error * random.normal()) for entry in trial.gradient], error

    share, error = shares_through(trials, blur)
    most = allowed_share(SPEC.vocab, noisy_nats(SPEC, noise))
    print(f"\nnoise {noise:g}: named {share:.3f}, proved at most {most:.3f}")
    assert share <= most + 4 * error
    assert share == 1 if noise < 1e-35 else share < 0.5


@pytest.mark.parametrize("bits", [1, 2, 24, 53])
def test_in_a_few_bits_it_names_no_more_than_is_proved(trials: list[Trial], bits: int):
    def write(trial: Trial, size: float) -> tuple[list[Fraction], float]:
        step = Fraction(6 * size) / 2**bits
        half = 2 ** (bits - 1)
        whole = [max(-half, min(half - 1, math.floor(entry / step))) for entry in trial.gradient]
        return [(number + Fraction(1, 2)) * step for number in whole], float(step)

    share, error = shares_through(trials, write)
    most = allowed_share(SPEC.vocab, written_nats(SPEC, bits))
    print(f"\n{bits} bits: named {share:.3f}, proved at most {most:.3f}")
    assert share <= most + 4 * error
    assert share < 0.5
