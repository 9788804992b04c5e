"""Embedding laws: their worked example, their geometry, and every listed name."""

from typing import get_args

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mnemoscope.engine import random
from mnemoscope.engine.words import Words
from mnemoscope.models import embeddings
from mnemoscope.spec import Embedding, Retrieval


def draw(law: str, vocab: int, dim: int) -> embeddings.Embeddings:
    spec = Retrieval(vocab=vocab, dim=dim, length=2, samples=2)
    streams = random.streams(spec, 3)
    return embeddings.draw_embeddings(law, vocab, dim, streams)


WORDS = Words(jnp.asarray([1, 2], jnp.uint32))


def drawn(monkeypatch: pytest.MonkeyPatch, numbers: np.ndarray) -> None:
    """Laws find these numbers where they would draw normal ones."""
    monkeypatch.setattr(embeddings, "normal", lambda words, rows, dim: jnp.asarray(numbers))


def test_worked_example_of_the_docstring(monkeypatch: pytest.MonkeyPatch):
    normal = np.array([[3.0, 4.0], [0.0, -2.0], [1.0, 1.0]])
    drawn(monkeypatch, normal)
    root = np.sqrt(2)
    np.testing.assert_allclose(embeddings.gaussian(WORDS, 3, 2), normal / root, rtol=1e-6)
    np.testing.assert_allclose(embeddings.sphere(WORDS, 3, 2), [[0.6, 0.8], [0, -1], [1 / root, 1 / root]], rtol=1e-6)


@pytest.mark.parametrize("law", get_args(Embedding))
def test_every_listed_law_makes_vectors_of_norm_about_one(law: str):
    made = draw(law, 60, 100)
    assert made.Z.shape == made.U.shape == (60, 100)
    squared = np.sum(np.asarray(made.Z) ** 2, axis=1)
    # Var |z|^2 = 2/d for the Gaussian law; the mean over 60 has a 60th of that.
    assert abs(squared.mean() - 1) < 4 * np.sqrt(2 / (100 * 60))
    assert not np.allclose(made.Z, made.U)


def test_overlaps_have_variance_one_over_d():
    Z = np.asarray(draw("gaussian", 200, 50).Z, dtype=np.float64)
    overlaps = (Z @ Z.T)[np.triu_indices(200, 1)]
    # E (z.z')^2 = 1/d. Its mean over pairs has a relative error of about sqrt(2/pairs) + sqrt of
    # the norms' shared fluctuation, 2 sqrt(2/d)/sqrt(V).
    error = np.sqrt(2 / overlaps.size) + 2 * np.sqrt(2 / 50) / np.sqrt(200)
    assert abs((overlaps**2).mean() * 50 - 1) < 4 * error


def test_orthonormal_takes_the_trigger_into_the_frame():
    with jax.enable_x64(True):
        made = draw("orthonormal", 10, 12)
        frame = jnp.concatenate([made.Z, made.trigger[None]])
        np.testing.assert_allclose(frame @ frame.T, np.eye(11), atol=1e-12)
        np.testing.assert_allclose(made.U @ made.U.T, np.eye(10), atol=1e-12)
        np.testing.assert_allclose(made.query @ made.query, 1, atol=1e-12)
        square = draw("orthonormal", 10, 10)
        np.testing.assert_allclose(square.Z @ square.Z.T, np.eye(10), atol=1e-12)
        np.testing.assert_allclose(square.trigger @ square.trigger, 1, atol=1e-12)


def test_laws_share_their_directions():
    gaussian, sphere = draw("gaussian", 5, 9).Z, draw("sphere", 5, 9).Z
    norms = jnp.linalg.norm(gaussian, axis=1, keepdims=True)
    np.testing.assert_allclose(gaussian / norms, sphere, rtol=1e-5)


@pytest.mark.parametrize("law", ["gaussian", "sphere"])
@pytest.mark.parametrize("dim", [1, 8, 9, 12])
def test_a_padded_draw_is_the_draw_with_zeros_beside_it(law: str, dim: int):
    spec = Retrieval(vocab=6, dim=dim, length=2, samples=2)
    streams = random.streams(spec, 3)
    plain = embeddings.draw_embeddings(law, 6, dim, streams)
    padded = embeddings.draw_embeddings(law, 6, 12, streams, jnp.uint32(dim))
    for small, large in zip(plain, padded, strict=True):
        np.testing.assert_allclose(large[..., :dim], small, rtol=1e-6)
        assert not np.any(large[..., dim:])


def test_gram_schmidt_in_blocks_is_qr(monkeypatch: pytest.MonkeyPatch):
    """70 rows: two blocks and a part, against numpy's QR with a positive diagonal."""
    draw = np.random.default_rng(4).normal(size=(70, 90)).astype(np.float32)
    drawn(monkeypatch, draw)
    frame = np.asarray(embeddings.orthonormal(WORDS, 70, 90))
    Q, R = np.linalg.qr(draw.astype(float).T)
    assert frame == pytest.approx((Q * np.sign(np.diagonal(R))).T, abs=2e-5)
    assert frame @ frame.T == pytest.approx(np.eye(70), abs=1e-5)
    drawn(monkeypatch, draw[:, :70])
    square = np.asarray(embeddings.orthonormal(WORDS, 70, 70))
    assert square @ square.T == pytest.approx(np.eye(70), abs=1e-4)
