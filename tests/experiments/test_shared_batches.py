"""Drivers in threads, whose trials run in broker batches."""

import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import patience
import pytest

from mnemoscope import Retrieval, SpecError, Trial
from mnemoscope.engine.record import AnyJob
from mnemoscope.experiments.sweep import ThisProcess, Workers, sweep
from mnemoscope.experiments.workers import shared_batches
from mnemoscope.experiments.workers.batches import run_batch
from mnemoscope.experiments.workers.shared_batches import Broker, Client
from mnemoscope.store.trials import Store

# The sizes of tests/training, whose programs serve here too.
TOKENS = Retrieval(vocab=32, dim=20, length=4, samples=400)
# Two settings that share no program with it, nor with each other.
OTHERS: tuple[dict[str, Any], ...] = ({"attention": "locked"}, {"tokens": "zipf:1.2"})


def rounds(seed: int) -> list[list[AnyJob]]:
    """What a driver asks for, one sweep after the other; seed 2 has one round less."""
    first: list[AnyJob] = [(TOKENS, seed)]
    second: list[AnyJob] = [(TOKENS.replace(**one), seed) for one in OTHERS]
    return [first] if seed == 2 else [first, second]


def drive(seed: int, path: Path, workers: Workers) -> dict[tuple[str, int], float | None]:
    with Store(path) as store:
        for jobs in rounds(seed):
            assert sweep(jobs, store, workers).failed == 0
        kept = list(store.find())
    return {(one.spec.id, one.seed): one.accuracy for one in kept if one.seed == seed}


def in_threads(work: Callable[[Client, int], None], shared: Broker) -> None:
    def one(client: Client, seed: int) -> None:
        try:
            work(client, seed)
        finally:
            client.leave()

    threads = [threading.Thread(target=one, args=(d, k)) for k, d in enumerate(shared.clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=patience.SECONDS)
        assert not thread.is_alive()


def test_drivers_share_batches_and_find_what_they_would_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    ran: list[list[int]] = []

    def noted(batch: list[AnyJob], device: str) -> list[Trial]:
        ran.append(sorted(seed for _, seed in batch))
        return run_batch(batch, "cpu")

    monkeypatch.setattr(shared_batches, "run_batch", noted)
    monkeypatch.setattr(shared_batches, "PATIENCE_SECONDS", patience.SECONDS)
    found: dict[int, dict[tuple[str, int], float | None]] = {}

    def work(client: Client, seed: int) -> None:
        found[seed] = drive(seed, tmp_path / "s.db", client)

    in_threads(work, Broker("cpu", 3))
    # One setting, and two later on, each in one batch for all who ask for it.
    assert sorted(ran) == [[0, 1], [0, 1], [0, 1, 2]]
    for seed in range(3):
        alone = drive(seed, tmp_path / f"{seed}.db", ThisProcess("cpu"))
        assert found[seed] == pytest.approx(alone, abs=2 / 64)
        assert len(alone) == len([job for jobs in rounds(seed) for job in jobs])


def test_drivers_out_of_step_find_together_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """One driver's first round is longer than the others' patience; later rounds are broker."""
    shared, long = Broker("cpu", 2), TOKENS.replace(vocab=64)
    ran: list[list[tuple[int, int]]] = []
    # The clock stands still but for what a batch takes: how fast the machine is changes nothing.
    now, looked = 0.0, 0
    begin = shared._begin

    def look() -> None:
        nonlocal looked
        looked += 1
        begin()

    def slow(batch: list[AnyJob], device: str) -> list[Trial]:
        nonlocal now
        ran.append(sorted((spec.dim, seed) for spec, seed in batch if isinstance(spec, Retrieval)))
        if batch[0][0] == long:
            patience.wait_until(lambda: shared._pending, "the other driver asks for more")
        if batch[0][0] != TOKENS:
            now += 0.45
            before = looked
            patience.wait_until(lambda: looked >= before + 2, "those who wait look at the clock")
        return [Trial(spec, seed, "ok") for spec, seed in batch if isinstance(spec, Retrieval)]

    monkeypatch.setattr(shared, "_begin", look)
    monkeypatch.setattr(shared_batches, "run_batch", slow)
    monkeypatch.setattr(shared_batches, "PATIENCE_SECONDS", 0.2)
    monkeypatch.setattr(shared_batches, "time", SimpleNamespace(monotonic=lambda: now))

    def work(client: Client, seed: int) -> None:
        first = long if seed else TOKENS
        with Store(tmp_path / "s.db") as store:
            for spec in (first, *(TOKENS.replace(dim=d) for d in (21, 24, 28))):
                sweep([(spec, seed)], store, client)

    in_threads(work, shared)
    assert ran[-2:] == [[(24, 0), (24, 1)], [(28, 0), (28, 1)]]


def test_what_is_ready_is_kept_before_an_error_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def sometimes(batch: list[AnyJob], device: str) -> list[Trial]:
        if batch[0][0] != TOKENS:
            raise SpecError("device", "expected another one, got this")
        return [Trial(spec, seed, "ok") for spec, seed in batch if isinstance(spec, Retrieval)]

    monkeypatch.setattr(shared_batches, "run_batch", sometimes)

    def work(client: Client, seed: int) -> None:
        with Store(tmp_path / "s.db") as store:
            with pytest.raises(SpecError, match="expected another one"):
                sweep([(TOKENS, seed), (TOKENS.replace(length=5), seed)], store, client)
            assert store.count() == 1

    in_threads(work, Broker("cpu", 1, threads=1))


def test_an_error_reaches_everybody_who_waits_for_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def refuse(batch: list[AnyJob], device: str) -> list[Trial]:
        raise SpecError("device", "expected another one, got this")

    monkeypatch.setattr(shared_batches, "run_batch", refuse)
    heard: list[int] = []

    def work(client: Client, seed: int) -> None:
        with pytest.raises(SpecError, match="expected another one"):
            drive(seed, tmp_path / "s.db", client)
        heard.append(seed)

    in_threads(work, Broker("cpu", 2))
    assert sorted(heard) == [0, 1]


def test_nobody_waits_for_ever_for_a_driver_that_waits_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def quick(batch: list[AnyJob], device: str) -> list[Trial]:
        return [Trial(spec, seed, "ok") for spec, seed in batch if isinstance(spec, Retrieval)]

    monkeypatch.setattr(shared_batches, "run_batch", quick)
    monkeypatch.setattr(shared_batches, "PATIENCE_SECONDS", 0.2)
    done = threading.Event()

    def work(client: Client, seed: int) -> None:
        if seed == 0:  # as one whose trials another process has claimed
            assert done.wait(timeout=patience.SECONDS)
        else:
            assert drive(seed, tmp_path / "s.db", client)
            done.set()

    in_threads(work, Broker("cpu", 2))
    assert done.is_set()
