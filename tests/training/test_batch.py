"""Batches: the same trials as alone, whatever they share a call with."""

import dataclasses
import subprocess
import sys
from typing import Any

import jax
import patience
import pytest

import mnemoscope.training.three_step.batch
from mnemoscope import Retrieval, SpecError, simulate, simulate_many
from mnemoscope.engine.layout import Platform, choose_layout, needed_bytes
from mnemoscope.engine.memory_budget import MemoryBudget
from mnemoscope.training.three_step.batch import batch_size
from mnemoscope.training.three_step.call import bucket, call_for, read_results, start_call

BASE = Retrieval(vocab=32, dim=20, length=4, samples=2000, test_samples=500)


SETTINGS = [
    dict(),
    dict(samples=300, dim=17),
    dict(width=12, activation="tanh", eta=1.0, gamma=1e6, trigger="additive", embedding="sphere"),
    dict(embedding="orthonormal", dim=40, samples=100),  # few samples: logits are counts, and tie
    dict(tokens="zipf:1.2"),
    pytest.param(dict(embedding="sphere", then="adamw", steps=3, eta=1.0, gamma=5.0), marks=pytest.mark.long),
    dict(attention="locked"),
]


LAWS = ("zipf:0.5", "zipf:1.2", "zipf:3", "uniform")


@pytest.mark.parametrize("values", SETTINGS)
def test_a_trial_is_the_same_to_the_bit_alone_and_in_a_batch(values: dict[str, Any]):
    jobs = [(BASE.replace(**values), seed) for seed in (0, 1)]
    others = [(BASE.replace(samples=n, dim=d), 5) for n in (200, 4000) for d in (18, 31)]
    if "tokens" in values:  # beside other frequencies, which share its program
        others = [(spec.replace(tokens=law), seed) for (spec, seed), law in zip(others, LAWS, strict=True)]
    together = simulate_many([*others, *jobs, *others])[len(others) :]
    for job, batched in zip(jobs, together, strict=False):
        alone = simulate(*job)
        assert (batched.spec, batched.seed) == job
        assert (batched.status, batched.steps) == (alone.status, alone.steps)


@pytest.mark.parametrize("values", SETTINGS[:5])
@pytest.mark.long
def test_trials_side_by_side_are_the_same_to_rounding(values: dict[str, Any], monkeypatch: pytest.MonkeyPatch):
    """As on a GPU, where many share a call: ties are no matter of rounding either."""
    spec = BASE.replace(**values)
    jobs = [(spec.replace(samples=n), seed) for n in (spec.samples, 1500) for seed in (0, 1)]
    alone = simulate_many(jobs)
    sizes: list[int] = []
    real = start_call

    def heard(call: Any, jobs: Any) -> Any:
        sizes.append(call.size)
        return real(call, jobs)

    monkeypatch.setattr(mnemoscope.training.three_step.batch, "batch_size", lambda *_: 4)
    monkeypatch.setattr(mnemoscope.training.three_step.batch, "start_call", heard)
    beside = simulate_many(jobs)
    assert sizes == [4]
    for one, other in zip(alone, beside, strict=True):
        for step, same in zip(one.steps, other.steps, strict=True):
            for name, value in dataclasses.asdict(step).items():
                if name in ("signal", "std") and value is not None:
                    assert getattr(same, name) == pytest.approx(value, rel=1e-4)
                else:
                    assert getattr(same, name) == value


def test_frequencies_share_a_program_but_for_uniform_ones():
    one, other = (BASE.replace(tokens=law) for law in ("zipf:1", "zipf:2.5"))
    assert bucket(one, "cpu") == bucket(other, "cpu") != bucket(BASE, "cpu")
    memory = MemoryBudget("cpu", None, None)
    assert call_for(one, "float32", memory, None) == call_for(other, "float32", memory, None)


def test_dimensions_share_buckets():
    assert bucket(BASE, "cpu").dim == bucket(BASE.replace(dim=32), "cpu").dim == 32
    assert bucket(BASE, "cpu") == bucket(BASE.replace(samples=7, eta="limit", test_samples=9), "cpu")
    assert bucket(BASE.replace(dim=33), "cpu").dim == 64
    assert bucket(BASE.replace(dim=3), "cpu").dim == 16
    assert bucket(BASE.replace(dim=40, embedding="orthonormal"), "cpu").dim == 40


