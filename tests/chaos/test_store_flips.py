"""Flipped bytes in a store, then every command that reads it.

Whatever the damage, a command ends with the numbers that it has with a sound store, or with one
line; what is sound is used; what is not is named, and computed again.
"""

import collections
import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hang_guard import no_hang

from mnemoscope.engine.record import AnyJob
from mnemoscope.experiments import sweep as sweeping
from mnemoscope.experiments.workers.batches import run_batch
from mnemoscope.spec import Retrieval
from mnemoscope.store.salvage import salvage
from mnemoscope.store.trials import Store
from mnemoscope.ui.cli import main
from mnemoscope.ui.explorer.measured import measured_points

SMALL = "--vocab 24 --length 4 --test-samples 64"
# Commands that use what is kept, and compute what is missing.
SWEEPS = {
    "run": f"run {SMALL} --dim 16 --samples 200 --seeds 3",
    "phase": f"phase {SMALL} --x dim=16,24 --y samples=100,200 --seeds 2",
    "critical": f"critical {SMALL} --dim 24 --along samples --range 5:2000 --seeds 4",
    "fit": f"fit {SMALL} --axis dim=24,28,32 --range 5:2000 --seeds 4",
    "memory": "memory --dim 6 --criterion all --seeds 3",
    "facts": "facts --subjects 2 --relations 2 --answers 2 --dim 8 --heads 1 --head-dim 8 "
    "--width 0 --max-steps 64 --seeds 2",
}
# Commands that look at the store alone.
LOOKS = {"list": "store list", "verify": "store verify", "export": "store export {out}", "repair": "store repair"}
FLIPS = (1, 5, 20, 50)

pytestmark = pytest.mark.chaos


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with the trials of every sweep."""
    path = tmp_path_factory.mktemp("sound") / "trials.db"
    for words in SWEEPS.values():
        assert main([*words.split(), "--json", "--store", str(path)]) == 0
    return path


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, Any, list[str]]]:
    def run(words: str, path: Path) -> tuple[int, Any, list[str]]:
        """Status, JSON and the lines beside it that are not of progress."""
        capsys.readouterr()
        out = path.with_name("table.csv")
        line = [*words.format(out=out).split(), "--json", "--store", str(path)]
        with no_hang(words):
            status = main(line)
        told = capsys.readouterr()
        lines = [one for one in told.err.splitlines() if one.startswith("mnemoscope:")]
        return status, json.loads(told.out) if told.out else None, lines

    return run


def flip(path: Path, draw: random.Random, flips: int) -> None:
    whole = bytearray(path.read_bytes())
    for _ in range(flips):
        whole[draw.randrange(len(whole))] ^= 1 << draw.randrange(8)
    path.write_bytes(whole)


def numbers(found: Any) -> Any:
    """What a command found; how long that took is another matter."""
    if isinstance(found, dict):
        # `trials` may count those that were computed just now, and records say how.
        return {
            name: numbers(part)
            for name, part in found.items()
            if name not in ("seconds", "versions", "found", "computed", "done")
        }
    return [numbers(part) for part in found] if isinstance(found, list) else found


def test_flipped_bytes(
    sound: Path,
    tmp_path: Path,
    call: Callable[..., tuple[int, Any, list[str]]],
    full: bool,
    monkeypatch: pytest.MonkeyPatch,
):
    expected = {name: numbers(call(words, sound)[1]) for name, words in SWEEPS.items()}
    with Store(sound, writing=False) as store:
        everything = {(t.spec.id, t.seed): t.accuracy for t in store.find()}
        total = store.count(checked=False)
        trials_of = dict(store.connection.execute("SELECT id, count(*) FROM sound GROUP BY id").fetchall())
    point = Retrieval(vocab=24, length=4, dim=16, samples=200, test_samples=64)
    curve = measured_points(point, sound)
    asked: list[AnyJob] = []

    def heard(batch: list[AnyJob], *more: Any) -> Any:
        asked.extend(batch)
        return run_batch(batch, *more)

    monkeypatch.setattr(sweeping, "run_batch", heard)
    draw = random.Random(1)
    tally: collections.Counter[str] = collections.Counter()
    damaged = tmp_path / "trials.db"
    for number in range(200 if full else 8):
        flips = FLIPS[number % len(FLIPS)]
        seed = draw.random()

        def fresh(flips: int = flips, seed: float = seed) -> Path:
            for one in tmp_path.iterdir():
                one.unlink()
            shutil.copy(sound, damaged)
            flip(damaged, random.Random(seed), flips)
            return damaged

        for name, words in SWEEPS.items():
            asked.clear()
            status, found, _ = call(words, fresh())
            tally[f"{name}: status {status}"] += 1
            if status == 0:
                assert numbers(found) == expected[name], (number, name)
                # A flip harms one record at most: all others are used.
                assert len(asked) <= flips, (number, name)
                tally["trials computed again"] += len(asked)
            else:
                assert_refused(status, found, damaged)
        for name, words in LOOKS.items():
            status, found, lines = call(words, fresh())
            tally[f"store {name}: status {status}"] += 1
            if status == 0 and name in ("verify", "repair", "export"):
                # Who looks at the store alone does not know what a damaged setting said.
                hidden = sum(trials_of.get(one, 0) for one in lost_settings(damaged))
                assert total - flips - hidden <= found["trials"] <= total, (number, name)
            elif name == "verify" and status == 1:
                assert found["faults"]
            elif status != 0:
                assert_refused(status, found, damaged)
                assert len(lines) == 1
        for one in measured_points(point, fresh()):
            whole = next(at for at in curve if at["samples"] == one["samples"])
            assert one["seeds"] <= whole["seeds"]
        with Store(damaged, writing=False) as store:
            left = {(t.spec.id, t.seed): t.accuracy for t in store.find()}
        assert left.items() <= everything.items()
        tally["records that were lost"] += len(everything) - len(left)
    for name, count in sorted(tally.items()):
        print(f"{count:6} {name}")


def lost_settings(path: Path) -> set[str]:
    """The settings of a store that cannot be told from its own rows."""
    with Store(path, writing=False) as store:
        known = {one for (one,) in store.connection.execute("SELECT DISTINCT id FROM sound")}
        kept = {one for (one,) in store.connection.execute("SELECT DISTINCT spec FROM trials")}
    return kept - known


def assert_refused(status: int, found: Any, path: Path) -> None:
    """A file of which nothing sound is left: one line, and nothing else."""
    assert (status, found) == (2, None)
    assert salvage(path) == ([], [])
