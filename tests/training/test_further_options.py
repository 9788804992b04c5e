"""`run` beyond the three steps, option by option: minibatches, label noise, bits, decay and schedules."""

import json
import math

import jax.numpy as jnp
import numpy as np
import pytest

from mnemoscope.engine import random
from mnemoscope.engine.record import Trial
from mnemoscope.experiments.run import run
from mnemoscope.spec import Retrieval
from mnemoscope.tasks.label_noise import replace_labels
from mnemoscope.training import full_batch
from mnemoscope.training.three_step.simulation import simulate
from mnemoscope.training.three_step.streaming import Source
from mnemoscope.ui.cli import main

SPEC = Retrieval(vocab=32, dim=16, length=4, samples=300, then="gd", steps=6, test_samples=512)
# A rate at which the weights stay where they are.
STILL = 1e-30


def losses(trial: Trial) -> list[float]:
    """The losses of further training, step by step."""
    return [step.loss for step in trial.steps if step.loss is not None]


def losses_of(**changes: object) -> list[float]:
    return losses(simulate(SPEC.replace(**changes), seed=3))


@pytest.mark.long
@pytest.mark.parametrize("then", ["muon", "gd"])
def test_a_batch_of_all_samples_is_the_full_batch(then: str):
    full, batch = (losses_of(then=then, batch=size) for size in (0, 300))
    assert batch == pytest.approx(full, rel=1e-4)
    assert full[-1] < full[0]


@pytest.mark.long
def test_batches_take_the_samples_in_their_order_over_and_over():
    (full,) = set(losses_of(lr=STILL))
    parts = losses_of(lr=STILL, batch=100)
    assert len({round(loss, 5) for loss in parts[:3]}) == 3
    # Three batches are the samples; the next three are the same again.
    assert np.mean(parts[:3]) == pytest.approx(full, rel=1e-5)
    assert parts[3:6] == pytest.approx(parts[:3], rel=1e-6)
    # One that does not divide their number takes the first samples again: 200 + 200 = 300 + the first 100.
    uneven = losses_of(lr=STILL, batch=200)
    assert uneven[0] == pytest.approx(np.mean(parts[:2]), rel=1e-5)
    assert uneven[1] == pytest.approx(np.mean([parts[2], parts[0]]), rel=1e-5)


def test_without_label_noise_nothing_changes_and_the_three_steps_never_see_it():
    plain, noisy = (simulate(SPEC.replace(label_noise=share), seed=3) for share in (0.0, 0.3))
    assert losses(plain) == losses_of()
    assert plain.steps[:4] == noisy.steps[:4]
    # The model starts from right labels, so that wrong ones cost more: each costs ln V and more.
    wrong = 0.3 * (1 - 1 / SPEC.vocab)
    assert losses(noisy)[0] > losses(plain)[0] + wrong * 0.5


def test_a_known_share_of_labels_is_wrong():
    """q (1 - 1/V) of them, since a new label may be the right one; and more noise keeps what less has replaced."""
    rows = jnp.arange(2**15, dtype=jnp.uint32)
    streams = random.streams(SPEC, 3)
    spec = SPEC.replace(label_noise=0.2)
    source = Source.of(spec, streams["train"], jnp.arange(SPEC.vocab, dtype=jnp.uint32))
    right = jnp.zeros(len(rows), jnp.uint32)
    drawn = {}
    for noise in (0.2, 0.4):
        seen = full_batch.Further.of(spec.replace(label_noise=noise)).sees(source, streams["noise"], jnp.uint32(300))
        assert seen.noise is not None
        drawn[noise] = np.asarray(replace_labels(*seen.noise, rows, right, SPEC.vocab))
        share = noise * (1 - 1 / SPEC.vocab)
        error = math.sqrt(share * (1 - share) / len(rows))
        # A normal deviation beyond 4.5 comes once in 150,000 times.
        assert abs(np.mean(drawn[noise] != 0) - share) < 4.5 * error
    replaced = drawn[0.2] != 0
    assert (drawn[0.4][replaced] == drawn[0.2][replaced]).all()


def test_noise_costs_what_its_labels_cost():
    """At weights that stay, the loss is (1 - q) of the right labels' and q of a uniform label's, within its error."""
    spec = SPEC.replace(samples=4000, lr=STILL, steps=1)
    whole, half, full = (losses(simulate(spec.replace(label_noise=q), seed=3))[0] for q in (0.0, 0.45, 0.9))
    # Linear in q: 1,800 and 3,600 labels are uniform, whose losses scatter by about 2.
    assert half - whole == pytest.approx((full - whole) / 2, abs=4.5 * 2 / math.sqrt(4000))
    assert full - whole > 1


