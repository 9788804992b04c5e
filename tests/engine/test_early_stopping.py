"""Trainings side by side: rows that nobody asked for change nothing, and batches shrink in time."""

from types import SimpleNamespace
from typing import Any

import jax.numpy as jnp
import numpy as np

from mnemoscope.engine.early_stopping import TrainingJob, TrainingPlan, filled, most_rows, row_count, train_until_target
from mnemoscope.engine.kinds import Hear
from mnemoscope.spec import Memory

CPU, GPU = (SimpleNamespace(platform=name, device_kind=name) for name in ("cpu", "gpu"))


def test_a_gpu_gets_few_sizes_of_batch():
    assert [row_count(n, CPU, 64) for n in (1, 5, 9)] == [1, 5, 9]
    assert [row_count(n, GPU, 64) for n in (1, 5, 9, 16, 17)] == [8, 8, 12, 16, 24]
    assert filled(["a", "b"], CPU, 64) == ["a", "b"]
    assert filled(["a", "b"], GPU, 64) == ["a"] + ["b"] * 7


def test_rows_keep_to_the_memory_that_there_is():
    for fits in (1, 2, 3, 7, 33, 1000):
        most = most_rows(fits, 64, GPU)
        assert most <= min(fits, 64)
        assert all(row_count(n, GPU, most) <= most for n in range(1, most + 1))
    assert most_rows(0, 64, CPU) == 1
    assert most_rows(33, 64, CPU) == 1  # alone, so that nobody beside it changes its last digits


def jobs(count: int) -> list[TrainingJob]:
    """The k-th of them reaches its target at its k-th check."""
    spec = Memory(items=2, dim=4, method="trained", target=0.5, max_steps=100 * count)
    return [(spec, seed) for seed in range(count)]


def run(count: int, place: Any, hear: Hear | None = None, **more: Any) -> tuple[list[Any], list[int]]:
    sizes: list[int] = []

    def advance(rows: Any) -> tuple[Any, dict[str, np.ndarray]]:
        own, taken = rows
        sizes.append(len(own))
        right = np.asarray(taken >= own, float)
        return (own, taken + 1), {"loss": np.zeros(len(own)), "accuracy": right}

    size = row_count(count, place, 64)
    rows = (jnp.arange(size), jnp.zeros(size))
    plan = TrainingPlan(advance, 100, lambda rows: {"accuracy": np.ones(len(rows[0]))}, place, "float32", 64, **more)
    return train_until_target(jobs(count), rows, plan, hear), sizes


def test_rows_beyond_the_jobs_are_not_heard():
    for place in (CPU, GPU):
        made, sizes = run(5, place)
        assert [one.metrics["steps"] for one in made] == [100, 200, 300, 400, 500]
        assert all(one.status == "ok" for one in made)
        # What is left of such quick checks is not worth another compilation.
        assert set(sizes) == {row_count(5, place, 64)}


def test_a_batch_shrinks_and_nobody_is_mistaken():
    for place, expected in ((CPU, [20, 10, 5, 2, 1]), (GPU, [24, 12])):
        made, sizes = run(20, place, compile_seconds=0.0)
        assert [one.metrics["steps"] for one in made] == [100 * (k + 1) for k in range(20)]
        assert [one.seed for one in made] == list(range(20))
        assert list(dict.fromkeys(sizes)) == expected


def test_every_training_is_heard_of_until_it_ends():
    heard: dict[int, list[float]] = {}
    run(3, CPU, lambda spec, seed, share: heard.setdefault(seed, []).append(share))
    assert heard == {0: [1.0], 1: [1 / 3, 1.0], 2: [1 / 3, 2 / 3, 1.0]}
