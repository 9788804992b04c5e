"""Tokens of unequal probability from one random word each."""

import jax.numpy as jnp
import numpy as np
import pytest

from mnemoscope.spec.token_laws import probabilities
from mnemoscope.tasks.alias import alias_table, bits_of, table_of, token_of


def shares(table: np.ndarray) -> np.ndarray:
    """The probability that a table gives each token, counted from its entries."""
    V, bits = len(table), bits_of(len(table))
    full = 2 ** (32 - bits)
    threshold, other = (table >> bits).astype(np.int64), table & (2**bits - 1)
    total = np.zeros(V, np.int64)
    np.add.at(total, np.arange(V), threshold)
    np.add.at(total, other, full - threshold)
    return total / (V * full)


@pytest.mark.parametrize("vocab", [2, 3, 64, 100, 1025])
@pytest.mark.parametrize("law", ["zipf:0.5", "zipf:1", "zipf:2", "zipf:10"])
def test_a_table_gives_the_probabilities(vocab: int, law: str):
    table = alias_table(law, vocab)
    assert table is not None
    assert np.abs(shares(table) - probabilities(law, vocab)).max() <= 2.0**-31


def test_a_table_of_random_probabilities():
    p = np.random.default_rng(0).dirichlet(np.full(1000, 0.3))
    assert np.abs(shares(table_of(p)) - p).max() <= 2.0**-31


def test_uniform_tokens_need_no_table():
    assert alias_table("uniform", 100) is None


@pytest.mark.parametrize("vocab", [3, 64, 1000])
def test_a_word_names_the_token_that_whole_numbers_say(vocab: int):
    table, bits = alias_table("zipf:1.3", vocab), bits_of(vocab)
    assert table is not None
    words = np.random.default_rng(2).integers(0, 2**32, 50_000, dtype=np.uint32)
    product = words.astype(np.uint64) * np.uint64(vocab)
    bucket, place = product >> np.uint64(32), (product & np.uint64(2**32 - 1)) >> np.uint64(bits)
    entry = table[bucket.astype(int)]
    expected = np.where(place < entry >> bits, bucket, entry & (2**bits - 1))
    np.testing.assert_array_equal(token_of(jnp.asarray(words), vocab, jnp.asarray(table)), expected)


@pytest.mark.parametrize("p", [[1 - 1e-9, 5e-10, 0.0, 5e-10], [0.0, 1.0]])
def test_tokens_of_no_probability_are_never_drawn(p: list[float]):
    table = table_of(np.array(p))
    assert (shares(table)[np.array(p) == 0] == 0).all()
    assert np.abs(shares(table) - p).max() <= 2.0**-31


def test_words_name_tokens_as_often_as_the_table_says():
    vocab = 100
    table = alias_table("zipf:1", vocab)
    assert table is not None
    words = np.random.default_rng(1).integers(0, 2**32, 2**20, dtype=np.uint32)
    drawn = np.asarray(token_of(jnp.asarray(words), vocab, jnp.asarray(table)))
    p = probabilities("zipf:1", vocab)
    spread = np.sqrt(p * (1 - p) / len(words))
    # The largest of 100 normal deviations is above 4.5 once in 1,500 times.
    assert (np.abs(np.bincount(drawn, minlength=vocab) / len(words) - p) < 4.5 * spread).all()
