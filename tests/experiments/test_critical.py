"""Thresholds: the fit's coverage, the search's statuses, and what it costs."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fake_workers import FakeWorkers
from searches import bisection_tokens, covered

from mnemoscope import Retrieval, Step, Trial, critical_value, predict
from mnemoscope.experiments.critical import Critical, critical, critical_many
from mnemoscope.experiments.estimate.search import search_crossing
from mnemoscope.experiments.phase import predicted_diagram
from mnemoscope.experiments.tools import Tools
from mnemoscope.spec import SpecError
from mnemoscope.spec.validators import Measure
from mnemoscope.store.schema import NOWHERE
from mnemoscope.store.trials import Store
from mnemoscope.ui.cli import main

SPEC = Retrieval(vocab=256, dim=100, length=32, samples=256)


@pytest.mark.parametrize("outlier", [False, True])
def test_the_interval_covers(outlier: bool):
    """Overdispersed, with and without an outlier: 95 % within four standard errors of 60 sets."""
    share = float(np.mean([covered(number, outlier) for number in range(60)]))
    assert share >= 0.95 - 4 * math.sqrt(0.95 * 0.05 / 60)


def known(away: Callable[[Retrieval], float]) -> FakeWorkers:
    """Workers whose accuracy is a known function of the spec, with a shift for every seed."""

    def trial(spec: Retrieval, seed: int) -> Trial:
        shift = float(np.random.default_rng([7, seed]).normal(0, 0.3))
        accuracy = 1 / (1 + math.exp(-(away(spec) + shift)))
        return Trial(spec, seed, "ok", (Step("V2", accuracy, 1.0, accuracy),))

    return FakeWorkers(trial)


def search(path: Path, **more: Any) -> Critical:
    workers = known(lambda spec: 3 * math.log(spec.samples / 2000))
    wanted = {"axis": "samples", "low": 100, "high": 100_000, "tolerance": 0.1, **more}
    with Store(path) as store:
        return critical(SPEC, store=store, workers=workers, **wanted)


def test_a_known_threshold_is_found(tmp_path: Path):
    found = search(tmp_path / "s.db")
    assert found.status == "found"
    assert found.low is not None
    assert found.high is not None
    assert found.low <= 2000 <= found.high
    assert math.sqrt(found.high / found.low) - 1 <= 0.1
    tried = {trial.spec.samples for trial in found.trials}
    assert {100, 100_000} <= tried  # both ends


def test_fewer_tokens_than_bisection_with_as_many_seeds(tmp_path: Path):
    """Bisection to 10 % of the same range, all seeds at every place, both ends tried."""
    found = search(tmp_path / "s.db")
    seeds = max(trial.seed for trial in found.trials) + 1
    assert found.tokens < bisection_tokens(100, 100_000, 2000, seeds, SPEC.length)


def test_a_search_goes_on_where_it_was(tmp_path: Path):
    first = search(tmp_path / "s.db")
    with Store(tmp_path / "s.db") as store:
        count = store.count()
    again = search(tmp_path / "s.db")
    assert (again.estimate, again.low, again.high) == (first.estimate, first.low, first.high)
    with Store(tmp_path / "s.db") as store:
        assert store.count() == count


def test_a_range_without_it_is_said_to_be_one(tmp_path: Path):
    assert search(tmp_path / "s.db", low=20_000).status == "below-range"
    assert search(tmp_path / "s.db", high=500).status == "above-range"
    assert search(tmp_path / "s.db", most_seeds=4, tolerance=0.001).status == "unresolved"


def test_an_open_range_is_closed(tmp_path: Path):
    workers = known(lambda spec: 3 * math.log(spec.samples / 2000))
    with Store(tmp_path / "s.db") as store:
        (found,) = critical_many([SPEC], "samples", ranges=[(16, None)], use_theory=False, store=store, workers=workers)
        assert (found.status, found.low is not None) == ("found", True)
        assert max(trial.spec.samples for trial in found.trials) <= 4 * 4096
        never = known(lambda spec: -1.0)
        (found,) = critical_many([SPEC.replace(dim=20)], "samples", ranges=[(16, None)], store=store, workers=never)
        assert found.status == "above-range"


@pytest.mark.parametrize(("place", "first", "step"), [(64, 0.7, 0.01), (256, 0.3, 0.12)])
def test_odd_first_seeds_do_not_close_an_open_range(place: int, first: float, step: float):
    """The first four seeds are above the target where all others are below, or the reverse."""
    search = search_crossing(4, None, 0.5, rising=True, most_seeds=16)
    asked = next(search)
    for _ in range(100):
        told = {}
        for value, seed in asked:
            height = 1 / (1 + math.exp(-3 * math.log(value / 120))) + 0.02 * math.sin(seed)
            told[value, seed] = first + step * seed if value == place and seed < 4 else height
        try:
            asked = search.send(told)
        except StopIteration as end:
            found = end.value
            break
    else:
        raise AssertionError("the search did not end")
    assert found.status in ("found", "unresolved")
    assert 64 < found.value < 200


def test_all_trials_crashing_is_not_a_failure_to_recall(tmp_path: Path):
    crash = FakeWorkers(lambda spec, seed: Trial(spec, seed, "crashed", message="lost"))
    with Store(tmp_path / "s.db") as store:
        found = critical(SPEC, "samples", low=10, high=100, store=store, workers=crash)
    assert (found.status, found.estimate) == ("unresolved", None)


def test_searches_run_side_by_side(tmp_path: Path):
    """Two settings in rounds of their own give what each gives alone."""
    workers = known(lambda spec: 3 * math.log(spec.samples / (20 * spec.dim)))
    specs, ranges = [SPEC, SPEC.replace(dim=50)], [(100, 10_000), (100, 20_000)]
    with Store(tmp_path / "s.db") as store, Store(tmp_path / "t.db") as other:
        both = critical_many(specs, "samples", ranges=ranges, store=store, workers=workers)
        for one, spec, (low, high) in zip(both, specs, ranges, strict=True):
            alone = critical(spec, "samples", low=low, high=high, store=other, workers=workers)
            assert (one.estimate, one.low, one.high) == (alone.estimate, alone.low, alone.high)


def test_along_an_axis_where_accuracy_falls(tmp_path: Path):
    workers = known(lambda spec: -3 * math.log(spec.length / 40))
    with Store(tmp_path / "s.db") as store:
        found = critical(SPEC.replace(samples=4000), "length", low=4, high=400, store=store, workers=workers)
        assert found.status == "found"
        assert found.low is not None
        assert found.high is not None
        assert found.low <= 40 <= found.high
        easy = critical(SPEC.replace(samples=4000), "length", low=4, high=20, store=store, workers=workers)
        assert easy.status == "above-range"


@pytest.mark.long
def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    words = ["critical", "--vocab", "64", "--dim", "40", "--length", "4", "--along", "samples"]
    words += ["--test-samples", "256", "--tolerance", "0.3", "--store", str(tmp_path / "s.db")]
    assert main([*words, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    for key in ("axis", "target", "status", "estimate", "low", "high", "trials", "predicted"):
        assert key in told
    assert told["status"] == "found"
    assert told["low"] <= told["predicted"] * 1.33
    assert told["high"] >= told["predicted"] * 0.75
    assert main(words) == 0
    assert "95 % interval" in capsys.readouterr().out
    assert main([*words, "--range", "9"]) == 2
    assert "--range: expected LOW:HIGH, got '9'" in capsys.readouterr().err
    assert main([*words, "--range", "9:3"]) == 2
    assert "--range: expected LOW below HIGH" in capsys.readouterr().err
    assert main([*words, "--along", "dims"]) == 2
    assert "--along: expected" in capsys.readouterr().err


def test_accuracy_by_fact_needs_facts_of_several_frequencies():
    spec = Retrieval(vocab=64, dim=32, length=8, samples=100)
    for refused in (
        lambda: critical(spec, "samples", measure="accuracy_by_fact"),
        lambda: critical(spec, "samples", measure="accuracy_by_fact", low=10, high=20),
        lambda: predicted_diagram(spec, ("dim", [8, 16]), ("samples", [10, 20]), measure="accuracy_by_fact"),
    ):
        with pytest.raises(SpecError, match="measure: expected tokens that are not uniform for accuracy_by_fact"):
            refused()


def test_the_crossing_is_that_of_the_measure():
    """By fact accuracy is lower than by sequence, so more samples are needed."""

    def trial(spec: Retrieval, seed: int) -> Trial:
        by_sequence, by_fact = (1 / (1 + (middle / spec.samples) ** 2) for middle in (1000, 4000))
        step = Step("V2", by_sequence, 1.0, by_sequence, accuracy_by_fact=by_fact, bands=(by_fact,))
        return Trial(spec, seed, "ok", (step,))

    spec = Retrieval(vocab=64, dim=32, length=8, samples=100, tokens="zipf:1")
    middles: dict[Measure, int] = {"accuracy": 1000, "accuracy_by_fact": 4000}
    for measure, middle in middles.items():
        with Store(NOWHERE) as store:
            tools = Tools(store, FakeWorkers(trial))
            found = critical(spec, "samples", measure=measure, low=100, high=30_000, tools=tools)
        assert found.estimate == pytest.approx(middle, rel=0.05)
        assert found.as_dict()["trials"][0][measure] is not None


def test_no_crossing_asks_for_a_range():
    spec = Retrieval(vocab=128, dim=64, length=16, samples=2, tokens="zipf:1.1")
    why = "theory expects no samples at which it crosses 0.5"
    with pytest.raises(SpecError, match=f"^range: expected LOW:HIGH, since {why}, got none"):
        critical(spec, "samples", store=None)


def test_an_axis_ends_where_there_are_no_more_settings():
    # A count of a token must fit into 32 bits.
    spec = Retrieval(vocab=4, dim=2, length=2**10, samples=2)
    most = spec.most_allowed("samples", 2, 2**31)
    assert spec.vary(samples=most).samples == most
    with pytest.raises(SpecError, match="32-bit counts"):
        spec.vary(samples=most + 1)
    # Theory does not reach the target with the most samples there can be, and does not claim it for more.
    frequent = Retrieval(vocab=128, dim=64, length=16, samples=2, tokens="zipf:1.1")
    most = frequent.most_allowed("samples", 2, 2**31)
    assert most < 2**31
    accuracy = predict(frequent.vary(samples=most)).accuracy
    assert accuracy is not None
    assert accuracy < 0.3
    assert critical_value(frequent, "samples", 0.5) is None
