"""The task: each sample depends on its own number alone, and has the stated law."""

import jax
import jax.numpy as jnp
import numpy as np
from scipy import stats

from mnemoscope.engine.random import below, permutation, random_words
from mnemoscope.tasks.retrieval import Batch, sample

KEY = jnp.array([7, 8], jnp.uint32)
V, L, B = 20, 6, 20_000
PI = permutation(jnp.array([1, 2], jnp.uint32), V)


def draw(index: jax.Array) -> Batch:
    return sample(KEY, index, PI, L)


def independent(first: np.ndarray, second: np.ndarray, sizes: tuple[int, int]) -> bool:
    table = np.histogram2d(first, second, bins=sizes)[0]
    _, p_value, _, _ = stats.chi2_contingency(table)
    return float(p_value) > 1e-4  # pyright: ignore[reportArgumentType]


def test_worked_example_of_the_docstring():
    tokens = jnp.array([[3, 1, 4, 1]], jnp.uint32)
    batch = Batch(tokens, jnp.array([2], jnp.uint32), jnp.array([3], jnp.uint32))
    assert int(batch.informative[0]) == 4
    assert batch.at_position.tolist() == [[False, False, True, False]]
    assert [2, 0, 4, 1, 3][int(batch.informative[0])] == int(batch.label[0])


def test_labels_are_the_permuted_informative_tokens():
    batch = draw(jnp.arange(B, dtype=jnp.uint32))
    np.testing.assert_array_equal(batch.label, PI[batch.informative])


def test_samples_are_the_words_of_their_rows_whatever_the_vocabulary():
    """Two tokens to a word up to 2**16 tokens, one above: the same words of the stream."""
    index = jnp.arange(50, dtype=jnp.uint32)
    for vocab in (20, 2**16, 2**16 + 1, 131_072):
        for length in (1, 6, 7):
            batch = sample(KEY, index, jnp.arange(vocab, dtype=jnp.uint32), length)
            words = random_words(KEY, index, length + 1)
            np.testing.assert_array_equal(batch.tokens, below(words[:, :length], vocab))
            np.testing.assert_array_equal(batch.position, below(words[:, length], length))
            np.testing.assert_array_equal(batch.label, batch.informative)


def test_a_sample_depends_on_its_number_alone():
    whole = draw(jnp.arange(B, dtype=jnp.uint32))
    picked = jnp.array([B - 1, 3, 3, 0], jnp.uint32)
    for part, full in zip(draw(picked), whole, strict=True):
        np.testing.assert_array_equal(part, full[picked])


def test_tokens_and_positions_are_uniform_and_independent():
    batch = draw(jnp.arange(B, dtype=jnp.uint32))
    tokens, position = np.asarray(batch.tokens), np.asarray(batch.position)
    assert stats.chisquare(np.bincount(tokens.ravel(), minlength=V)).pvalue > 1e-4
    assert stats.chisquare(np.bincount(position, minlength=L)).pvalue > 1e-4
    for j in range(L):
        assert stats.chisquare(np.bincount(tokens[:, j], minlength=V)).pvalue > 1e-4
        assert independent(tokens[:, j], tokens[:, (j + 3) % L], (V, V))
    assert independent(tokens[:, 0], position, (V, L))
