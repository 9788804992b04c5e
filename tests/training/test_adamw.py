"""Our AdamW against optax's: the same step, but for the order in which it is rounded."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from mnemoscope.engine.device import Precision, numerics
from mnemoscope.training.adamw import adamw

CPU = jax.devices("cpu")[0]
STEPS, LR = 20, 0.01
FIRST, SECOND, TINY = 0.9, 0.999, 1e-8
THEIRS: dict[str, Callable[[Any], optax.GradientTransformation]] = {
    "adamw": lambda lr: optax.adamw(lr, weight_decay=0.0),
    "adam": lambda lr: optax.adam(lr),
}

Tree = dict[str, Any]


class State(NamedTuple):
    """Weights and both moments after a step, as flat vectors in double precision."""

    weights: np.ndarray
    first: np.ndarray
    second: np.ndarray


def flat(tree: Tree) -> np.ndarray:
    return np.concatenate([np.asarray(part, np.float64).ravel() for part in jax.tree.leaves(tree)])


def draw_tree(rng: np.random.Generator, scale: float) -> Tree:
    shapes = {"scalar": (), "vector": (17,), "layers": [(5, 7), (2, 3, 4)]}
    return jax.tree.map(
        lambda shape: jnp.asarray(scale * rng.normal(size=shape), float),
        shapes,
        is_leaf=lambda part: isinstance(part, tuple),
    )


def draw_training() -> tuple[Tree, list[Tree]]:
    """Weights, and gradients of many sizes: with the smallest, the 1e-8 beside the root counts."""
    rng = np.random.default_rng(5)
    weights = draw_tree(rng, 1.0)
    return weights, [draw_tree(rng, 10.0 ** rng.integers(-9, 1)) for _ in range(STEPS)]


def train_ours(compiled: bool) -> list[State]:
    weights, gradients = draw_training()
    return _train(adamw, weights, gradients, compiled, lambda state: state[:2])


def train_theirs(name: str, compiled: bool) -> list[State]:
    weights, gradients = draw_training()
    return _train(THEIRS[name], weights, gradients, compiled, lambda state: (state[0].mu, state[0].nu))


def _train(
    optimiser: Callable[[Any], optax.GradientTransformation],
    weights: Tree,
    gradients: list[Tree],
    compiled: bool,
    moments: Callable[[Any], tuple[Tree, Tree]],
) -> list[State]:
    rate = jnp.asarray(LR, float)

    def step(weights: Tree, state: Any, gradient: Tree) -> tuple[Any, Any]:
        updates, state = optimiser(rate).update(gradient, state, weights)
        return optax.apply_updates(weights, updates), state

    step = jax.jit(step) if compiled else step
    state: Any = optimiser(rate).init(weights)
    path = []
    for gradient in gradients:
        weights, state = step(weights, state, gradient)
        first, second = moments(state)
        path.append(State(flat(weights), flat(first), flat(second)))
    return path


def both(precision: Precision, name: str, compiled: bool) -> tuple[list[State], list[State]]:
    with numerics(precision, CPU):
        return train_ours(compiled), train_theirs(name, compiled)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("name", THEIRS)
def test_our_step_is_the_one_of_optax_in_double_precision(name: str, compiled: bool):
    for ours, theirs in zip(*both("float64", name, compiled), strict=True):
        for got, expected in zip(ours, theirs, strict=True):
            np.testing.assert_allclose(got, expected, rtol=1e-12, atol=0)


def rounding_bounds() -> list[State]:
    """How far two correct runs in single precision may be apart after each step.

    One run is within so many half units of the exact result, so two are within as many units. With
    a <- 0.9 a + 0.1 |g|, which bounds |m| whatever the signs are:

    - A moment takes three roundings at every step: two products and a sum (and g^2 a fourth). What
      an earlier step left has shrunk since as its summand has, so |m| is off by 3 t a, and v, all
      of whose summands are positive, by 4 t v.
    - 1 - 0.9^t and 1 - 0.999^t are differences of numbers near one, off by two units of one each.
    - The update lr (m/c1) / (sqrt(v/c2) + 1e-8) so is off by 3 t from m, half of 4 t from v, 2/c1,
      half of 2/c2, and 6 more for its two quotients, root, sum, quotient and product, all times
      lr (a/c1) / (sqrt(v/c2) + 1e-8).
    - Adding it to a weight is one more rounding of the weight.
    """
    unit = float(np.finfo(np.float32).eps)
    with numerics("float64", CPU):
        weights, gradients = draw_training()
        exact = train_ours(compiled=False)
    size = np.zeros_like(flat(weights))
    drift = np.zeros_like(size)
    bounds = []
    for t, (gradient, state) in enumerate(zip(gradients, exact, strict=True), 1):
        size = FIRST * size + (1 - FIRST) * np.abs(flat(gradient))
        c1, c2 = 1 - FIRST**t, 1 - SECOND**t
        update = LR * (size / c1) / (np.sqrt(state.second / c2) + TINY)
        drift = drift + unit * ((5 * t + 2 / c1 + 1 / c2 + 6) * update + np.abs(state.weights) + update)
        bounds.append(State(drift, 3 * t * unit * size, 4 * t * unit * state.second))
    return bounds


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("name", THEIRS)
def test_our_step_is_the_one_of_optax_to_rounding_in_single_precision(name: str, compiled: bool):
    ours, theirs = both("float32", name, compiled)
    for mine, other, bound in zip(ours, theirs, rounding_bounds(), strict=True):
        for got, expected, most in zip(mine, other, bound, strict=True):
            assert np.all(np.abs(got - expected) <= most)
        # A thousandth of a step at most: no other rule would be that near.
        assert np.all(bound.weights <= 1e-3 * LR)
