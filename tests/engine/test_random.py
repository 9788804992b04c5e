"""Random streams: the published generator, and draws that depend on their name alone."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from mnemoscope.engine import random
from mnemoscope.spec import Retrieval

SPEC = Retrieval(vocab=50, dim=16, length=7, samples=100)
KEY = jnp.array([123, 456], jnp.uint32)


@pytest.mark.parametrize(
    ("key", "counter", "expected"),
    [
        # The known answers that the authors of Threefry publish for 2x32 with 20 rounds.
        ((0, 0), (0, 0), (0x6B200159, 0x99BA4EFE)),
        ((0xFFFFFFFF,) * 2, (0xFFFFFFFF,) * 2, (0x1CB996FC, 0xBB002BE7)),
        ((0x13198A2E, 0x03707344), (0x243F6A88, 0x85A308D3), (0xC4923A9C, 0x483DF7A0)),
    ],
)
def test_threefry_gives_the_published_answers(
    key: tuple[int, int], counter: tuple[int, int], expected: tuple[int, int]
):
    high, low = (jnp.array([word], jnp.uint32) for word in counter)
    got = random.threefry(jnp.array(key, jnp.uint32), high, low)
    assert tuple(int(word[0]) for word in got) == expected


def test_a_longer_draw_extends_a_shorter_one():
    rows = jnp.arange(100, dtype=jnp.uint32)
    whole = random.random_words(KEY, rows, 9)
    np.testing.assert_array_equal(random.random_words(KEY, rows[:10], 9), whole[:10])
    np.testing.assert_array_equal(random.random_words(KEY, rows[::-7], 9), whole[::-7])


@given(st.integers(0, 2**32 - 1), st.integers(1, 2**31 - 1))
def test_below_is_the_upper_half_of_the_product(word: int, bound: int):
    got = random.below(jnp.array([word], jnp.uint32), bound)
    assert int(got[0]) == (word * bound) >> 32


def test_streams_are_told_apart_and_stay_put():
    names = {name: tuple(random.stream(SPEC, 0, name)) for name in random.STREAMS}
    assert len(set(names.values())) == len(names)
    assert tuple(random.stream(SPEC, 1, "train")) != names["train"]
    assert tuple(random.stream(SPEC.replace(vocab=51), 0, "train")) != names["train"]
    # N, d, m and the step sizes leave the sequences alone.
    other = SPEC.replace(samples=999, dim=32, width=5, eta=1.0, test_samples=3)
    assert tuple(random.stream(other, 0, "train")) == names["train"]
    # Stored results rest on these words: a change here needs a new version of the numerics.
    assert names["train"] == (2335390986, 2853841685)


def test_normal_numbers_are_normal():
    draw = np.asarray(random.normal(KEY, 400, 250), dtype=np.float64).ravel()
    assert np.isfinite(draw).all()
    # Bounds at four standard errors of each statistic, for 100 000 numbers.
    n = draw.size
    assert abs(draw.mean()) < 4 / np.sqrt(n)
    assert abs(draw.var() - 1) < 4 * np.sqrt(2 / n)
    assert abs((draw**4).mean() - 3) < 4 * np.sqrt(96 / n)
    assert stats.kstest(draw, "norm").pvalue > 1e-4


def test_normal_draws_are_the_same_in_both_precisions():
    with jax.enable_x64(True):
        wide = np.asarray(random.normal(KEY, 5, 6))
    np.testing.assert_array_equal(wide, np.asarray(random.normal(KEY, 5, 6)))
    assert wide.dtype == np.float32


def test_permutations_are_permutations_and_vary():
    first = np.asarray(random.permutation(KEY, 1000))
    assert sorted(first) == list(range(1000))
    second = np.asarray(random.permutation(jnp.array([124, 456], jnp.uint32), 1000))
    # Two random permutations agree in one place on average, with variance one.
    assert (first == second).sum() < 8
