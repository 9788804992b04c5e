"""Made-up trials, stores of them, and workers that hand them back."""

import re
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from mnemoscope import Retrieval, Step, Trial
from mnemoscope.engine.record import AnyJob
from mnemoscope.store.rows import TRIAL, as_checked
from mnemoscope.store.sqlite import transaction
from mnemoscope.store.trials import Store

SPEC = Retrieval(vocab=64, dim=32, length=4, samples=500)


def made(spec: Retrieval = SPEC, seed: int = 0, accuracy: float = 0.5, status: str = "ok") -> Trial:
    step = Step("V2", accuracy, 1.0, accuracy, recall=accuracy, signal=2.0, std=0.5)
    steps = (step,) if status == "ok" else ()
    return Trial(spec, seed, status, steps, seconds=0.1)  # pyright: ignore[reportArgumentType]


def repeat_trials(store: Store, seeds: range) -> None:
    """Every trial of seed 0 again under other seeds, which is faster than making them."""
    names = ["setting", *TRIAL]
    values = ", ".join("?1" if name == "seed" else name for name in names)
    summed = ", ".join("?1" if name == "seed" else as_checked(name) for name in TRIAL)
    with transaction(store.connection):
        for seed in seeds:
            store.connection.execute(
                f"INSERT OR IGNORE INTO trials ({', '.join(names)}, trial_checksum) "
                f"SELECT {values}, row_checksum({summed}) FROM trials WHERE seed = 0",
                (seed,),
            )


class Recorded:
    """Workers that hand back a made-up trial, and remember what they were asked for."""

    together, at_once = 8, 1

    def __init__(self) -> None:
        self.asked: list[AnyJob] = []
        self._batch: list[AnyJob] = []

    def submit(self, batch: list[AnyJob]) -> None:
        self._batch = batch

    def collect(self) -> Iterator[tuple[list[AnyJob], list[Trial]]]:
        batch, self._batch = self._batch, []
        self.asked += batch
        if batch:
            yield batch, [made(spec, seed) for spec, seed in batch if isinstance(spec, Retrieval)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    place = tmp_path / "trials.db"
    with Store(place) as store:
        store.add([made(seed=seed) for seed in range(6)])
        store.add([made(SPEC.replace(dim=16), seed) for seed in range(3)])
    return place


def change(path: Path, statement: str, *values: Any) -> None:
    """Change a store behind its back, as a failing disk would."""
    raw = sqlite3.connect(path)
    with raw:
        raw.execute(statement, values)
    raw.close()


def read_all(path: Path) -> dict[tuple[int, int], float | None]:
    with Store(path, writing=False) as store:
        return {(trial.spec.dim, trial.seed): trial.accuracy for trial in store.find()}


@contextmanager
def reports(caplog: pytest.LogCaptureFixture, pattern: str) -> Iterator[None]:
    """Damage is logged inside the block, in a line that matches."""
    caplog.clear()
    yield
    lines = [record.getMessage() for record in caplog.records]
    assert any(re.search(pattern, line) for line in lines), lines