def test_the_budget_sets_the_batch():
    layout = choose_layout(BASE, platform="gpu")
    each = sum(needed_bytes(BASE, layout).values())

    def size(jobs: int, budget: int, platform: Platform = "gpu") -> int:
        return batch_size(BASE, layout, jobs, "float32", MemoryBudget(platform, None, budget))

    assert size(100, each) == 1
    assert size(100, 5 * each) == 4
    assert size(3, 100 * each) == mnemoscope.training.three_step.batch.FILLED
    assert size(1000, 10**15) == mnemoscope.training.three_step.batch.MOST_AT_ONCE
    assert size(100, 10**15, "cpu") == 1


def test_a_budget_too_small_for_spare_columns_gets_none():
    spec = BASE.replace(vocab=256, dim=65)
    dims = []
    for budget in (int(2e9 / 1.2**k) for k in range(60)):
        try:
            call = call_for(spec, "float32", MemoryBudget("cpu", None, budget), None)
        except SpecError:
            break
        assert call is not None
        assert sum(needed_bytes(call.program, call.layout).values()) <= budget
        dims.append(call.program.dim)
    assert set(dims) == {128, 65}
    assert dims == sorted(dims, reverse=True)


def test_a_gpu_compiles_few_sizes_of_batch():
    def size(spec: Retrieval, jobs: int) -> int:
        room = MemoryBudget("gpu", 2**37, None)
        return batch_size(spec, choose_layout(spec, "float32", "gpu"), jobs, "float32", room)

    assert {size(BASE, jobs) for jobs in (1, 3, 8)} == {8}
    assert size(BASE, 9) == 16
    large = BASE.replace(vocab=2**14, dim=256)  # where a trial more is felt
    assert size(large, 1) == 1


def test_batches_handed_out_ahead_of_time_are_the_same(monkeypatch: pytest.MonkeyPatch):
    jobs = [(BASE.replace(samples=n), seed) for n in (500, 700) for seed in range(2)]
    expected = simulate_many(jobs)
    begun: list[int] = []

    def start(call: Any, part: Any) -> Any:
        begun.append(len(read))
        return start_call(call, part)

    read: list[int] = []

    def finish(started: Any, part: Any) -> Any:
        read.append(len(part))
        return read_results(started, part)

    monkeypatch.setitem(mnemoscope.training.three_step.batch.AHEAD, "cpu", 1)
    monkeypatch.setattr(mnemoscope.training.three_step.batch, "start_call", start)
    monkeypatch.setattr(mnemoscope.training.three_step.batch, "read_results", finish)
    found = simulate_many(jobs)
    assert begun == [0, 0, 1, 2]  # each before the one before it was read
    assert read == [1, 1, 1, 1]
    assert [(one.spec, one.seed, one.steps) for one in found] == [(one.spec, one.seed, one.steps) for one in expected]


@pytest.mark.long
@pytest.mark.parametrize("ahead", [0, 1])
def test_out_of_memory_halves_the_batch_and_says_so_once(ahead: int, monkeypatch: pytest.MonkeyPatch):
    tried: list[int] = []

    def tight(call: Any, jobs: Any) -> Any:
        tried.append(call.size)
        if call.size > 2:
            raise jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: out of memory")
        return start_call(call, jobs)

    monkeypatch.setattr(mnemoscope.training.three_step.batch, "batch_size", lambda *_: 4)
    monkeypatch.setattr(mnemoscope.training.three_step.batch, "start_call", tight)
    monkeypatch.setitem(mnemoscope.training.three_step.batch.AHEAD, "cpu", ahead)
    said: list[str] = []
    jobs = [(BASE, seed) for seed in range(4)]
    trials = simulate_many(jobs, say=said.append)
    assert [trial.seed for trial in trials] == [0, 1, 2, 3]
    assert tried == [4, 2, 2]
    assert said == ["out of memory: continuing with 2 trials at a time"]
    monkeypatch.undo()
    assert [one.accuracy for one in simulate_many(jobs)] == [one.accuracy for one in trials]


@pytest.mark.long
def test_training_that_goes_on_runs_alone():
    spec = BASE.replace(then="gd", steps=2)
    (trial,) = simulate_many([(spec, 0)])
    assert trial.steps[-1].name == "gd 2"


@pytest.mark.long
def test_orthonormal_batches_come_to_an_end():
    """LAPACK's QR inside this program waited for ever on two cores."""
    code = (
        "from mnemoscope import Retrieval, simulate_many; spec = Retrieval(vocab=96, dim=120, "
        "length=64, samples=12800, embedding='orthonormal'); "
        "assert all(one.accuracy == 1 for one in simulate_many([(spec, k) for k in range(2)]))"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=patience.SECONDS)
