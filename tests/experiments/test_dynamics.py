"""Paper B's gradient flow: exact gradients beside sampled ones, and the stages it goes through."""

import json
import math
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mnemoscope import Flow, SpecError, dynamics
from mnemoscope.experiments.estimate.plateaus import find_stages
from mnemoscope.training.flow import Weights, _loss, _population, _sequences
from mnemoscope.ui.cli import main


@pytest.mark.long
def test_the_population_is_the_mean_over_sequences():
    """The exact gradient beside that of 2^17 fresh sequences, within five standard errors."""
    spec = Flow(subjects=4, relations=2, answers=2, noise=3, length=8)
    counts, subject, relation = _population(spec)
    assert np.asarray(counts).sum(axis=1) == pytest.approx(spec.length)
    rng = np.random.default_rng(1)
    A, n = 4, spec.tokens
    V, w = rng.normal(size=(A, n)), rng.normal(size=n)
    V[:, 6:9], w[6:9] = V[:, 6:7], w[6]  # noise tokens alike
    weights = Weights(jnp.asarray(V, jnp.float32), jnp.asarray(w, jnp.float32))
    exact, _ = jax.grad(_loss, has_aux=True)(weights, spec, counts, subject, relation)
    many = spec.replace(batch=2**12, steps=1)
    parts = []
    for step in range(32):
        fresh = _sequences(many, jnp.asarray([5, 7], jnp.uint32), jnp.uint32(step))
        parts.append(jax.grad(_loss, has_aux=True)(weights, many, *fresh)[0])
    for name in ("V", "w"):
        seen = np.stack([np.asarray(getattr(part, name)) for part in parts])
        error = seen.std(axis=0, ddof=1) / math.sqrt(len(parts))
        assert (abs(seen.mean(axis=0) - getattr(exact, name)) <= 5 * error + 1e-6).all()


def test_the_hallucination_stage():
    """Fig. 5: the loss rests within 0.05 of ln 8 for over 1000 steps, then falls below 0.1."""
    made = dynamics()
    guess, rest, recall = made.stages
    assert made.course.loss[0] == pytest.approx(math.log(32), abs=1e-3)
    assert rest.level == pytest.approx(math.log(8))
    assert rest.steps >= 1000
    assert made.plateau_relation_accuracy is not None
    assert made.plateau_relation_accuracy > 0.99
    assert guess.last is not None
    assert rest.first is not None
    assert recall.first is not None
    assert rest.last is not None
    assert guess.last < rest.first < rest.last < recall.first
    assert made.course.loss[-1] < 0.1
    assert made.course.accuracy[-1] == 1.0
    middle = (rest.first + rest.last) // 2
    assert made.course.relation_mass[middle] > 0.95
    assert made.course.answer_mass[middle] < 0.2  # 1/8, and a little more


def test_stages_are_found_by_rule():
    curve = np.concatenate([np.full(10, 2.0), np.linspace(2, 1, 5), np.full(20, 1.01), np.zeros(8)])
    told = find_stages(curve, ["a", "b", "c", "d"], [2.0, 1.0, 3.0, 0.0])
    assert [(stage.first, stage.last) for stage in told] == [(0, 10), (14, 34), (None, None), (35, 42)]
    assert [stage.steps for stage in told] == [11, 21, 0, 8]
    noisy = curve + np.where(np.arange(len(curve)) % 7 == 3, 0.2, 0.0)
    assert find_stages(noisy, ["b"], [1.0])[0].steps < 10
    assert find_stages(noisy, ["b"], [1.0], smooth=5)[0].steps >= 19
    assert find_stages(np.ones(5), ["d"], [0.0])[0].first is None


def test_the_dynamics_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    words = ["dynamics", "--steps", "700", "--batch", "32", "--length", "8"]
    picture = tmp_path / "stages.png"
    assert main([*words, "--json", "--out", str(picture)]) == 0
    told = json.loads(capsys.readouterr().out)
    assert {"loss", "relation_only", "stages"} <= set(told)
    assert len(told["loss"]) == len(told["relation_only"]) == 700
    assert picture.stat().st_size > 1000
    assert main(words) == 0
    assert "relation only" in capsys.readouterr().out
    assert main([*words, "--answers", "5"]) == 2
    assert "--answers: expected a divisor of subjects = 16, got 5" in capsys.readouterr().err
    with pytest.raises(SpecError, match="expected at most 2"):
        Flow(steps=10**6, batch=2**20)
