"""The promises at the size that the documents state them: `uv run pytest -m longest -n 0 -s`.

How fast something is gets printed, and judged with MNEMOSCOPE_IDLE=1.
"""

import math
import random
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import patience
import pytest
from places import TESTS
from searches import bisection_tokens, covered
from stored_trials import SPEC, made, repeat_trials
from sweep_driver import jobs, table

from mnemoscope.experiments.critical import critical, critical_many, range_about
from mnemoscope.experiments.sweep import ThisProcess, sweep
from mnemoscope.experiments.validation.drawn_settings import for_critical
from mnemoscope.spec import Retrieval
from mnemoscope.store.query import list_settings
from mnemoscope.store.trials import Store
from mnemoscope.training.three_step.batch import simulate_many
from mnemoscope.ui.bench.explorer import time_explorer

DRIVER = TESTS / "sweep_driver.py"
pytestmark = pytest.mark.longest


def test_ten_kills_of_a_sweep_of_500(tmp_path: Path):
    """SIGKILL at ten random moments: what was acknowledged stays, nothing is run twice."""
    path, count = tmp_path / "trials.db", 500
    words = [sys.executable, str(DRIVER), str(path), str(count)]
    dice = random.Random(11)
    written: dict[tuple[str, int], float] = {}
    for number in range(10):
        with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as driver:
            assert driver.stdout is not None
            acknowledged = 0
            enough = 8 * dice.randint(1, 6)
            for line in driver.stdout:
                found, done, _ = map(int, line.split())
                acknowledged = found + done
                if done >= enough:
                    time.sleep(dice.uniform(0, 0.03))
                    driver.kill()
                    break
        with Store(path) as store:
            rows = store.connection.execute(
                "SELECT id, seed, written FROM trials JOIN settings ON setting = number"
            ).fetchall()
            kept = {(name, seed): at for name, seed, at in rows}
        assert len(kept) >= acknowledged
        # A trial that was run again would have been written again, at another time.
        assert all(kept[key] == at for key, at in written.items())
        print(f"kill {number + 1}: {acknowledged} acknowledged, {len(kept)} kept")
        written = kept
    assert len(written) < count
    with Store(path) as store, Store(tmp_path / "quiet.db") as quiet:
        tally = sweep(jobs(count), store, ThisProcess("cpu"))
        assert (tally.found, tally.done) == (len(written), count - len(written))
        sweep(jobs(count), quiet, ThisProcess("cpu"))
        assert table(store) == table(quiet)


@pytest.mark.parametrize("outlier", [False, True])
def test_intervals_cover_between_90_and_99_in_a_hundred(outlier: bool):
    share = float(np.mean([covered(number, outlier) for number in range(600)]))
    print(f"outlier {outlier}: covered {share:.3f}")
    assert 0.90 <= share <= 0.99


def test_fewer_tokens_than_bisection_on_ten_settings(tmp_path: Path):
    specs = for_critical(10)
    with Store(tmp_path / "s.db") as store:
        found = critical_many(specs, "samples", tolerance=0.1, most_seeds=256, store=store)
    total = plain = 0.0
    for one in found:
        low, high = range_about(one.spec, "samples", one.target)
        seeds = max(trial.seed for trial in one.trials) + 1
        assert one.estimate is not None
        against = bisection_tokens(low, high, one.estimate, seeds, one.spec.length)
        total, plain = total + one.tokens, plain + against
        print(
            f"V={one.spec.vocab} d={one.spec.dim} L={one.spec.length}: {one.status}, "
            f"N = {one.estimate:.0f} [{one.low:.0f}, {one.high:.0f}], {seeds} seeds, "
            f"{one.tokens / against:.2f} of bisection's tokens"
        )
        assert one.tokens < against
    print(f"in all {total / plain:.2f}")
    assert all(one.status == "found" for one in found)


def test_a_million_records(tmp_path: Path):
    """A thousand inserts a second, each its own transaction; a million listed within a second."""
    with Store(tmp_path / "trials.db") as store:
        began = time.perf_counter()
        for seed in range(1000):
            store.add([made(seed=seed)])
        rate = 1000 / (time.perf_counter() - began)
        specs = [SPEC.replace(dim=d, samples=N) for d in range(2, 102) for N in range(1000, 101_000, 1000)]
        store.add([made(spec) for spec in specs])
        repeat_trials(store, range(1, 100))
        assert store.count(checked=False) >= 10**6
        for words in (["dim=20"], ["dim=20", "samples>=50000"], ["samples=5000"]):
            began = time.perf_counter()
            rows = list_settings(store, words, most=1000)
            took = time.perf_counter() - began
            print(f"{words}: {sum(row['trials'] for row in rows)} trials in {took:.3f} s")
            assert took < 1.0 or not patience.IDLE
    print(f"{rate:.0f} inserts a second")
    assert rate >= 1000 or not patience.IDLE


def test_fifty_visitors_drag_at_once():
    """As `mnemoscope bench --explorer` does, on an otherwise idle machine of two cores."""
    told = time_explorer()
    print(f"\n{told}")
    assert told["errors"] == 0
    if patience.IDLE:
        assert told["median_ms"] < 200
        assert told["worst_ms"] < 2000


# How many searches, and the seeds at each N for the truth.
SEARCHES, TRUE_SEEDS = 100, 400


@pytest.mark.parametrize(
    ("tokens", "dim", "length", "straight"), [("zipf:1.1", 96, 2, True), ("zipf:0.5", 48, 4, False)]
)
def test_intervals_where_tokens_are_not_equally_frequent(tokens: str, dim: int, length: int, straight: bool):
    """Searches with seeds of their own, against the crossing of many more seeds near it.

    Where accuracy rises slowly and levels off far below 1, its logit is no straight line in ln N, as the search takes
    it to be: there estimates are held to the search's tolerance alone.
    """
    spec = Retrieval(vocab=64, dim=dim, length=length, samples=100, tokens=tokens, test_samples=1024)
    how: dict[str, Any] = dict(low=4, high=2000, store=None, progress=False)
    found = [critical(spec, "samples", first_seed=1000 * number, **how) for number in range(SEARCHES)]
    answered = [one for one in found if None not in (one.low, one.estimate, one.high)]
    low, estimate, high = np.array([(one.low, one.estimate, one.high) for one in answered], float).T
    middle = float(np.median(estimate))
    values = np.unique(np.round(middle * np.geomspace(0.85, 1.18, 5))).astype(int).tolist()
    jobs = [[(spec.replace(samples=N), 10**7 + k) for k in range(TRUE_SEEDS)] for N in values]
    means = [np.mean(np.array([trial.accuracy for trial in simulate_many(part)], float)) for part in jobs]
    # The mean is a straight line in ln N over so short a range.
    slope, level = np.polyfit(np.log(values), means, 1)
    truth = math.exp((0.5 - level) / slope)
    share = float(np.mean((low <= truth) & (truth <= high)))
    width = float(np.median(high / low))
    print(
        f"{tokens}: crossing at N = {truth:.1f}, median estimate {middle:.1f}, covered by {share:.2f} of "
        f"{len(answered)} intervals, whose ends are a factor of {width:.2f} apart"
    )
    assert len(answered) > 0.95 * SEARCHES
    assert abs(math.log(middle / truth)) < 0.1
    if straight:  # three standard errors below 0.95
        assert share > 0.95 - 3 * math.sqrt(0.95 * 0.05 / SEARCHES)
