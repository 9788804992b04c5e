"""Phase diagrams: the whole grid, and the contour for a third of it."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fake_workers import FakeWorkers

from mnemoscope import PhaseDiagram, Retrieval, Step, Trial
from mnemoscope.experiments.axes import read_axis
from mnemoscope.experiments.phase import crossing_in_column, phase_diagram
from mnemoscope.store.trials import Store
from mnemoscope.theory.predict import predict
from mnemoscope.ui.cli import main

BASE: dict[str, Any] = dict(vocab=256, length=32)


def known() -> FakeWorkers:
    """Workers whose trials follow a known surface: logistic in N d^2, seeds shifted."""

    def trial(spec: Retrieval, seed: int) -> Trial:
        shift = float(np.random.default_rng([seed, spec.dim]).normal(0, 0.4))
        away = 2 * (math.log(spec.samples * spec.dim**2) - math.log(3e7)) + shift
        accuracy = 1 / (1 + math.exp(-away))
        return Trial(spec, seed, "ok", (Step("V2", accuracy, 1.0, accuracy),))

    return FakeWorkers(trial)


def diagram(store: Store, workers: FakeWorkers, adaptive: bool) -> PhaseDiagram:
    x, y = read_axis("x", "dim=32:128:12"), read_axis("y", "samples=300:100000:16")
    return phase_diagram(BASE, x, y, seeds=8, store=store, workers=workers, adaptive=adaptive)


@pytest.mark.long
def test_the_contour_costs_a_third_of_the_grid(tmp_path: Path):
    """On a known surface: the same contour as the whole grid's, in all columns."""
    whole, part = known(), known()
    with Store(tmp_path / "whole.db") as one, Store(tmp_path / "part.db") as two:
        full, followed = diagram(one, whole, False), diagram(two, part, True)
    assert len(whole.given) == 12 * 16 * 8
    assert len(part.given) <= len(whole.given) / 3
    assert followed.contour() == pytest.approx(full.contour())
    truth = [3e7 / d**2 for d in full.x.values]
    # The mean shift of eight seeds over the slope, and interpolation between rows.
    for found, expected in zip(full.contour(), truth, strict=True):
        assert found is not None
        assert abs(math.log(found / expected)) < 4 * 0.4 / math.sqrt(8) / 2 + 0.05
    assert full.plot().axes[0].get_xlabel() == "dim (d)"
    labelled = full.to_xarray()
    assert labelled.accuracy.dims == ("samples", "dim")
    assert set(np.unique(labelled.regime)) <= {"interference", "unseen", "recall", "mean_bias"}


@pytest.mark.long
def test_the_contour_of_a_real_surface(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    words = [
        "phase",
        "--vocab",
        "64",
        "--length",
        "8",
        "--x",
        "dim=36,40",
        "--seeds",
        "2",
        "--y",
        "samples=60:2000:6",
        "--test-samples",
        "256",
        "--json",
    ]
    told = {}
    for name, more in (("part", ["--adaptive"]), ("whole", [])):
        path = tmp_path / f"{name}.db"
        assert main([*words, *more, "--store", str(path)]) == 0
        told[name] = json.loads(capsys.readouterr().out)
    assert set(told["whole"]) >= {"x", "y", "accuracy", "predicted", "trials", "failed"}
    assert told["part"]["contour"] == pytest.approx(told["whole"]["contour"], nan_ok=True)
    assert told["part"]["trials"] < told["whole"]["trials"]
    # Again: everything is there.
    assert main([*words, "--store", str(tmp_path / "whole.db")]) == 0
    again = json.loads(capsys.readouterr().out)
    assert again["accuracy"] == told["whole"]["accuracy"]
    for form in ("png", "svg", "html"):
        out = tmp_path / f"map.{form}"
        more = ["--out", str(out), "--store", str(tmp_path / "whole.db")]
        assert main([*words[:-1], *more]) == 0
        assert out.stat().st_size > 5000
    page = (tmp_path / "map.html").read_text()
    assert "<script src=" not in page  # nothing is fetched
    assert "theory" in capsys.readouterr().out


def test_crossings_skip_what_was_not_run():
    values = [1.0, 10.0, 100.0, 1000.0]
    assert crossing_in_column(values, [0.0, math.nan, 1.0, math.nan], 0.5) == pytest.approx(10)
    assert crossing_in_column(values, [0.9, 0.6, 0.4, 0.1], 0.5) == pytest.approx(10**1.5)
    assert crossing_in_column(values, [0.1, 0.2, math.nan, 0.4], 0.5) is None


@pytest.mark.parametrize(
    ("more", "line"),
    [
        (["--x", "dims=1,2", "--y", "samples=10,20"], "--x: expected an axis such as"),
        (["--x", "dim=16,32", "--y", "samples=1e9:4e9:4"], "--yes: expected --yes for 64 trials"),
        (["--x", "dim=16,32", "--y", "samples=10,20", "--out", "a.gif"], "--out: expected a file"),
    ],
)
def test_bad_requests(more: list[str], line: str, capsys: pytest.CaptureFixture[str], tmp_path: Path):
    words = ["phase", "--vocab", "64", "--length", "500", "--store", str(tmp_path / "s.db"), *more]
    assert main(words) == 2
    assert line in capsys.readouterr().err


def test_theory_alone_runs_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    words = [
        "phase",
        "--vocab",
        "64",
        "--length",
        "8",
        "--x",
        "dim=16,64",
        "--theory",
        "--y",
        "samples=100,2000",
        "--store",
        str(tmp_path / "none.db"),
    ]
    for form in ("svg", "html"):
        assert main([*words, "--out", str(tmp_path / f"map.{form}"), "--json"]) == 0
        told = json.loads(capsys.readouterr().out)
        assert (tmp_path / f"map.{form}").stat().st_size > 1000
    assert told["trials"] == 0
    assert told["accuracy"] == [[None, None], [None, None]]
    spec = Retrieval(vocab=64, length=8, dim=64, samples=2000)
    assert told["predicted"][1][1] == pytest.approx(predict(spec).accuracy)
    assert not (tmp_path / "none.db").exists()
    assert main(words) == 0
    assert "nothing was run" in capsys.readouterr().out
