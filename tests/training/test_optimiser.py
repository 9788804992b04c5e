"""Optimisers come from optax: AdamW as the docstrings write it, with a rate of its own in every row."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from mnemoscope.spec import Memory
from mnemoscope.training.memory import MEMORY
from mnemoscope.training.optimisers import OPTIMISERS


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
