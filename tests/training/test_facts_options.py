"""`facts` option by option: optimiser, weight decay, schedule, label noise and bits."""

import json
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mnemoscope.experiments.facts import facts_capacity_many, learn_facts
from mnemoscope.spec import Facts
from mnemoscope.tasks.facts import draw_sequences
from mnemoscope.training.facts import FACTS, noisy_answers
from mnemoscope.ui.cli import main

SPEC = Facts(
    subjects=4, relations=3, answers=4, dim=16, heads=2, head_dim=4, width=8, length=6, batch=64, test_samples=256,
    max_steps=64,
)  # fmt: skip


def moved(spec: Facts, steps: int, lr: float = 0.5) -> tuple[list[np.ndarray], list[np.ndarray], list[np.ndarray]]:
    """The weights before and after, and the gradient of the first step."""
    program = FACTS.program(spec)
    world, state = FACTS.start(program, FACTS.arguments([(spec, 1)]))
    one, weights = jax.tree.map(lambda part: part[0], (world, state.weights))
    gradient = jax.grad(lambda w: FACTS.loss(program, one, w, jnp.uint32(0)))(weights)
    before = [np.asarray(part) for part in jax.tree.leaves(weights)]
    after, _ = FACTS.advance(program, steps, world, state, jnp.asarray([lr]))
    ends = [np.asarray(part)[0] for part in jax.tree.leaves(after.weights)]
    return before, ends, [np.asarray(part) for part in jax.tree.leaves(gradient)]


@pytest.mark.parametrize(("name", "direction"), [("sgd", lambda g: g), ("sign", np.sign)])
def test_a_step_is_the_optimisers(name: str, direction: np.ufunc):
    before, after, gradient = moved(SPEC.replace(optimiser=name), 1)
    for old, new, g in zip(before, after, gradient, strict=True):
        np.testing.assert_allclose(new, old - 0.5 * direction(g), rtol=1e-4, atol=1e-6)


def test_decay_takes_its_share_of_the_weights():
    before, plain, _ = moved(SPEC.replace(optimiser="sgd"), 1)
    _, decayed, _ = moved(SPEC.replace(optimiser="sgd", weight_decay=0.1), 1)
    for old, one, other in zip(before, plain, decayed, strict=True):
        np.testing.assert_allclose(other, one - 0.5 * 0.1 * old, rtol=1e-4, atol=1e-6)


