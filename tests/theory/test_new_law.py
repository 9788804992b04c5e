"""Theory says nothing of a law or an activation that it does not list; `tests/test_adding.py` adds some."""

from typing import get_args

import numpy as np
import pytest

from mnemoscope.spec import Activation, Embedding, Retrieval
from mnemoscope.theory.activation import FORMULAS
from mnemoscope.theory.critical import critical_value
from mnemoscope.theory.fast_predict import surface
from mnemoscope.theory.predict import predict
from mnemoscope.theory.registry import derived_laws
from mnemoscope.theory.spec_grid import SpecGrid

SPEC = Retrieval(vocab=128, dim=40, length=8, samples=2000, width=64)


def test_theory_lists_what_there_is():
    assert get_args(Embedding) == derived_laws()
    assert get_args(Activation) == tuple(FORMULAS)


@pytest.mark.parametrize("change", [{"embedding": "rademacher"}, {"activation": "cube"}])
def test_theory_has_no_word_on_what_it_does_not_list(change: dict[str, str]):
    spec = SPEC.model_copy(update=change)  # a name that this version does not accept yet
    prediction = predict(spec)
    assert (prediction.accuracy, prediction.low, prediction.attention_accuracy) == (None, None, None)
    assert not prediction.valid
    assert prediction.regime == "none"
    assert f"{next(iter(change.values()))}" in prediction.notes[0]
    assert "not derived" in prediction.notes[0]
    assert critical_value(spec, "samples", 0.5) is None
    cells = surface(SpecGrid.of(spec.model_dump(), samples=np.array([500.0, 2000.0])))
    assert np.isnan(cells.accuracy).all()
    assert set(cells.regime) == {"none"}
    # Without an MLP its activation does not matter.
    alone = predict(SPEC.model_copy(update={"activation": "cube", "width": 0}))
    assert alone.valid
    assert alone.accuracy == predict(SPEC.replace(width=0)).accuracy
