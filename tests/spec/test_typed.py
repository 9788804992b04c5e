"""What users write, with types: pyright checks this file, and the tests run it."""

from pathlib import Path
from typing import Any

import numpy as np
import optax
import own_models
import pytest

import mnemoscope as mn
from mnemoscope.tasks.own import Lookup


@pytest.fixture(autouse=True)
def own_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Matrices and probabilities of one's own are kept in the user's folder."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))


def law(words: Any, rows: int, dim: Any) -> Any:
    return mn.normal(words, rows, dim) / dim**0.5


def evenly(vocab: int) -> np.ndarray:
    return np.full(vocab, 1 / vocab)


def test_a_setting_takes_names_arrays_and_functions():
    matrix = np.random.default_rng(0).normal(size=(8, 4))
    by_name = mn.Retrieval(vocab=8, dim=4, length=2, samples=50, embedding="sphere", tokens="zipf:1")
    by_function = mn.Retrieval(vocab=8, dim=4, length=2, samples=50, embedding=law, tokens=evenly)
    by_array = mn.Retrieval(vocab=8, dim=4, length=2, samples=50, embedding=matrix, tokens=np.full(8, 1 / 8))
    names: list[str] = [spec.embedding for spec in (by_name, by_function, by_array)]
    assert [name.partition(":")[0] for name in names] == ["sphere", law.__module__, "file"]
    assert by_function.tokens == by_array.tokens
    memory = mn.Memory(items=8, dim=4, embedding=law, frequencies=evenly)
    facts = mn.Facts(subjects=2, relations=2, answers=2, dim=4, heads=1, head_dim=2, frequencies=np.full(4, 0.25))
    assert memory.frequencies.startswith("file:")
    assert facts.frequencies.startswith("file:")


def test_models_tasks_and_optimisers_are_objects():
    spec = mn.Own(model=own_models.Bag(), task=Lookup(), optimiser=optax.sgd(0.1), batch=8, max_steps=8)
    assert spec.optimiser.startswith("optax")
    assert mn.Own(model=own_models.Bag(), task=Lookup(), optimiser="muon").optimiser == "muon"
