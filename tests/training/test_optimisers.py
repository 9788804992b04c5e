"""The optimisers' steps against their formulas in NumPy, with a rate of its own in every row."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from mnemoscope.models.one_step import polar_factor
from mnemoscope.spec import Memory
from mnemoscope.spec.optimisers import Optimiser, Schedule
from mnemoscope.training.memory import MEMORY
from mnemoscope.training.optimisers import OPTIMISERS, optimiser, rate_at

RNG = np.random.default_rng(7)
# Singular values from 1 to 20: what Newton-Schulz iterations are made for.
LEFT, RIGHT = (np.linalg.qr(RNG.normal(size=(12, 12)))[0] for _ in range(2))
GRADIENT = LEFT @ np.diag(np.linspace(1.0, 20.0, 12)) @ RIGHT
WEIGHTS = RNG.normal(size=(12, 12))


def test_adam_is_the_formula():
    """theta - lr mhat/(sqrt(vhat) + 1e-8), in double precision."""
    rng = np.random.default_rng(0)
    theta, gradients, lr = rng.normal(size=5), rng.normal(size=(7, 5)), 0.03
    first = second = np.zeros(5)
    with jax.enable_x64(True):
        optimiser = OPTIMISERS["adamw"](lr)
        ours: Any = jnp.asarray(theta)
        state = optimiser.init(ours)
        for t, g in enumerate(gradients, start=1):
            first, second = 0.9 * first + 0.1 * g, 0.999 * second + 0.001 * g**2
            theta = theta - lr * (first / (1 - 0.9**t)) / (np.sqrt(second / (1 - 0.999**t)) + 1e-8)
            updates, state = optimiser.update(jnp.asarray(g), state)
            ours = optax.apply_updates(ours, updates)
        np.testing.assert_allclose(ours, theta, rtol=1e-12)


def test_every_row_has_its_own_rate():
    spec = Memory(items=8, dim=8, method="trained")
    world, state = MEMORY.start(spec, MEMORY.arguments([(spec, 0)] * 2))
    before = np.asarray(state.weights.W)
    after, _ = MEMORY.advance(spec, 1, world, state, jnp.asarray([1.0, 3.0]))
    moved = np.asarray(after.weights.W) - before
    # The first step of Adam is lr times the gradient's sign.
    assert np.abs(moved[0]).max() == pytest.approx(1.0, rel=1e-3)
    np.testing.assert_allclose(moved[1], 3 * moved[0], rtol=1e-5)


def first_step(name: Optimiser, lr: float, decay: float = 0.0) -> np.ndarray:
    with jax.enable_x64(True):
        weights = jnp.asarray(WEIGHTS)
        chosen = optimiser(name, lr, decay)
        updates, _ = chosen.update(jnp.asarray(GRADIENT), chosen.init(weights), weights)
        return np.asarray(updates)


def newton_schulz(G: np.ndarray) -> np.ndarray:
    """Five iterations of X <- 3.4445 X - 4.7750 X X^T X + 2.0315 (X X^T)^2 X, from G over its Frobenius norm."""
    X = G / np.linalg.norm(G)
    for _ in range(5):
        A = X @ X.T
        X = 3.4445 * X + (-4.7750 * A + 2.0315 * A @ A) @ X
    return X


def test_the_first_steps_are_the_formulas():
    for name in ("gd", "sgd"):
        np.testing.assert_allclose(first_step(name, 0.3), -0.3 * GRADIENT, rtol=1e-12)
    np.testing.assert_allclose(first_step("sign", 0.3), -0.3 * np.sign(GRADIENT), rtol=1e-12)
    for name in ("adam", "adamw"):
        np.testing.assert_allclose(first_step(name, 0.3), -0.3 * GRADIENT / (np.abs(GRADIENT) + 1e-8), rtol=1e-9)
    np.testing.assert_allclose(first_step("muon", 0.3), -0.3 * newton_schulz(GRADIENT), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("name", list(OPTIMISERS))
def test_weight_decay_takes_its_share_of_the_weights(name: Optimiser):
    plain, decayed = first_step(name, 0.3), first_step(name, 0.3, 0.05)
    np.testing.assert_allclose(decayed - plain, -0.3 * 0.05 * WEIGHTS, rtol=1e-6, atol=1e-12)


def test_muons_iterations_are_near_the_polar_factor():
    """The same singular vectors, and singular values between 0.6 and 1.3 where the polar factor has 1."""
    step = -first_step("muon", 1.0)
    values = np.linalg.svd(step, compute_uv=False)
    assert values.min() > 0.6
    assert values.max() < 1.3
    np.testing.assert_allclose(polar_factor(step), LEFT @ RIGHT, atol=1e-6)


def test_a_stack_of_matrices_is_orthogonalised_one_by_one():
    stack = {"heads": np.stack([GRADIENT, 3.0 * GRADIENT.T]), "bias": GRADIENT[0], "none": np.zeros((0, 4))}
    with jax.enable_x64(True):
        tree: Any = jax.tree.map(jnp.asarray, stack)
        muon = OPTIMISERS["muon"](1.0)
        updates: Any = muon.update(tree, muon.init(tree), tree)[0]
        for head, own in enumerate((GRADIENT, GRADIENT.T)):
            np.testing.assert_allclose(updates["heads"][head], -newton_schulz(own), rtol=1e-6, atol=1e-8)
        # Adam's first step with Nesterov's mean: 0.9 * 0.1 g / (1 - 0.9^2) + g, over |g|.
        np.testing.assert_allclose(np.abs(updates["bias"]), 0.09 / 0.19 + 1, rtol=1e-6)
        assert updates["none"].shape == (0, 4)


def test_schedules_are_their_formulas():
    def rates(schedule: Schedule) -> list[float]:
        return [float(rate_at(schedule, 2.0, jnp.uint32(t), 100)) for t in (0, 50, 99)]

    assert rates("constant") == [2.0, 2.0, 2.0]
    assert rates("linear") == pytest.approx([2.0, 1.0, 0.02])
    assert rates("cosine") == pytest.approx([2 * (1 + np.cos(np.pi * t / 100)) / 2 for t in (0, 50, 99)], abs=1e-6)
    rising = [float(rate_at("warmup-cosine", 2.0, jnp.uint32(t), 100)) for t in (0, 4, 9)]
    assert rising == pytest.approx([0.2, 1.0, 2.0])
    assert rates("warmup-cosine")[2] == pytest.approx(0.0, abs=1e-6)