def test_sixteen_bits_are_nearly_none_and_one_bit_costs():
    spec = SPEC.replace(samples=2000)
    plain, fine, coarse = (simulate(spec.replace(bits=bits), seed=3) for bits in (0, 16, 1))
    for trial in (fine, coarse):
        assert [step.name for step in trial.steps] == [*(step.name for step in plain.steps), "rounded"]
        assert trial.steps[:-1] == plain.steps
    # 16 bits move a logit by about one part in 10,000: a handful of the test sequences may change.
    assert fine.accuracy == pytest.approx(plain.accuracy, abs=3 / spec.test_samples)
    assert (coarse.accuracy or 0) < (plain.accuracy or 0)


@pytest.mark.long
def test_bits_stored_are_those_of_the_tokens_that_are_named():
    found = run(SPEC.replace(bits=2, then="none", steps=0), 3, store=None)
    told = found.as_dict()["rounding"]
    assert isinstance(told, dict)
    maps = [trial.steps[-1].map_accuracy or 0.0 for trial in found.trials]
    assert told["bits_stored"] == pytest.approx(np.mean(maps) * 32 * 5)
    assert told["bits_available"] == 2 * (16 * 16 + 16 * 16)
    assert told["share"] == pytest.approx(told["bits_stored"] / told["bits_available"])
    assert told["accuracy_after"] == pytest.approx(found.interval().value)
    assert "rounding" not in run(SPEC.replace(then="none", steps=0), 1, store=None).as_dict()


def test_decay_shrinks_weights_and_a_schedule_ends_where_it_says():
    # Decay of 1 at rate 1 leaves of the weights only the step: V moves as if it had begun at zero.
    plain, decayed = (simulate(SPEC.replace(weight_decay=decay, steps=3), seed=3) for decay in (0.0, 0.2))
    assert losses(plain)[0] == losses(decayed)[0]
    assert (decayed.steps[-1].std or 0) < (plain.steps[-1].std or 0)
    # A linear schedule to zero takes half of the constant one's way, to the order of the rate.
    constant, linear = (losses_of(lr=0.01, steps=6, schedule=name) for name in ("constant", "linear"))
    way = (constant[0] - constant[-1]) / 6
    taken = sum(1 - t / 6 for t in range(6))
    assert linear[0] - linear[-1] == pytest.approx(taken * way, rel=0.05)


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["--batch", "301"], "--batch: expected at most samples = 300, got 301"),
        (["--label-noise", "1"], "--label-noise: expected a share of at least 0 and below 1, got 1"),
        (["--label-noise", "-0.1"], "--label-noise: expected a number from 0 to 1, got '-0.1'"),
        (["--bits", "17"], "--bits: expected a whole number of at least 0 and at most 16, got '17'"),
        (["--schedule", "cosin"], "--schedule: expected one of"),
        (["--weight-decay", "nan"], "--weight-decay: expected a number"),
    ],
)
def test_wrong_options_are_one_line(words: list[str], line: str, capsys: pytest.CaptureFixture[str]):
    sizes = ["--vocab", "32", "--dim", "16", "--length", "4", "--samples", "300", "--then", "gd", "--steps", "2"]
    assert main(["run", *sizes, *words, "--store", "none"]) == 2
    told = capsys.readouterr().err
    assert line in told
    assert told.count("\n") == 1


def test_the_command_takes_them_all(capsys: pytest.CaptureFixture[str]):
    sizes = ["--vocab", "32", "--dim", "16", "--length", "4", "--samples", "300", "--then", "adamw", "--steps", "2"]
    words = ["--batch", "50", "--label-noise", "0.1", "--bits", "8", "--schedule", "cosine", "--weight-decay", "0.1"]
    assert main(["run", *sizes, *words, "--seeds", "1", "--store", "none", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    spec = Retrieval(
        vocab=32, dim=16, length=4, samples=300, then="adamw", steps=2, batch=50, label_noise=0.1, bits=8,
        schedule="cosine", weight_decay=0.1,
    )  # fmt: skip
    assert told["id"] == spec.id
    assert told["trials"][0]["accuracy"] == simulate(spec, seed=0).accuracy
    assert told["rounding"]["bits"] == 8
