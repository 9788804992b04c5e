"""The solver with certificates says what linear programming says."""

import numpy as np
import pytest
from scipy.optimize import linprog

from mnemoscope.experiments.exact_storage import store
from mnemoscope.experiments.validation.trained import half_of, numbers_to_try
from mnemoscope.theory.trained.capacity import half_point, separable_probability


def separable(U: np.ndarray, inputs: np.ndarray, own: np.ndarray) -> bool:
    """Is there a W that gives every item a margin of 1?"""
    rows = [
        -np.outer(U[label] - U[other], r).ravel()
        for r, label in zip(inputs, own, strict=True)
        for other in range(len(U))
        if other != label
    ]
    program = linprog(np.zeros(len(rows[0])), np.array(rows), -np.ones(len(rows)), bounds=(None, None))
    return program.status == 0


@pytest.mark.parametrize("items", [5, 7, 9, 11])
def test_verdicts_are_those_of_a_linear_program(items: int):
    random = np.random.default_rng(items)
    verdicts = []
    for _ in range(12):
        U, inputs = random.standard_normal((items, 4)), random.standard_normal((items, 4))
        own = random.permutation(items)
        verdict = store(U, inputs, own)
        assert verdict.separable == separable(U, inputs, own)
        assert (verdict.accuracy == 1) == bool(verdict.separable)
        verdicts.append(verdict.separable)
    assert items not in (7, 9) or len(set(verdicts)) == 2  # both answers occur


def test_shared_answers_and_more_labels_than_items():
    random = np.random.default_rng(0)
    U, inputs = random.standard_normal((3, 2)), random.standard_normal((6, 2))
    for _ in range(10):
        own = random.integers(3, size=6)
        assert store(U, inputs, own).separable == separable(U, inputs, own)


def test_the_middle_of_a_crossing_is_found():
    places = [80.0, 90.0, 100.0, 110.0, 120.0]
    middle, error = half_of(places, [40, 38, 20, 2, 0], [0, 2, 20, 38, 40])
    assert middle == pytest.approx(100, abs=2 * error)
    assert 0 < error < 3


@pytest.mark.parametrize(("dim", "inputs"), [(8, 8), (8, 24), (8, 40), (12, 48), (16, 32)])
def test_the_middle_is_that_of_a_crossing_with_a_long_tail(dim: int, inputs: int):
    """Where labels are lost inside the hull the share falls slowly at first; the fit is to the part about a half."""
    places = numbers_to_try(dim, inputs, "gaussian")
    stored = [separable_probability(items, items, dim, inputs, "gaussian") for items in places]
    middle, _ = half_of([*map(float, places)], stored, [1 - share for share in stored])
    assert middle == pytest.approx(half_point(dim, inputs, "gaussian"), rel=0.01)
