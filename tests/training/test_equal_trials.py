"""The same setting and seed give the same numbers, to the bit on a CPU, however they are asked for:
alone, among others, or by workers of a cluster, and as the store gives them back."""

import random
from pathlib import Path
from typing import Any, get_args

import pytest

from mnemoscope.engine.record import AnyJob, Trial
from mnemoscope.experiments.sweep import sweep
from mnemoscope.experiments.workers.batches import batches, run_batch
from mnemoscope.experiments.workers.cluster import open_workers
from mnemoscope.spec import Activation, Embedding, Facts, Memory, Retrieval
from mnemoscope.store.trials import Store
from mnemoscope.training.three_step.simulation import simulate

SHARED = 4  # settings that a number of jobs share, so that batches have something to hold


def draw_setting(draw: random.Random, number: int) -> Retrieval | Memory | Facts:
    """A small setting of any kind; the law goes round, so that each has its share."""
    if number % 5 == 3:
        if draw.random() < 0.3:
            return Memory(dim=12, items=draw.choice([30, 100]), embedding="sphere")
        width = draw.choice([0, 16])
        return Memory(
            dim=draw.choice([8, 16]), items=draw.choice([20, 40, 90]), method="trained", width=width, max_steps=320
        )
    if number % 5 == 4:
        return Facts(
            subjects=draw.choice([3, 6]),
            relations=2,
            answers=3,
            dim=8,
            heads=2,
            head_dim=4,
            width=draw.choice([0, 8]),
            max_steps=96,
            test_samples=256,
        )
    law = get_args(Embedding)[number % len(get_args(Embedding))]
    limit = draw.random() < 0.6
    after = not limit and draw.random() < 0.3
    width = draw.choice([0, 0, 8])
    more: dict[str, Any] = {"then": draw.choice(["gd", "adamw"]), "steps": 2} if after else {}
    return Retrieval(
        vocab=24,
        dim=draw.choice([24, 30]) if law == "orthonormal" else draw.choice([7, 16, 20]),
        length=draw.choice([3, 6]),
        samples=draw.choice([12, 60, 400, 1500]),
        embedding=law,
        width=width,
        activation=draw.choice(get_args(Activation)),
        trigger=draw.choice(["keys", "additive"]),
        eta="limit" if limit else 1.0,
        gamma="limit" if limit or draw.random() < 0.5 else 20.0,
        test_samples=400,
        tokens=draw.choice(["uniform", "zipf:0.6", "zipf:1.7"]),
        **more,
    )


def numbers(record: Trial) -> dict[str, Any]:
    """Everything that is reported, but how long it took and the state of the repository."""
    return {name: value for name, value in record.as_dict().items() if name not in ("seconds", "code")}


def alone(job: AnyJob) -> Trial:
    spec, seed = job
    if isinstance(spec, Retrieval):
        return simulate(spec, seed)
    (record,) = run_batch([job])
    return record


def compare(trials: int, folder: Path) -> None:
    draw = random.Random(7)
    different: dict[str, Retrieval | Memory | Facts] = {}
    number = 0
    while len(different) < trials // SHARED:  # small settings come up twice now and then
        spec = draw_setting(draw, number)
        different[spec.id] = spec
        number += 1
    specs = list(different.values())
    jobs: list[AnyJob] = [(spec, seed) for spec in specs for seed in range(SHARED)]
    one = {(job[0].id, job[1]): numbers(alone(job)) for job in jobs}
    assert all(found["status"] in ("ok", "unreached") for found in one.values())
    mixed = draw.sample(jobs, len(jobs))
    for batch in batches(mixed, 16):
        for job, record in zip(batch, run_batch(batch), strict=True):
            assert numbers(record) == one[job[0].id, job[1]]
    with Store(folder / "s.db") as store, open_workers("local:2") as workers:
        tally = sweep(mixed, store, workers)
        assert (tally.done, tally.failed) == (len(one), 0)
        found = {(trial.spec.id, trial.seed): numbers(trial) for trial in store.find()}
    assert found == one
    print(f"{len(one)} trials, {len(specs)} settings: alone, in batches and by two workers equal")


@pytest.mark.long
def test_the_same_trial_alone_in_a_batch_and_by_workers(tmp_path: Path):
    compare(40, tmp_path)


@pytest.mark.longest
def test_two_hundred_trials_alone_in_batches_and_by_workers(tmp_path: Path):
    compare(200, tmp_path)
