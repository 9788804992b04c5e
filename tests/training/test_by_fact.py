"""Accuracy by fact and by band: every token asked for equally often, in fresh sequences."""

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from settings import DIM, LENGTH, SAMPLES, VOCAB, draw_pieces

from mnemoscope.engine.layout import choose_layout
from mnemoscope.spec import Retrieval
from mnemoscope.store.trials import Store
from mnemoscope.tasks.retrieval import Batch, sample
from mnemoscope.training.three_step import by_token, streaming
from mnemoscope.training.three_step.algorithm import Rates, query_scale, train_three_steps
from mnemoscope.training.three_step.evaluation import measure_steps, times_asked
from mnemoscope.training.three_step.reference import logits
from mnemoscope.training.three_step.simulation import simulate

SPEC = Retrieval(vocab=VOCAB, dim=DIM, length=LENGTH, samples=SAMPLES, tokens="zipf:1.3", test_samples=95)


@pytest.mark.parametrize("steps", [dict(), dict(eta=2.0, gamma=50.0), dict(attention="locked"), dict(test_samples=3)])
@pytest.mark.long
def test_right_answers_by_token_are_those_of_the_plain_model(steps: dict[str, Any]):
    spec = SPEC.replace(**steps)
    rates = Rates.of(spec)
    with jax.disable_jit():
        frozen, source, _ = draw_pieces(spec, 0)
        layout = choose_layout(spec)._replace(by_token=16, by_sample=16)
        learned = train_three_steps(spec, layout, frozen, source)
        count = streaming.Count.of(spec.test_samples)
        right = measure_steps(spec.program(), layout, frozen, source, learned, rates, count)["V2"].right
        # The same by hand: fresh sequence i asks for token i mod V.
        times = times_asked(spec.test_samples, VOCAB)
        index = np.arange(times * VOCAB)
        fresh = sample(source.key, jnp.asarray(index, jnp.uint32), frozen.permutation, LENGTH, source.table)
        tokens = np.array(fresh.tokens)
        tokens[index, fresh.position] = index % VOCAB
        asked = Batch(jnp.asarray(tokens), fresh.position, frozen.permutation[index % VOCAB])
        scale = 1.0 if spec.gamma == "limit" else query_scale(frozen, rates) / (frozen.query @ frozen.query)
        W1 = scale * jnp.outer(learned.alpha, frozen.query)
        attend = "locked" if spec.attention == "locked" else "argmax" if spec.gamma == "limit" else "softmax"
        named = np.argmax(logits(spec, frozen, learned.V2, W1, asked, attend), axis=1)
    assert times == (1 if spec.test_samples == 3 else 8)
    hits = np.bincount(index % VOCAB, weights=named == asked.label, minlength=VOCAB)
    np.testing.assert_array_equal(right, hits)
    assert 0 < hits.sum() < len(index)


def test_with_attention_locked_accuracy_by_fact_is_the_maps(tmp_path: Path):
    trial = simulate(SPEC.replace(attention="locked"), 1)
    assert trial.accuracy_by_fact == pytest.approx(trial.metrics["map_accuracy"], rel=1e-6)
    assert trial.bands is not None
    sizes = [len(band.tokens) for band in trial.spec.bands]
    assert np.average(trial.bands, weights=sizes) == pytest.approx(trial.accuracy_by_fact)
    assert trial.as_dict()["accuracy_by_fact"] == trial.accuracy_by_fact
    with Store(tmp_path / "s.db") as store:
        store.add([trial])
        (kept,) = store.find()
    assert (kept.steps, kept.metrics, kept.bands) == (trial.steps, trial.metrics, trial.bands)


def test_uniform_tokens_have_no_numbers_by_fact():
    trial = simulate(SPEC.replace(attention="locked", tokens="uniform"), 1)
    told = trial.as_dict()
    assert trial.accuracy_by_fact is trial.bands is None
    assert not {"accuracy_by_fact", "bands"} & ({*told} | {*trial.metrics} | {*told["steps"][-1]})


@pytest.mark.parametrize("tokens", ["zipf:10", np.array([1e-9, 1 - 1e-9, 0.0, 0.0])])
def test_counts_of_the_most_frequent_token_do_not_overflow(tokens: Any):
    spec = Retrieval(vocab=4, dim=4, length=3, samples=70_000, tokens=tokens)
    _, source, batch = draw_pieces(spec, 0)
    counts = by_token.count_pairs(spec.program(), choose_layout(spec), source, streaming.Count.of(spec.samples))
    expected = np.zeros((4, 4), np.int64)
    np.add.at(expected, (np.repeat(batch.label, 3), np.ravel(batch.tokens)), 1)
    assert expected.max() > 2**16
    np.testing.assert_array_equal(counts.pairs, expected)


def test_small_counters_are_taken_only_where_no_cell_comes_near_their_end():
    def fits(**values: Any) -> bool:
        spec = Retrieval.read({**dict(vocab=1024, dim=8, length=64, samples=10), **values})
        return by_token._fits_in_16_bits(spec.program(), choose_layout(spec))

    assert fits()
    assert not fits(tokens="zipf:0.1")  # a program of all laws
    assert not fits(vocab=100, length=64)  # some 27,000 in a cell
    # The mean is the same, but a few sequences are enough to pass the end.
    assert not fits(length=1024 * 256)
    assert fits(length=1024 * 254)