def test_a_schedule_begins_at_the_rate_and_ends_at_none():
    constant, linear = (SPEC.replace(optimiser="sgd", schedule=name, max_steps=2) for name in ("constant", "linear"))
    for one, other in zip(moved(constant, 1)[1], moved(linear, 1)[1], strict=True):
        np.testing.assert_allclose(other, one, rtol=1e-5, atol=1e-7)
    # The second of two steps has half of the rate; a third would have none.
    second, third = moved(linear, 2)[1], moved(linear, 3)[1]
    assert any(np.abs(a - b).max() > 1e-3 for a, b in zip(second, moved(linear, 1)[1], strict=True))
    for one, other in zip(second, third, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_known_share_of_the_answers_is_wrong():
    spec = SPEC.replace(label_noise=0.3)
    program = FACTS.program(spec)
    world, _ = FACTS.start(program, FACTS.arguments([(spec, 1)]))
    one = jax.tree.map(lambda part: part[0], world)
    rows = jnp.arange(2**14, dtype=jnp.uint32)
    asked = draw_sequences(program, one.sizes, one.keys["train"], rows)
    right = one.facts[asked.subject, asked.relation]
    answers = noisy_answers(program, one, asked, rows)
    share = 0.3 * (1 - 1 / spec.outputs)  # a new answer may be the right one
    error = math.sqrt(share * (1 - share) / len(rows))
    assert abs(float(jnp.mean(answers != right)) - share) < 4.5 * error
    assert int(answers.max()) < spec.outputs


@pytest.mark.long
def test_noise_costs_in_training_and_tests_ask_for_the_right_answer():
    plain, noisy = (learn_facts(SPEC.replace(label_noise=q, max_steps=256), [0], store=None) for q in (0.0, 0.3))
    losses = [run.outcomes[0].metrics["loss"] or 0.0 for run in (plain, noisy)]
    # The least loss of noisy labels is their entropy, of which (1 - 0.3) ln 1/(1 - 0.3) is a part.
    assert losses[0] < 0.7 * math.log(1 / 0.7) < losses[1]
    assert (noisy.interval.value or 0) > 0.7 + 4.5 * math.sqrt(0.21 / SPEC.test_samples)


@pytest.mark.long
def test_bits_are_counted_beside_the_accuracy_that_they_cost():
    whole, fine, coarse = (learn_facts(SPEC.replace(bits=bits), [0, 1], store=None) for bits in (0, 16, 1))
    assert fine.interval.value == pytest.approx(whole.interval.value, abs=3 / SPEC.test_samples)
    assert (coarse.interval.value or 0) < (whole.interval.value or 0)
    assert "rounding" not in whole.as_dict()
    told = coarse.as_dict()["rounding"]
    assert told["bits_stored"] == pytest.approx((coarse.interval.value or 0) * 12 * 2)
    assert told["bits_available"] == SPEC.parameters
    # The trainings are those without bits, which are rounded only then.
    assert told["accuracy_before"] == pytest.approx(whole.interval.value)
    assert told["accuracy_after"] == pytest.approx(coarse.interval.value)


@pytest.mark.long
def test_bits_at_a_capacity():
    (found,) = facts_capacity_many(
        [SPEC.replace(bits=8, target=0.9, max_steps=128)], "equal", rates=[0.01], seeds=2, most_seeds=2,
        resolution=0.5, tolerance=1.0, store=None,
    )  # fmt: skip
    told = found.as_dict()["rounding"]
    assert told["bits_available"] == 8 * SPEC.parameters
    assert found.estimate is not None
    subjects = math.sqrt(found.estimate)
    assert told["bits_stored"] == pytest.approx(0.9 * found.estimate * math.log2(min(8.0, subjects)))


def test_the_command_takes_them_all(capsys: pytest.CaptureFixture[str]):
    sizes = ["--subjects", "4", "--relations", "3", "--answers", "4", "--dim", "16", "--heads", "2", "--head-dim", "4"]
    words = ["--optimiser", "muon", "--label-noise", "0.1", "--bits", "4", "--schedule", "cosine"]
    more = ["--weight-decay", "0.1", "--batch", "16", "--max-steps", "32", "--seeds", "1", "--store", "none"]
    assert main(["facts", *sizes, *words, *more, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert {told["spec"][name] for name in ("optimiser", "schedule")} == {"muon", "cosine"}
    assert told["rounding"]["bits"] == 4
    assert main(["facts", *sizes, *words, *more]) == 0
    assert f"{4 * told['parameters']:,} available in the weights" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["--optimiser", "newton"], "--optimiser: expected one of gd, sgd, adam, adamw, muon, sign, got 'newton'"),
        (["--label-noise", "2"], "--label-noise: expected a number from 0 to 1, got '2'"),
        (["--method", "constructed", "--optimiser", "muon"], "--optimiser: expected the method trained for it"),
        (["--bits", "-1"], "--bits: expected a whole number of at least 0"),
    ],
)
def test_wrong_options_are_one_line(words: list[str], line: str, capsys: pytest.CaptureFixture[str]):
    sizes = ["--subjects", "4", "--relations", "3", "--answers", "4", "--dim", "16", "--heads", "2", "--head-dim", "4"]
    assert main(["facts", *sizes, *words, "--store", "none"]) == 2
    told = capsys.readouterr().err
    assert line in told
    assert told.count("\n") == 1
