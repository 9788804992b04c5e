"""Studies: each has its parts, rules can go either way, figures are made from numbers alone."""

import json
from pathlib import Path
from typing import Any, get_args

import pytest
from matplotlib.figure import Figure
from study_numbers import points

from mnemoscope.spec import SpecError
from mnemoscope.studies import (
    a_activations,
    a_dimension_and_length,
    a_first_gradient,
    a_mean_bias,
    a_three_steps,
    b_stages,
    q_coupling,
    q_mlp,
)
from mnemoscope.studies.base import Source, agreed, within
from mnemoscope.studies.catalogue import STUDIES, load_all
from mnemoscope.studies.entries import is_current
from mnemoscope.studies.ledger import Ledger
from mnemoscope.studies.scaling_fit import fit_growth
from mnemoscope.ui.cli import main


def test_every_study_says_what_it_is():
    for study in load_all():
        for text in (study.place, study.statement, study.expected, study.rule):
            assert len(text) >= 5
        assert study.source in get_args(Source)
        assert "upported" in study.rule
        assert "efuted" in study.rule
        assert STUDIES[study.id].module
        assert min(STUDIES[study.id].quick, STUDIES[study.id].full) > 0


def test_growth_finds_its_power():
    found = fit_growth(points(0.7))
    assert found is not None
    assert found["power"] == pytest.approx(0.7)
    assert found["low"] < 0.7 < found["high"]
    assert fit_growth(points(0.7)[:3]) is None


def test_verdicts_go_either_way():
    assert within(0.95, 1.05, 0.9, 1.1) == "supported"
    assert within(1.2, 1.3, 0.9, 1.1) == "refuted"
    assert within(1.0, 1.2, 0.9, 1.1) == "inconclusive"
    assert agreed(["supported", "supported"]) == "supported"
    assert agreed(["supported", "refuted"]) == "inconclusive"


def grid_numbers(powers: dict[str, float], forms: str = "multiplicative") -> dict[str, Any]:
    """Exponents known to +-0.1, theory's among them, and four corners on that law."""
    rows = [
        {"axis": axis, "value": value, "low": value - 0.1, "high": value + 0.1, "predicted": value}
        for axis, value in powers.items()
    ]
    made = []
    for dim in (32, 64):
        for length in (8, 64):
            n = 1000 * (dim / 32) ** powers.get("dim", 0) * (length / 8) ** powers.get("length", 0)
            made.append({"dim": dim, "length": length, "samples": n, "low": n / 1.1, "high": n * 1.1, "predicted": n})
    return {"exponents": rows, "points": made, "forms": forms, "criterion": 9.0, "vocab": 128}


def test_the_rule_of_dimension_and_length():
    falling, rising = grid_numbers({"dim": -2.0, "length": 1.0}), grid_numbers({"dim": 2.0})
    assert a_dimension_and_length.judge(falling).verdict == "supported"
    assert a_dimension_and_length.judge(rising).verdict == "refuted"
    without = {**falling, "points": falling["points"][:3]}
    assert a_dimension_and_length.judge(without).verdict == "inconclusive"


def mean(value: float) -> dict[str, float]:
    return {"mean": value, "low": value - 0.05, "high": value + 0.05}


def test_the_rules_of_accuracies():
    steps = {"steps": {"V1": mean(0.1), "V2": mean(0.9)}, "chance": 0.01, "vocab": 9, "dim": 3}
    assert a_three_steps.judge(steps).verdict == "supported"
    steps["steps"]["V2"] = mean(0.2)
    assert a_three_steps.judge(steps).verdict == "refuted"
    mlp = {"bare": mean(0.2), "wide": {"relu": mean(0.5)}, "gains": {"relu": mean(0.3)}}
    assert a_activations.judge(mlp).verdict == "supported"
    assert a_activations.judge({**mlp, "gains": {"relu": mean(-0.3)}}).verdict == "refuted"


def test_the_rules_of_questions():
    for gain, verdict in ((0.3, "refuted"), (-0.3, "supported"), (0.0, "inconclusive")):
        row = {"dim": 8, "activation": "relu", "gain": mean(gain)}
        assert q_mlp.judge({"rows": [row], "width": 4}).verdict == verdict


def test_figures_of_grids_are_drawn():
    numbers = grid_numbers({"vocab": 2.0, "dim": -2.0, "length": 1.0})
    for module in (a_first_gradient, a_mean_bias, q_coupling, a_dimension_and_length):
        figure = Figure()
        module.STUDY.draw(json.loads(json.dumps(numbers)), figure)
        assert figure.axes


def test_a_quick_study_runs_draws_and_is_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    book, picture = tmp_path / "ledger.json", tmp_path / "stages.svg"
    words = ["reproduce", "b-fig5", "--quick", "--ledger", str(book), "--store", str(tmp_path / "s.db")]
    assert main([*words, "--out", str(picture), "--json"]) == 0
    (claim,) = json.loads(capsys.readouterr().out)["claims"]
    assert {"id", "source", "statement", "measured", "expected", "verdict"} <= set(claim)
    assert claim["verdict"] == "supported"
    assert "<svg" in picture.read_text()[:400]
    before = book.read_bytes()
    assert main(words) == 0  # from the ledger: nothing is written again
    assert book.read_bytes() == before
    assert "supported" in capsys.readouterr().out
    (entry,) = Ledger(book).entries.values()
    assert is_current(b_stages.STUDY, entry)
    rested = {**entry.numbers["exact"], "steps": 10}
    assert b_stages.judge({"exact": rested, "drawn": None}).verdict == "refuted"


def test_the_list_and_wrong_requests(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["reproduce", "--list"]) == 0
    text = capsys.readouterr().out
    assert all(name in text for name in STUDIES)
    assert main(["reproduce", "b-fig7"]) == 2
    assert "did you mean 'b-fig" in capsys.readouterr().err
    assert main(["reproduce", "--quick", "--full"]) == 2
    assert main(["reproduce", "--out", str(tmp_path / "x.svg")]) == 2
    capsys.readouterr()
    foreign = tmp_path / "other.json"
    foreign.write_text("[]")
    assert main(["reproduce", "b-fig5", "--ledger", str(foreign)]) == 2
    assert "expected a ledger that `reproduce` wrote" in capsys.readouterr().err
    foreign.write_text('{"format": 99, "entries": []}')
    with pytest.raises(SpecError, match="newer mnemoscope"):
        Ledger(foreign)
