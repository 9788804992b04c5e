"""Models and activations: the worked examples, and the Hermite parts that do the work."""

from typing import get_args

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from settings import draw_pieces

from mnemoscope.models import activations
from mnemoscope.models.retrieval import Frozen, Parameters, attention_scores, forward, pool
from mnemoscope.spec import Activation, Retrieval
from mnemoscope.tasks.retrieval import Batch
from mnemoscope.training.three_step.reference import logits

EXAMPLES = {"relu": 2.0, "gelu": 1.954, "tanh": 0.964, "linear": 2.0, "hermite2": 2.121, "hermite3": 0.816}


def test_worked_example_of_the_transformer():
    Z = jnp.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    w = jnp.array([1.0, 0.0])
    frozen = Frozen(Z, Z, jnp.array([2.0, 0.0]), w, None, jnp.arange(3, dtype=jnp.uint32))
    tokens = jnp.array([[1, 2]], jnp.uint32)
    batch = Batch(tokens, jnp.array([0], jnp.uint32), jnp.array([1], jnp.uint32))
    scores = attention_scores(frozen, batch, w)
    np.testing.assert_allclose(scores, [[2, 1]])
    a = jax.nn.softmax(scores, axis=1)
    np.testing.assert_allclose(a, [[0.73, 0.27]], atol=0.005)
    spec = Retrieval(vocab=3, dim=2, length=2, samples=1)
    np.testing.assert_allclose(pool(spec, frozen, batch, a), [[0.27, 1.0]], atol=0.005)
    additive = spec.replace(trigger="additive")
    np.testing.assert_allclose(pool(additive, frozen, batch, a), [[1.73, 1.0]], atol=0.005)


@pytest.mark.parametrize("trigger", ["keys", "additive"])
@pytest.mark.parametrize("width", [0, 5])
def test_look_ups_equal_the_model_as_written(trigger: str, width: int):
    spec = Retrieval.read(dict(vocab=9, dim=4, length=5, samples=20, trigger=trigger, width=width, activation="gelu"))
    with jax.enable_x64(True):
        frozen, _, batch = draw_pieces(spec, 0)
        rng = np.random.default_rng(0)
        Vmat = jnp.asarray(rng.normal(size=(4, width or 4)))
        W = jnp.asarray(rng.normal(size=(4, 4)))
        ours, _ = forward(spec, frozen, Parameters(Vmat, W), batch)
        plain = logits(spec, frozen, Vmat, W, batch, "softmax")
        np.testing.assert_allclose(ours, plain, rtol=1e-11, atol=1e-11)


def test_every_listed_activation_has_its_example():
    assert set(EXAMPLES) == set(get_args(Activation))


@pytest.mark.parametrize(("name", "value"), EXAMPLES.items())
def test_worked_examples_of_the_activations(name: str, value: float):
    assert float(activations.named(name)(jnp.asarray(2.0))) == pytest.approx(value, abs=5e-4)


@pytest.mark.parametrize(
    ("name", "constant", "linear"),
    [
        # ReLU: c_0^2 = 1/(2 pi), c_1^2 = 1/4, E relu^2 = 1/2.
        ("relu", 1 / np.pi, 0.5),
        ("linear", 0.0, 1.0),
        ("hermite2", 0.0, 0.0),
        ("hermite3", 0.0, 0.0),
    ],
)
def test_hermite_parts(name: str, constant: float, linear: float):
    parts = activations.hermite_parts(name)
    assert parts["constant"] == pytest.approx(constant, abs=1e-6)
    assert parts["linear"] == pytest.approx(linear, abs=1e-6)
    assert sum(parts.values()) == pytest.approx(1)


def test_tanh_is_odd_and_keeps_a_small_higher_part():
    parts = activations.hermite_parts("tanh")
    assert parts["constant"] == pytest.approx(0, abs=1e-12)
    assert 0.0 < parts["higher"] < 0.1
