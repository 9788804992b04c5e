"""Batches: the same trials as alone, whatever they share a call with."""

import subprocess
import sys
from typing import Any

import jax
import pytest

import mnemoscope.batch
from mnemoscope import Retrieval, simulate, simulate_many
from mnemoscope.batch import batch_size, bucket
from mnemoscope.layout import choose_layout, needed_bytes
from mnemoscope.room import Room

BASE = Retrieval(vocab=32, dim=20, length=4, samples=2000, test_samples=500)


@pytest.mark.parametrize(
    "values",
    [
        dict(),
        dict(
            width=12, activation="tanh", eta=1.0, gamma=1e6, trigger="additive", embedding="sphere"
        ),
        dict(embedding="orthonormal", dim=40),
    ],
)
def test_a_trial_is_the_same_alone_and_in_a_batch(values: dict[str, Any]):
    spec = BASE.replace(**values)
    frame = spec.embedding == "orthonormal"
    dims = [spec.dim] if frame else [17, 20, 32]
    # Without overlaps a logit is a count, and few samples tie exactly, whole tokens at a time.
    counts = (1000, 2000) if frame else (300, 2000)
    jobs = [(spec.replace(dim=d, samples=n), seed)
            for d in dims for n in counts for seed in (0, 1)]  # fmt: skip
    together = simulate_many(jobs)
    for (one, seed), trial in zip(jobs, together, strict=True):
        assert (trial.spec, trial.seed) == (one, seed)
    for at in (0, 3):  # the smallest d, at both N
        alone, batched = simulate(*jobs[at]), together[at]
        assert [step.name for step in alone.steps] == [step.name for step in batched.steps]
        for one, other in zip(alone.steps, batched.steps, strict=True):
            # Rounding may turn a tie over, on a sequence or two.
            assert abs(one.accuracy - other.accuracy) <= 2 / spec.test_samples
            assert abs(one.attention_accuracy - other.attention_accuracy) <= 2 / spec.test_samples
            if one.signal is not None:
                assert other.signal == pytest.approx(one.signal, rel=1e-4)
                assert other.std == pytest.approx(one.std, rel=1e-4)


def test_dimensions_share_buckets():
    assert bucket(BASE).dim == bucket(BASE.replace(dim=32)).dim == 32
    assert bucket(BASE) == bucket(BASE.replace(samples=7, eta="limit", test_samples=9))
    assert bucket(BASE.replace(dim=33)).dim == 64
    assert bucket(BASE.replace(dim=3)).dim == 16
    assert bucket(BASE.replace(dim=40, embedding="orthonormal")).dim == 40


def test_the_budget_sets_the_batch():
    layout = choose_layout(BASE)
    each = sum(needed_bytes(BASE, layout).values())

    def size(jobs: int, budget: int) -> int:
        return batch_size(BASE, layout, jobs, "float32", Room("cpu", None, budget))

    assert size(100, each) == 1
    assert size(100, 5 * each) == 4
    assert size(3, 100 * each) == 4
    assert size(100, 10**15) == mnemoscope.batch.MOST_AT_ONCE["cpu"]


def test_a_gpu_compiles_few_sizes_of_batch():
    def size(spec: Retrieval, jobs: int) -> int:
        room = Room("gpu", 2**37, None)
        return batch_size(spec, choose_layout(spec, "float32", "gpu"), jobs, "float32", room)

    assert {size(BASE, jobs) for jobs in (1, 3, 8)} == {8}
    assert size(BASE, 9) == 16
    large = BASE.replace(vocab=2**14, dim=256)  # where a trial more is felt
    assert size(large, 1) == 1


def test_out_of_memory_halves_the_batch_and_says_so_once(monkeypatch: pytest.MonkeyPatch):
    real = mnemoscope.batch._run_batch
    tried: list[int] = []

    def tight(call: Any, jobs: Any) -> Any:
        tried.append(call.size)
        if call.size > 2:
            raise jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: out of memory")
        return real(call, jobs)

    monkeypatch.setattr(mnemoscope.batch, "_run_batch", tight)
    said: list[str] = []
    jobs = [(BASE, seed) for seed in range(4)]
    trials = simulate_many(jobs, say=said.append)
    assert [trial.seed for trial in trials] == [0, 1, 2, 3]
    assert tried == [4, 2, 2]
    assert said == ["out of memory: going on with 2 trials at a time"]
    monkeypatch.setattr(mnemoscope.batch, "_run_batch", real)
    assert [one.accuracy for one in simulate_many(jobs)] == [one.accuracy for one in trials]


def test_training_that_goes_on_runs_alone():
    spec = BASE.replace(then="gd", steps=2)
    (trial,) = simulate_many([(spec, 0)])
    assert trial.steps[-1].name == "gd 2"


def test_orthonormal_batches_come_to_an_end():
    """LAPACK's QR inside this program waited for ever on two cores."""
    code = (
        "from mnemoscope import Retrieval, simulate_many; spec = Retrieval(vocab=96, dim=120, "
        "length=64, samples=12800, embedding='orthonormal'); "
        "assert all(one.accuracy == 1 for one in simulate_many([(spec, k) for k in range(2)]))"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
