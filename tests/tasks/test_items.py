"""Samples of items: their frequencies, their noise, and that each depends on its number alone."""

import jax.numpy as jnp
import numpy as np

from mnemoscope.engine.random import named_key
from mnemoscope.spec.token_laws import probabilities
from mnemoscope.tasks.alias import alias_table
from mnemoscope.tasks.items import Asked, ItemStreams, draw_items

N, B = 50, 40_000
STREAMS = ItemStreams(*(jnp.asarray(named_key(3, name)) for name in ("item", "noise")))
ANSWER = jnp.arange(N, dtype=jnp.uint32) % 7
TABLE = alias_table("zipf:1.2", N)


def draw(rows: np.ndarray, noise: float = 0.0, uniform: bool = False) -> Asked:
    table = None if uniform else jnp.asarray(TABLE)
    numbers = jnp.asarray(rows, jnp.uint32)
    return draw_items(STREAMS, numbers, jnp.uint32(N), ANSWER, jnp.uint32(7), table=table, noise=noise)


def test_items_have_their_frequencies():
    """Every count within five standard errors of its mean, which one seed in 35,000 misses for 50 items."""
    for uniform, law in ((False, "zipf:1.2"), (True, "uniform")):
        counts = np.bincount(np.asarray(draw(np.arange(B), uniform=uniform).item), minlength=N)
        p = probabilities(law, N)
        assert (np.abs(counts - B * p) < 5 * np.sqrt(B * p)).all()


def test_a_sample_depends_on_its_number_alone():
    whole = draw(np.arange(1000), 0.3)
    for rows in (np.arange(500, 700), np.array([999, 3, 3, 42])):
        part = draw(rows, 0.3)
        np.testing.assert_array_equal(part.item, np.asarray(whole.item)[rows])
        np.testing.assert_array_equal(part.label, np.asarray(whole.label)[rows])


def test_noise_replaces_its_share_of_the_labels_and_nothing_else():
    clean, some, more = (draw(np.arange(B), noise) for noise in (0.0, 0.1, 0.3))
    np.testing.assert_array_equal(clean.item, more.item)
    np.testing.assert_array_equal(clean.label, np.asarray(ANSWER)[np.asarray(clean.item)])
    wrong = [np.asarray(asked.label) != np.asarray(clean.label) for asked in (some, more)]
    for share, noise in zip(wrong, (0.1, 0.3), strict=True):
        expected = noise * 6 / 7  # a seventh of the new labels are the right ones
        assert abs(share.mean() - expected) < 5 * np.sqrt(expected / B)
    assert (wrong[1] | ~wrong[0]).all()
