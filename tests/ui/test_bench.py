"""`bench`: both sides are run, compared, and never given a ratio when they disagree."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mnemoscope.spec import Retrieval
from mnemoscope.ui.bench import compare, diagram, sweeps
from mnemoscope.ui.bench import facts as bench_facts
from mnemoscope.ui.bench.explorer import time_explorer
from mnemoscope.ui.cli import main
from mnemoscope.ui.cli.setting import takes

SMALL = ["--vocab", "16", "--dim", "12", "--length", "4", "--samples", "500"]
SPEC = Retrieval(vocab=16, dim=12, length=4, samples=500)


@pytest.mark.long
def test_json_has_the_promised_keys(capsys: pytest.CaptureFixture[str]):
    assert main(["bench", *SMALL, "--quick", "--no-growth", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["device"]["platform"] == "cpu"
    (case,) = told["cases"]
    assert case["spec"]["samples"] == 500
    assert case["ratio"] == pytest.approx(case["autodiff_seconds"] / case["seconds"])
    assert case["tokens_per_second"] == pytest.approx(2000 / case["seconds"])
    assert case["difference"] < 1e-4
    assert case["peak_bytes"] >= 0
    assert 0 < case["limit_fraction"] < 1


def test_no_ratio_where_the_results_differ(monkeypatch: pytest.MonkeyPatch):
    def ask(spec: Retrieval, side: str, *_: object) -> tuple[dict[str, object], dict]:
        off = 1.01 if side == "autodiff" else 1.0
        result = {name: np.full(3, off) for name in ("V1", "alpha", "V2")}
        told = {"seconds": 1.0, "peak_bytes": 1, "process_bytes": 2, "first_seconds": 2.0, "tables": "dense"}
        return told, result

    monkeypatch.setattr(compare, "_ask", ask)
    case = compare.run_case(SPEC, 1e9, "cpu", with_autodiff=True, repeats=1)
    assert case.ratio is None
    assert case.note == "results differ by 9.9e-03: no ratio"


def test_a_side_that_fails_is_named(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("sys.executable", "/bin/false")
    with pytest.raises(compare.WorkerError, match="ours: status 1"):
        compare.run_case(SPEC, 1e9, "cpu", with_autodiff=True, repeats=1)


@pytest.mark.long
def test_sides_that_compile_together_agree_too(tmp_path: Path):
    case = compare.run_case(SPEC, 1e9, "cpu", with_autodiff=True, repeats=1, turn=tmp_path / "turn")
    assert case.note == ""
    assert case.ratio == pytest.approx((case.autodiff_seconds or 0) / case.seconds)


def test_a_side_that_fails_beside_others_is_tried_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    asked: list[str | None] = []

    def call(request: dict) -> dict:
        asked.append(request["turn"])
        if request["turn"]:
            raise compare.WorkerError("out of memory")
        np.savez(request["results"], V1=np.ones(3), alpha=np.ones(3), V2=np.ones(3))
        return {"seconds": 1.0, "peak_bytes": 1, "process_bytes": 2, "first_seconds": 2.0, "tables": "dense"}

    monkeypatch.setattr(compare, "_call_worker", call)
    turn = tmp_path / "turn"
    assert compare.run_case(SPEC, 1e9, "cpu", with_autodiff=False, repeats=1, turn=turn).seconds == 1.0
    assert asked == [str(turn), None]


def test_bytes_that_must_move():
    # Three passes over 4-byte tokens, three tables of V x V and the embeddings three times.
    assert compare.must_move(SPEC, "dense") == 12 * 2000 + 24 * 16 * 12 + 24 * 16 * 16
    # With an MLP two passes read a d-vector a token in place of the tables.
    wide = compare.must_move(SPEC.replace(width=8), "dense")
    assert wide == 12 * 2000 + 24 * 16 * 12 + 2 * 4 * 2000 * 12
    assert compare.must_move(SPEC, "factored") == wide


def test_stages_are_timed_one_by_one(capsys: pytest.CaptureFixture[str]):
    assert main(["bench", *SMALL, "--profile", "--json"]) == 0
    stages = json.loads(capsys.readouterr().out)["profile"]
    assert {name.split(",")[0] for name in stages} >= {"step 1", "step 2", "step 3"}
    assert all(seconds > 0 for seconds in stages.values())
    assert main(["bench", *SMALL, "--eta", "1", "--profile"]) == 2
    text = capsys.readouterr().err.strip()
    assert text == "mnemoscope: --profile: expected the attention-only model in its limit"


@pytest.mark.long
def test_a_diagram_is_timed_whole(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    tiny = dict(vocab=16, length=4, points=2, seeds=2, dims=20, samples=500)
    monkeypatch.setitem(diagram.DIAGRAMS, "cpu", tiny)
    jobs = diagram.diagram_jobs(**tiny)
    assert {spec.dim for spec, _ in jobs} == {16, 20}
    assert {spec.samples for spec, _ in jobs} == {4, 500}
    assert main(["bench", "--diagram", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)["diagram"]
    assert (told["trials"], told["failed"]) == (8, 0)
    assert told["seconds"] > 0


def test_trainings_are_timed_side_by_side(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    small = {"subjects": 4, "relations": 4, "answers": 2, "dim": 8, "head_dim": 2, "width": 8}
    tiny = bench_facts.SETTING.replace(**small, max_steps=64, batch=32, length=6)
    monkeypatch.setattr(bench_facts, "SETTING", tiny)
    assert main(["bench", "--facts", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)["facts"]
    assert told["trainings"] == 12
    assert max(told["steps"]) <= 64
    assert told["ratio"] == pytest.approx(told["seconds"] / told["alone_seconds"])


@pytest.mark.long
def test_sweeps_are_timed_beside_a_loop(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.setattr(sweeps, "SIZES", ((16, 800),))
    monkeypatch.setattr(sweeps, "DIMS", (12, 16))
    assert main(["bench", "--sweeps", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["sweeps"]
    assert (row["vocab"], row["trials"], row["failed"]) == (16, 8, 0)
    assert row["trials_per_second"] == pytest.approx(8 / row["seconds"])
    assert row["ratio"] == pytest.approx(row["loop_seconds"] / row["seconds"])
    assert main(["bench", "--sweeps"]) == 0
    assert "one by one" in capsys.readouterr().out


@pytest.mark.long
def test_many_visitors_drag_at_once():
    """Fifty clients, fewer redraws than `bench --explorer` makes: every one is answered."""
    told = time_explorer(clients=50, redraws=6)
    assert told["redraws"] == 300
    assert told["errors"] == 0


def test_a_command_cannot_shadow_a_field_of_its_setting():
    """`bench --batch`, trials to a call, was once read as the setting's batch of samples."""

    def command(setting: Any, *, batch: int = 1) -> int:
        return 0

    with pytest.raises(TypeError, match=r"own with a field's name: \['batch'\]"):
        takes(Retrieval)(command)
    assert takes(Retrieval, without=("batch",))(command)() == 0
