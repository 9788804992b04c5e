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
from mnemoscope.spec.token_laws import probabilities
from mnemoscope.tasks.alias import probabilities_in, table_of
from mnemoscope.training import full_batch
from mnemoscope.training.three_step import reference
from mnemoscope.training.three_step.algorithm import ThreeSteps
from mnemoscope.training.three_step.simulation import simulate

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


ZIPF = Retrieval(vocab=40, dim=16, length=4, samples=400, tokens="zipf:1.1", then="adamw", steps=1)


def test_a_table_names_tokens_with_its_probabilities():
    for law in ("zipf:0.5", "zipf:3"):
        p = probabilities(law, 100)
        found = np.asarray(probabilities_in(jnp.asarray(table_of(p))))
        np.testing.assert_allclose(found, p, rtol=1e-5, atol=1e-7)


def scaled_by_hand(spec: Retrieval, frozen: Frozen, learned: ThreeSteps, p: np.ndarray) -> Parameters:
    """The scales of `full_batch`'s docstring from the table of all logits, V x V."""
    Z, U, V2, alpha = (np.asarray(part, float) for part in (frozen.Z, frozen.U, learned.V2, learned.alpha))
    scores = Z @ alpha
    lift, std = abs(np.asarray(frozen.trigger, float) @ alpha), np.sqrt(p @ (scores - p @ scores) ** 2)
    logits = Z @ V2.T @ U.T
    own = logits[np.arange(spec.vocab), np.asarray(frozen.permutation)]
    others = (logits.sum(axis=1) - own) / (spec.vocab - 1)
    spread = np.sqrt(p @ (logits**2).mean(axis=1) - (p @ logits.mean(axis=1)) ** 2)
    query = np.asarray(frozen.query, float)
    w = 2 * np.log(spec.length) / max(lift, std) * alpha
    value = 2 * np.log(spec.vocab) / max(p @ (own - others), spread) * V2
    return Parameters(jnp.asarray(value), jnp.asarray(np.outer(w, query / (query @ query))))


@pytest.mark.parametrize("law", ["uniform", "zipf:1.1"])
def test_training_begins_at_scales_by_how_often_tokens_occur(law: str):
    spec = ZIPF.replace(tokens=law)
    with numerics("float64", CPU):
        frozen, _, _ = draw_pieces(spec, 1)
        rng = np.random.default_rng(5)
        # Frequent tokens' logits are larger, as after three steps.
        strong = np.asarray(frozen.U)[np.asarray(frozen.permutation)].T * (1 + 40 * probabilities(law, spec.vocab))
        V2 = strong @ np.asarray(frozen.Z) + 0.1 * rng.normal(size=(spec.dim, spec.dim))
        learned = ThreeSteps(
            V1=jnp.zeros_like(jnp.asarray(V2)), alpha=jnp.asarray(rng.normal(size=spec.dim)), V2=jnp.asarray(V2)
        )
        started = full_batch.start(spec, frozen, learned).parameters
        assert_near(started, scaled_by_hand(spec, frozen, learned, probabilities(law, spec.vocab)))


@pytest.mark.long
def test_frequent_tokens_do_not_begin_at_a_huge_loss(monkeypatch: pytest.MonkeyPatch):
    spec = ZIPF.replace(vocab=256, dim=64, length=16, samples=4000)

    def first_loss() -> float:
        return next(step.loss for step in simulate(spec, seed=0).steps if step.loss is not None)

    weighted = first_loss()
    # As if every token occurred equally often.
    monkeypatch.setattr(full_batch, "alias_table", lambda law, vocab: None)
    assert weighted < first_loss() / 4
