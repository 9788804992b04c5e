"""Accuracies known from an independent simulation, and the orderings that theory predicts.

Each known figure is a mean over seeds given to two digits. Ours is a mean over 12 seeds. The two
may differ by two standard errors of both sides, the other side being given the spread between
seeds that ours has and 10 seeds, and by half of the last digit.
"""

from typing import Any

import numpy as np
import pytest

from mnemoscope import Retrieval, run

SEEDS, OTHER_SEEDS = 12, 10

KNOWN: list[tuple[dict[str, Any], float]] = [
    (dict(vocab=512, dim=128, length=16, samples=16_000), 0.89),
    (dict(vocab=512, dim=64, length=256, samples=4_000), 0.06),
    (dict(vocab=512, dim=64, length=256, samples=16_000), 0.29),
    (dict(vocab=256, dim=64, length=8, samples=20_000, trigger="additive"), 0.25),
]


def accuracies(seeds: int = SEEDS, **values: Any) -> np.ndarray:
    done = run(Retrieval.read(values), seeds)
    assert [trial.status for trial in done.trials] == ["ok"] * seeds
    return np.array([trial.accuracy for trial in done.trials])


@pytest.mark.long
@pytest.mark.parametrize(("values", "known"), KNOWN)
def test_known_accuracies(values: dict[str, Any], known: float):
    got = accuracies(**values)
    error = got.std(ddof=1) * np.sqrt(1 / SEEDS + 1 / OTHER_SEEDS)
    assert abs(got.mean() - known) < 2 * error + 0.005


@pytest.mark.long
def test_accuracy_equals_a_plain_numpy_simulation():
    """V=256, d=64, L=8, N=20000: attention finds every informative token, so what is left is one
    Hebbian step on label counts, which a few lines of NumPy can do with numbers of their own."""
    V, d, N, repeats = 256, 64, 20_000, 60
    rng = np.random.default_rng(0)
    plain = []
    for _ in range(repeats):
        Z, U = rng.normal(size=(2, V, d)) / np.sqrt(d)
        counts = rng.multinomial(N, np.full(V, 1 / V))
        D = counts[:, None] * Z
        logits = Z @ (U.T @ (D - D.mean(axis=0))).T @ U.T
        plain.append(np.mean(np.argmax(logits, axis=1) == np.arange(V)))
    got = accuracies(seeds=24, vocab=V, dim=d, length=8, samples=N)
    error = np.hypot(np.std(plain, ddof=1) / np.sqrt(repeats), got.std(ddof=1) / np.sqrt(24))
    assert abs(got.mean() - np.mean(plain)) < 2 * error


@pytest.mark.long
def test_orthonormal_embeddings_recall_everything():
    got = accuracies(vocab=128, dim=160, length=16, samples=10_000, embedding="orthonormal")
    assert np.all(got == 1.0)


@pytest.mark.long
def test_width_pays_only_through_the_higher_hermite_parts():
    """One step with attention locked at V=1024, d=32, m=4096, N=34000.

    Known: linear 0.013, ReLU 0.016, hermite2 0.30, hermite3 0.66. Ours and theirs may differ by
    two standard errors of both sides, theirs taken as three seeds of the same spread, and by half
    of the known figure's last digit.
    """
    shared = dict(vocab=1024, dim=32, length=1, samples=34_000, width=4096, attention="locked")
    got = {name: accuracies(seeds=3, activation=name, **shared) for name in ("linear", "relu", "hermite2", "hermite3")}
    known = {"linear": (0.013, 5e-4), "relu": (0.016, 5e-4), "hermite2": (0.30, 0.005), "hermite3": (0.66, 0.005)}
    for name, (figure, half_digit) in known.items():
        error = got[name].std(ddof=1) * np.sqrt(1 / 3 + 1 / 3)
        assert abs(got[name].mean() - figure) < 2 * error + half_digit, name
    # And the memory without an MLP is no worse than a linear one 128 times as wide.
    bare = accuracies(seeds=3, **{**shared, "width": 0})
    assert bare.mean() > got["linear"].mean() - 2 * got["linear"].std(ddof=1)
