"""One step from zero: its gradient and Newton's step by automatic differentiation, Muon's factor, and its samples."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mnemoscope.models.one_step import expected_terms, gradient, polar_factor, sampled_terms, step

RNG = np.random.default_rng(1)
N, M, D = 9, 4, 3
E, U = RNG.normal(size=(N, D)), RNG.normal(size=(M, D))
LABEL = np.arange(N) % M
P = np.arange(1.0, N + 1) ** -1.5
P /= P.sum()


def loss(W: Any) -> Any:
    log_p = jax.nn.log_softmax(jnp.asarray(E) @ W.T @ jnp.asarray(U).T, axis=1)
    return -jnp.sum(jnp.asarray(P) * log_p[jnp.arange(N), LABEL])


def test_the_gradient_is_that_of_the_cross_entropy_at_zero():
    with jax.enable_x64(True):
        expected = -np.asarray(jax.grad(loss)(jnp.zeros((D, D))))
    np.testing.assert_allclose(gradient(E, U, expected_terms(P, LABEL)), expected, rtol=1e-12)


def test_newtons_step_solves_the_hessian_at_zero():
    with jax.enable_x64(True):
        H = np.asarray(jax.hessian(loss)(jnp.zeros((D, D)))).reshape(D * D, D * D)
        G = -np.asarray(jax.grad(loss)(jnp.zeros((D, D)))).ravel()
    np.testing.assert_allclose(step("newton", E, U, expected_terms(P, LABEL)).ravel(), np.linalg.solve(H, G), rtol=1e-9)


def test_muons_factor_is_orthogonal_and_the_nearest():
    G = RNG.normal(size=(40, 40)) * np.logspace(0, -9, 40)
    Q = polar_factor(G)
    np.testing.assert_allclose(Q @ Q.T, np.eye(40), atol=1e-12)
    # <Q, G> is the sum of G's singular values, which no other orthogonal matrix exceeds.
    assert np.sum(Q * G) == pytest.approx(np.linalg.svd(G, compute_uv=False).sum(), rel=1e-12)


def test_the_other_steps_are_the_gradient_and_its_signs():
    terms = expected_terms(P, LABEL)
    G = gradient(E, U, terms)
    for name in ("gd", "sgd"):
        np.testing.assert_array_equal(step(name, E, U, terms), G)
    for name in ("adam", "adamw", "sign"):
        np.testing.assert_array_equal(step(name, E, U, terms), np.sign(G))
    np.testing.assert_array_equal(step("muon", E, U, terms), polar_factor(G))


def test_a_batch_is_the_mean_over_its_samples():
    item, label = RNG.integers(0, N, 50), RNG.integers(0, M, 50)
    centred = U - U.mean(axis=0)
    mean = sum(np.outer(centred[y], E[x]) for x, y in zip(item, label, strict=True)) / 50
    np.testing.assert_allclose(gradient(E, U, sampled_terms(item, label, M)), mean, rtol=1e-12)
