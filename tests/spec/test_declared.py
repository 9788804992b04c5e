"""What a spec declares decides which form of the steps is taken: counters, frozen embeddings, one trigger."""

import numpy as np
import pytest

from mnemoscope import Retrieval, SpecError, simulate
from mnemoscope.engine.layout import choose_layout
from mnemoscope.training.three_step.by_token import _fits_in_16_bits

SPEC = Retrieval(vocab=1024, dim=8, length=64, samples=1000, test_samples=64)


class Skewed(Retrieval, frozen=True, extra="forbid"):
    """One token is half of all."""

    @property
    def largest_token_probability(self) -> float:
        return 0.5


class Trainable(Retrieval, frozen=True, extra="forbid"):
    """Embeddings that training would move."""

    @property
    def frozen_embeddings(self) -> bool:
        return False


def test_tokens_are_uniform():
    assert SPEC.largest_token_probability == 1 / 1024
    assert SPEC.most_in_a_cell(2**20) == 2**20 / 2**10 + 64 * 2**20 / 2**20


@pytest.mark.long
def test_a_frequent_token_is_counted_in_32_bits():
    layout = choose_layout(SPEC)
    skewed = Skewed(**SPEC.model_dump())
    assert _fits_in_16_bits(SPEC.program(), layout)
    assert not _fits_in_16_bits(skewed.program(), layout)
    # The wide counters count the same.
    wide, narrow = (simulate(spec, 0, device="cpu") for spec in (skewed, SPEC))
    assert [step.accuracy for step in wide.steps] == [step.accuracy for step in narrow.steps]
    np.testing.assert_array_equal([s.signal for s in wide.steps[2:]], [s.signal for s in narrow.steps[2:]])


def test_too_many_for_32_bits_is_refused():
    many = SPEC.replace(samples=2**30)
    with pytest.raises(SpecError, match="few enough for 32-bit counts"):
        Skewed(**many.model_dump())


def test_steps_that_need_frozen_embeddings_refuse_others():
    with pytest.raises(SpecError, match="expected frozen embeddings and one trigger"):
        simulate(Trainable(**SPEC.model_dump()), 0, device="cpu")
