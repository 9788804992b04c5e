"""Exponents: recovered from made-up laws, covered by their intervals, and told from rivals."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from fake_workers import FakeWorkers

from mnemoscope import Retrieval, Step, Trial
from mnemoscope.experiments.estimate.estimate import Estimate
from mnemoscope.experiments.estimate.power_law import (
    Points,
    compare_forms,
    condition_number,
    extrapolate,
    fit_power_law,
    points_of,
)
from mnemoscope.experiments.fit import fit
from mnemoscope.store.trials import Store
from mnemoscope.ui.cli import main

GRID = np.array([[d, L] for d in (16, 32, 64, 128) for L in (4, 16, 64)], float)
POWERS = np.array([-2.0, 1.0])


def made(rng: np.random.Generator, own: float, scatter: float) -> Points:
    """Points of 3 d^-2 L with a stated error of their own each, and scatter that is not stated."""
    error = own * np.exp(rng.normal(0, 0.5, len(GRID)))
    noise = rng.normal(0, error) + rng.normal(0, scatter, len(GRID))
    return Points(("dim", "length"), GRID, math.log(3) + np.log(GRID) @ POWERS + noise, error)


@pytest.mark.parametrize("scatter", [0.0, 0.2])
def test_intervals_cover_the_exponents(scatter: float):
    """95 % of 400 made-up sets, within four standard errors of that share."""
    hits = []
    for number in range(400):
        law = fit_power_law(made(np.random.default_rng([3, number]), 0.05, scatter))
        hits += [e.low <= p <= e.high for e, p in zip(law.exponents, POWERS, strict=True)]
    assert abs(np.mean(hits) - 0.95) <= 4 * math.sqrt(0.95 * 0.05 / 400)


def test_a_law_is_found_with_its_constant():
    law = fit_power_law(made(np.random.default_rng(1), 1e-6, 0.0))
    assert [e.value for e in law.exponents] == pytest.approx([-2, 1], abs=1e-4)
    assert math.exp(law.constant) == pytest.approx(3, rel=1e-3)
    assert law.scatter < 1e-5
    assert law.condition == pytest.approx(1)


def test_points_that_are_sure_weigh_more():
    """One point far off, with an error that says so, moves nothing."""
    points = made(np.random.default_rng(1), 1e-4, 0.0)
    points.log_y[0] += 2.0
    points.error[0] = 2.0
    law = fit_power_law(points)
    assert [e.value for e in law.exponents] == pytest.approx([-2, 1], abs=0.01)


def test_axes_that_vary_together_show_in_the_condition():
    together = np.array([[d, d * (1.01 if d == 16 else 1)] for d in (8, 16, 32, 64)], float)
    assert condition_number(together) > 100
    assert condition_number(np.array([[1.0, 2.0], [3.0, 2.0]])) == math.inf


def test_multiplying_and_adding_are_told_apart():
    rng = np.random.default_rng(4)
    multiplied = made(rng, 0.03, 0.0)
    found = compare_forms(multiplied)
    assert found is not None
    assert found.verdict == "multiplicative"
    assert found.left_out["multiplicative"] < 1.2 < found.left_out["additive"]
    level = np.log(3000 * GRID[:, 0] ** -2.0 + 0.1 * GRID[:, 1])
    added = Points(("dim", "length"), GRID, level + rng.normal(0, 0.03, len(GRID)), multiplied.error)
    other = compare_forms(added)
    assert other is not None
    assert other.verdict == "additive"
    assert other.additive_powers["dim"] == pytest.approx(-2, abs=0.2)
    assert other.additive_powers["length"] == pytest.approx(1, abs=0.1)
    assert compare_forms(multiplied.pick(np.arange(len(GRID)) < 6)) is None


def test_what_lies_beyond_is_said_from_the_rest():
    found = extrapolate(made(np.random.default_rng(5), 0.02, 0.0))
    assert [(one.axis, one.value, one.points) for one in found] == [("dim", 128, 3), ("length", 64, 4)]
    assert all(one.missed["multiplicative"] < 1.15 for one in found)
    assert found[0].missed["additive"] > 1.5


def test_errors_come_from_intervals():
    points = points_of(["dim"], [[8], [16]], [Estimate("found", 100, 90, 110), Estimate("found", 200, 100, 400)])
    assert points.error[1] == pytest.approx(math.log(4) / 3.92)


def surface(spec: Retrieval, seed: int) -> Trial:
    """Accuracy crosses 0.5 at N = 50 L^1 d^-1 V, with a shift for every seed."""
    at = math.log(50 * spec.length / spec.dim * spec.vocab)
    shift = float(np.random.default_rng([2, seed]).normal(0, 0.2))
    accuracy = 1 / (1 + math.exp(-3 * (math.log(spec.samples) - at) - shift))
    return Trial(spec, seed, "ok", (Step("V2", accuracy, 1.0, accuracy),))


@pytest.mark.long
def test_a_known_surface(tmp_path: Path):
    axes = [("dim", [16, 32, 64]), ("length", [8, 16]), ("vocab", [64, 128])]
    with Store(tmp_path / "s.db") as store:
        made = fit({}, axes, ranges=[(100, 10**5)] * 12, store=store, workers=FakeWorkers(surface))
    for one, truth in zip(made.law.exponents, (-1.0, 1.0, 1.0), strict=True):
        assert one.low <= truth <= one.high
        assert one.high - one.low < 0.3
    told = made.as_dict()
    assert {"exponents", "predicted", "points", "condition"} <= set(told)
    assert len(told["points"]) == 12
    assert told["forms"]["verdict"] == "multiplicative"
    assert list(made.to_frame()["status"]) == ["found"] * 12


def test_too_few_points_are_an_answer(tmp_path: Path):
    """At d = 16 and 20 the crossing lies in the range; among two points there is no law."""
    axes = [("dim", [16, 20, 24, 32])]
    with Store(tmp_path / "s.db") as store:
        for ranges, known in (([(2, 9)] * 4, 0), ([(100, 10**5)] * 2 + [(2, 9)] * 2, 2)):
            made = fit({"length": 8, "vocab": 64}, axes, ranges=ranges, store=store, workers=FakeWorkers(surface))
            told = made.as_dict()
            assert made.status == told["status"] == "too-few-points"
            assert (len(told["points"]), len(told["left_out"])) == (known, 4 - known)
            assert {one["status"] for one in told["left_out"]} == {"above-range"}
            assert told["exponents"] == [{"axis": "dim", "value": None, "low": None, "high": None, "error": None}]
            json.dumps(told, allow_nan=False)
            made.plot(tmp_path / "none.svg")
        two = [("dim", [16, 32]), ("length", [8, 16])]
        ranges = [(100, 10**5), (100, 10**5), (2, 9), (2, 9)]
        made = fit({"vocab": 64}, two, ranges=ranges, store=store, workers=FakeWorkers(surface))
        assert made.status == "too-few-points"
        three = [("dim", [16, 32]), ("length", [8, 12, 16])]
        ranges = [(100, 10**5)] * 3 + [(2, 9)] * 3
        made = fit({"vocab": 64}, three, ranges=ranges, store=store, workers=FakeWorkers(surface))
        assert made.status == "too-few-points"  # three of the four that are needed
        four = [("dim", [16, 32]), ("length", [8, 10, 12, 16])]
        ranges = [(100, 10**5)] * 4 + [(2, 9)] * 4
        made = fit({"vocab": 64}, four, ranges=ranges, store=store, workers=FakeWorkers(surface))
        assert made.status == "axes-do-not-vary"


@pytest.mark.long
def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    words = ["fit", "--vocab", "64", "--length", "8", "--test-samples", "256"]
    words += ["--store", str(tmp_path / "s.db"), "--tolerance", "0.3"]
    picture = tmp_path / "fit.svg"
    axis = ["--axis", "dim=34,44,64"]
    assert main([*words, *axis, "--json", "--out", str(picture)]) == 0
    told = json.loads(capsys.readouterr().out)
    (one,) = told["exponents"]
    assert one["axis"] == "dim"
    assert one["low"] <= one["value"] <= one["high"]
    assert one["value"] < 0 > told["predicted"][0]["value"]
    assert "exponent" in picture.read_text() or picture.stat().st_size > 1000
    assert main([*words, *axis]) == 0
    shown = capsys.readouterr().out
    assert "condition number" in shown
    assert "too few points to ask" in shown
    for wrong, line in (
        (["--axis", "dim=32"], "--axis: expected two values or more, got dim with one"),
        (["--axis", "samples=10,20"], "--axis: expected axes other than samples"),
        (["--axis", "embedding=sphere,gaussian"], "--axis: expected an axis that is counted"),
        ([*axis, "--log", "vocab"], "--log: expected one of the axes, got 'vocab'"),
        (["--axis", "dim=32,64"], "--axis: expected 3 points or more, got 2"),
    ):
        assert main([*words, *wrong]) == 2
        assert line in capsys.readouterr().err
