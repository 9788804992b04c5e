"""Memories trained with frequencies, batches, label noise and bits; one step, and the items that it stores."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mnemoscope.engine.device import numerics
from mnemoscope.experiments.capacity import capacity_many
from mnemoscope.experiments.recalled import count_recalled
from mnemoscope.models.memory import Full
from mnemoscope.spec import Memory, SpecError
from mnemoscope.tasks.items import draw_items
from mnemoscope.training.memory import MEMORY, draw_streams
from mnemoscope.training.one_step import FIRST_SPAN, right_by_rank

CPU = jax.devices("cpu")[0]
SIZES = {"items": 12, "dim": 6, "outputs": 5, "method": "trained"}


def draw_world(spec: Memory):
    world, _ = MEMORY.start(spec, draw_streams([(spec, 1)]))
    return jax.tree.map(lambda part: part[0], world)


def log_probabilities(spec: Memory, world, W: np.ndarray) -> np.ndarray:
    logits = np.asarray(world.E, float) @ W.T @ np.asarray(world.U, float).T
    return logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))


def test_the_loss_weighs_items_by_frequency_and_expects_noise():
    W = np.random.default_rng(0).normal(size=(6, 6))
    with numerics("float64", CPU):
        for noise in (0.0, 0.25):
            spec = Memory.read({**SIZES, "frequencies": "zipf:1.5", "label_noise": noise})
            world = draw_world(spec)
            log_p = log_probabilities(spec, world, W)
            own = log_p[np.arange(12), np.arange(12) % 5]
            expected = -spec.probabilities @ ((1 - noise) * own + noise * log_p.mean(axis=1))
            assert float(MEMORY.loss(spec, world, Full(jnp.asarray(W)), jnp.uint32(0))) == pytest.approx(expected)


def test_the_loss_of_a_batch_is_that_of_its_samples():
    W = np.random.default_rng(0).normal(size=(6, 6))
    spec = Memory.read({**SIZES, "batch": 40, "label_noise": 0.2, "optimiser": "sgd"})
    with numerics("float64", CPU):
        world = draw_world(spec)
        rows = jnp.arange(120, 160, dtype=jnp.uint32)
        asked = draw_items(world.samples, rows, world.items, world.label, jnp.uint32(5), noise=0.2)
        log_p = log_probabilities(spec, world, W)
        expected = -log_p[np.asarray(asked.item), np.asarray(asked.label)].mean()
        assert float(MEMORY.loss(spec, world, Full(jnp.asarray(W)), jnp.uint32(3))) == pytest.approx(expected)


def test_minibatches_do_not_depend_on_what_else_is_trained():
    spec = Memory.read({**SIZES, "batch": 8, "optimiser": "sgd", "max_steps": 64, "target": 1.0})
    together = MEMORY.run([(spec, 0), (spec, 1)])
    (alone,) = MEMORY.run([(spec, 1)])
    assert together[1].metrics == alone.metrics
    assert together[1].curve == alone.curve


@pytest.mark.long
def test_rounding_is_measured_beside_what_was_trained():
    for method in ("trained", "hebbian", "least-squares", "one-step"):
        spec = Memory.read({**SIZES, "dim": 12, "outputs": 0, "method": method, "bits": 1})
        (rounded,) = MEMORY.run([(spec, 0)])
        (whole,) = MEMORY.run([(spec.replace(bits=0), 0)])
        assert rounded.metrics["unrounded_accuracy"] == pytest.approx(whole.accuracy)
        assert "unrounded_accuracy" not in whole.metrics
        (fine,) = MEMORY.run([(spec.replace(bits=16), 0)])
        assert fine.accuracy == pytest.approx(whole.accuracy)


def test_a_training_that_rounding_spoils_has_not_met_its_target():
    spec = Memory(items=30, dim=16, method="trained", bits=1, target=0.9)
    (trial,) = MEMORY.run([(spec, 0)])
    assert (trial.metrics["unrounded_accuracy"] or 0.0) >= 0.9 > (trial.accuracy or 0.0)
    assert trial.meets(0.9) is False


def test_items_are_asked_for_by_rank_until_a_span_without_one():
    spec = Memory(items=400, dim=16, method="one-step", optimiser="gd", frequencies="zipf:1", embedding="gaussian")
    (trial,) = MEMORY.run([(spec, 3)])
    world = draw_world(spec)
    perfect = Memory(items=400, dim=16)
    W = jnp.eye(16)
    # Answers that are the items themselves: all are right, and every span is asked for.
    assert right_by_rank(perfect, 400, world._replace(U=30 * world.E), W).mean() > 0.5
    # Answers that point away: none is right, and only the first span is asked for.
    assert not right_by_rank(perfect, 400, world._replace(U=-world.E), W).any()
    right = right_by_rank(spec, 400, world, W)
    begin = FIRST_SPAN
    while begin < 400 and right[begin : 2 * begin].any():
        begin *= 2
    assert not right[begin:].any()
    assert 1 <= (trial.accuracy or 0) * 400 < 100
    assert 0 < (trial.metrics["accuracy_by_sequence"] or 0) < 1


def test_muon_stores_more_in_one_step_than_gradient_descent():
    counts = {}
    for name in ("gd", "muon", "newton"):
        spec = Memory(items=512, dim=64, method="one-step", optimiser=name, frequencies="zipf:1.5")
        counts[name] = np.mean([(trial.accuracy or 0) * 512 for trial in MEMORY.run([(spec, s) for s in range(3)])])
    # 6 against 63 and 71, with standard errors below 3.
    assert counts["muon"] > 4 * counts["gd"]
    assert counts["newton"] > 4 * counts["gd"]


@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("method", {"method": "one-step", "rank": 3}),
        ("optimiser", {"method": "hebbian", "optimiser": "muon"}),
        ("optimiser", {"method": "trained", "optimiser": "newton"}),
        ("batch", {"method": "hebbian", "batch": 5}),
        ("schedule", {"method": "one-step", "schedule": "cosine"}),
        ("label_noise", {"method": "trained", "label_noise": 1.0}),
        ("label_noise", {"method": "trained", "label_noise": -0.1}),
        ("frequencies", {"method": "least-squares", "frequencies": "zipf:1"}),
        ("frequencies", {"frequencies": "zipf:-1"}),
        ("lr", {"method": "trained", "width": 8, "optimiser": "muon"}),
        ("max_steps", {"method": "trained", "batch": 2**20, "max_steps": 2**13}),
        ("items", {"frequencies": np.array([0.5, 0.5])}),
    ],
    ids=str,
)
def test_what_does_not_go_together_is_refused(field: str, values: dict):
    with pytest.raises(SpecError) as caught:
        Memory.read({**SIZES, **values})
    assert caught.value.field == field
    assert "\n" not in str(caught.value)


def test_bits_stored_stand_beside_those_available():
    how: dict[str, Any] = dict(seeds=2, most_seeds=2, tolerance=1.0, resolution=0.2)
    (capacity,) = capacity_many([Memory(items=2, dim=16, bits=3)], 0.9, **how, store=None).points
    told = capacity.as_dict()["rounding"]
    assert capacity.estimate is not None
    assert told["bits_stored"] == pytest.approx(0.9 * capacity.estimate * np.log2(capacity.estimate))
    assert told["bits_available"] == 3 * 256
    spec = Memory(items=100, dim=16, method="one-step", optimiser="gd", frequencies="zipf:1.2", bits=1)
    (point,) = count_recalled([spec], [0, 1], store=None).points
    told = point.as_dict()["rounding"]
    counts = [100 * (trial.accuracy or 0) for trial in point.trials]
    assert told["bits_stored"] == pytest.approx(np.mean(counts) * np.log2(100))
    assert told["accuracy_after"] == pytest.approx(np.mean(counts) / 100)
    assert told["accuracy_before"] == pytest.approx(
        np.mean(np.array([t.metrics["unrounded_accuracy"] for t in point.trials], float))
    )
    (plain,) = count_recalled([spec.replace(bits=0)], [0, 1], store=None).points
    assert "rounding" not in plain.as_dict()
