"""Trainings side by side: rows that nobody asked for change nothing, and batches shrink in time."""

from types import SimpleNamespace
from typing import Any

import jax.numpy as jnp
import numpy as np

from mnemoscope.spec import Memory
from mnemoscope.together import Lesson, School, filled, row_count, train_together

CPU, GPU = (SimpleNamespace(platform=name, device_kind=name) for name in ("cpu", "gpu"))


def test_a_gpu_gets_powers_of_two():
    assert [row_count(n, CPU) for n in (1, 5, 9)] == [1, 5, 9]
    assert [row_count(n, GPU) for n in (1, 5, 9, 16, 17)] == [8, 8, 16, 16, 32]
    assert filled(["a", "b"], CPU) == ["a", "b"]
    assert filled(["a", "b"], GPU) == ["a"] + ["b"] * 7


def lessons(count: int) -> list[Lesson]:
    """The k-th of them reaches its target at its k-th check."""
    return [Lesson(Memory(items=2, dim=4), seed, 0.5, 100 * count, 1) for seed in range(count)]


def run(count: int, place: Any) -> tuple[list[Any], list[int]]:
    sizes: list[int] = []

    def advance(rows: Any) -> tuple[Any, dict[str, np.ndarray]]:
        own, taken = rows
        sizes.append(len(own))
        right = np.asarray(taken >= own, float)
        return (own, taken + 1), {"loss": np.zeros(len(own)), "accuracy": right}

    rows = (jnp.arange(row_count(count, place)), jnp.zeros(row_count(count, place)))
    school = School(advance, 100, lambda rows: np.ones(len(rows[0])), place, "float32")
    return train_together(lessons(count), rows, school), sizes


def test_rows_beyond_the_lessons_are_not_heard():
    for place in (CPU, GPU):
        made, sizes = run(5, place)
        assert [one.metrics["steps"] for one in made] == [100, 200, 300, 400, 500]
        assert all(one.status == "ok" for one in made)
        # What is left of such quick checks is not worth another compilation.
        assert set(sizes) == {row_count(5, place)}
