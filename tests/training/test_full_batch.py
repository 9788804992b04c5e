"""Training that goes on after the three steps: its gradient against autodiff, its step by hand."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from settings import draw_pieces

from mnemoscope.engine.device import numerics
from mnemoscope.engine.layout import choose_layout
from mnemoscope.models.retrieval import Frozen, Parameters
from mnemoscope.spec import Retrieval
from mnemoscope.training import full_batch
from mnemoscope.training.three_step import reference

CPU = jax.devices("cpu")[0]
SAMPLES = 50
# Many chunks and a remainder, one chunk and a remainder, and more room than there are samples.
CHUNKS = (7, 32, 64)
BOUND = 1e-9

MODELS = [
    pytest.param(trigger, width, id=f"{trigger} {'MLP' if width else 'no MLP'}")
    for trigger in ("keys", "additive")
    for width in (0, 7)
]


def make_spec(trigger: str, width: int) -> Retrieval:
    return Retrieval.read(
        dict(vocab=11, dim=6, length=4, samples=SAMPLES, trigger=trigger, width=width, activation="gelu")
    )


def draw_parameters(spec: Retrieval, frozen: Frozen) -> Parameters:
    """Anywhere but at zero, where attention is uniform and much cancels."""
    rng = np.random.default_rng(3)
    hidden = spec.width or spec.dim
    value, key_query = rng.normal(size=(spec.dim, hidden)), rng.normal(size=(spec.dim, spec.dim))
    return Parameters(*(jnp.asarray(part, frozen.Z.dtype) for part in (value, key_query)))


def by_autodiff(spec: Retrieval, seed: int) -> tuple[float, Parameters]:
    frozen, _, batch = draw_pieces(spec, seed)
    parameters = draw_parameters(spec, frozen)
    loss, gradient = jax.value_and_grad(reference.loss, argnums=(0, 1))(*parameters, spec, frozen, batch)
    return float(loss), Parameters(*gradient)


def assert_near(got: Parameters, expected: Parameters) -> None:
    for part, other in zip(got, expected, strict=True):
        assert np.linalg.norm(part - other) < BOUND * np.linalg.norm(other)


@pytest.mark.parametrize(("trigger", "width"), MODELS)
def test_the_gradient_is_that_of_the_reference(trigger: str, width: int):
    spec = make_spec(trigger, width)
    with numerics("float64", CPU):
        loss, gradient = by_autodiff(spec, 1)
        frozen, source, _ = draw_pieces(spec, 1)
        parameters = draw_parameters(spec, frozen)
        for chunk in CHUNKS:
            layout = choose_layout(spec)._replace(by_sample=chunk)
            got_loss, got = full_batch.loss_and_gradient(
                spec.program(), layout, frozen, source, parameters, jnp.uint32(SAMPLES)
            )
            assert float(got_loss) == pytest.approx(loss, rel=BOUND)
            assert_near(got, gradient)


@pytest.mark.parametrize(("trigger", "width"), MODELS)
def test_a_step_of_gradient_descent_goes_against_the_gradient(trigger: str, width: int):
    spec, lr = make_spec(trigger, width), 0.7
    with numerics("float64", CPU):
        loss, gradient = by_autodiff(spec, 2)
        frozen, source, _ = draw_pieces(spec, 2)
        parameters = draw_parameters(spec, frozen)
        further = full_batch.Further.of(spec.replace(then="gd", steps=1))
        state = full_batch.State(parameters, further.transformation(lr).init(parameters))
        after, info = full_batch.step(
            spec.program(),
            choose_layout(spec)._replace(by_sample=32),
            further,
            frozen,
            source,
            state,
            jnp.uint32(SAMPLES),
            jnp.asarray(lr),
            jnp.uint32(0),
        )
        assert float(info.loss) == pytest.approx(loss, rel=BOUND)
        norm = np.sqrt(sum(float(jnp.sum(part**2)) for part in gradient))
        assert float(info.gradient_norm) == pytest.approx(norm, rel=BOUND)
        assert_near(after.parameters, jax.tree.map(lambda theta, g: theta - lr * g, parameters, gradient))
        assert_near(jax.tree.map(lambda old, new: (old - new) / lr, parameters, after.parameters), gradient)
