"""How long work takes is said before it, asked about beyond an hour, and shown on the way."""

import inspect
import json
import threading
from importlib import import_module
from pathlib import Path
from typing import Any, get_args, get_type_hints

import cyclopts
import numpy as np
import pytest
from fake_workers import FakeWorkers

from mnemoscope import Facts, Retrieval, Trial
from mnemoscope.engine.pace import duration, time_left
from mnemoscope.engine.record import AnyJob
from mnemoscope.experiments import forecast, sweep
from mnemoscope.experiments.capacity import Question, memory_questions
from mnemoscope.experiments.cost import compile_seconds, estimate_seconds, job_seconds
from mnemoscope.experiments.sweep import Tally, ThisProcess
from mnemoscope.experiments.validation.validate import compare_accuracy
from mnemoscope.spec import Flow, Memory
from mnemoscope.store.claims import Claims
from mnemoscope.store.trials import Store
from mnemoscope.ui.cli import COMMANDS, asking, main
from mnemoscope.ui.cli import progress as display
from mnemoscope.ui.cli.options import YES, Work
from mnemoscope.ui.cli.progress import Standing, Watch

# Longer than any wait that ends well.
HANG_SECONDS = 120
SPEC = Retrieval(vocab=64, dim=32, length=4, samples=500)
TINY = ["--vocab", "16", "--dim", "12", "--length", "4", "--test-samples", "64"]
HUGE = ["--vocab", "4096", "--dim", "256", "--length", "1000"]
OWN = ["--model", "own_models:Bag", "--task", "mnemoscope.tasks.own:Lookup"]
FACTS = ["--dim", "256", "--heads", "64", "--head-dim", "16", "--width", "1024"]
# For every command that runs something, requests of far more than an hour.
LONG: dict[str, list[list[str]]] = {
    "run": [[*HUGE, "--samples", "1e9"]],
    "critical": [[*HUGE, "--range", "1e8:1e9"]],
    "phase": [
        [*HUGE[:2], *HUGE[4:], "--x", "dim=64,256", "--y", "samples=1e8:1e9:4"],
        [*HUGE[:2], *HUGE[4:], "--x", "dim=64,256", "--y", "samples=1e8:1e9:4", "--adaptive"],
        [*HUGE[:2], *HUGE[4:], "--x", "dim=64:4e6:5000", "--y", "samples=1e3:1e9:5000", "--theory"],
    ],
    "fit": [[*HUGE[4:], "--axis", "dim=64,256", "--axis", "vocab=512,4096", "--range", "1e8:1e9"]],
    "capacity": [[*OWN, "--along", "vocab", "--range", "4:400000", "--set", "batch=65536", "--set", "dim=1024"]],
    "memory": [["--dim", "512", "--method", "trained"]],
    "facts": [["--subjects", "256", "--relations", "256", "--answers", "8", *FACTS], ["--capacity", "equal", *FACTS]],
    "dynamics": [["--subjects", "1024", "--relations", "64", "--steps", "1e6"]],
    "reproduce": [["--full"], ["--full", "--at-once", "1", "a-first-steps"]],
    "embeddings": [["--samples", "1e9", "--length", "1000"]],
    "bound": [["--vocab", "2048", "--dim", "1024", "--length", "16", "--samples", "1e6", "--seeds", "1e4"]],
    "validate": [["terms", "--seeds", "1000"]],
    "bench": [[*HUGE, "--samples", "1e8"]],
}


def options(command: Any) -> dict[str, Any]:
    """The parameters of a command, by name; those of a shared group of options one by one."""
    named: dict[str, Any] = {}
    for name, parameter in inspect.signature(command).parameters.items():
        group = next(iter(get_args(parameter.annotation)), None)
        named |= {name: parameter.annotation} if group is not Work else get_type_hints(Work, include_extras=True)
    return named


def all_commands() -> dict[str, Any]:
    """Every command there is, those of a group by both words."""
    found: dict[str, Any] = {}
    for name in COMMANDS:
        made = getattr(import_module(f"mnemoscope.ui.cli.{name}"), name)
        if isinstance(made, cyclopts.App):
            parts = [one for one in made if not one.startswith("-")]
            found |= {f"{name} {part}": made[part].default_command for part in parts}
        else:
            found[name] = made
    return found


# Who takes a device computes on it. The explorer's server computes when its pages ask, and has a
# limit of its own.
RUNNING = sorted(name for name, made in all_commands().items() if "device" in options(made) and name != "explore")


def test_every_command_that_computes_can_be_told_to_go_ahead():
    told = {name: options(made).get("yes") for name, made in all_commands().items()}
    assert {name for name, one in told.items() if one is not None} == {*RUNNING, "store prune"}
    helps = {one.__metadata__[0].help for one in told.values() if one is not None}
    assert helps == {YES.help}


@pytest.mark.parametrize("name", RUNNING)
def test_more_than_an_hour_is_refused_without_a_yes(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    """In one line, with nothing computed and nothing written."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    matrix = tmp_path / "matrix.npy"
    for words in LONG[name]:
        if name == "embeddings":
            np.save(matrix, np.random.default_rng(0).normal(size=(64, 16)))
            words = [str(matrix), *words]
        for more in ([], ["--json"]):
            assert main([name, *words, *more]) == 2
            printed = capsys.readouterr()
            assert printed.out == ""
            (line,) = [one for one in printed.err.splitlines() if "--yes" in one]
            assert line.startswith("mnemoscope: --yes: expected --yes for ")
            assert "on this machine (CPU), got none" in line
            assert set(tmp_path.rglob("*")) <= {matrix}


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("run", [*TINY, "--samples", "300", "--seeds", "2"]),
        ("critical", [*TINY, "--range", "20:600", "--seeds", "4"]),
        ("phase", [*TINY[:2], *TINY[4:], "--x", "dim=10,12", "--y", "samples=50,400", "--seeds", "2"]),
        ("memory", ["--dim", "6", "--seeds", "2"]),
        (
            "facts",
            [
                "--subjects",
                "2",
                "--relations",
                "2",
                "--answers",
                "2",
                "--dim",
                "4",
                "--heads",
                "1",
                "--head-dim",
                "2",
                "--max-steps",
                "32",
                "--batch",
                "8",
            ],
        ),
    ],
)
def test_a_yes_goes_ahead_and_what_is_kept_is_not_asked_about(
    name: str, words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(asking, "MOST_SECONDS", 0.0)
    monkeypatch.setattr(asking, "LEAST_SECONDS", 0.0)
    monkeypatch.setattr(forecast, "THEORY_SECONDS", 0.0)  # which is not kept, and made again
    store = tmp_path / "s.db"
    words = [name, *words, "--store", str(store), "--json"]
    assert main(words) == 2
    assert not store.exists()
    capsys.readouterr()
    assert main([*words, "--yes"]) == 0
    printed = capsys.readouterr()
    first = json.loads(printed.out)
    assert printed.err.startswith("about ")
    assert "on this machine (CPU): " in printed.err.splitlines()[0]
    # Nothing is missing now, so nothing is asked and nothing said.
    assert main(words) == 0
    printed = capsys.readouterr()
    assert json.loads(printed.out) == first
    assert printed.err == ""
    # One seed more is, with a store that is there.
    if name == "run":
        words[words.index("--seeds") + 1] = "3"
        assert main(words) == 2
        assert "for 1 trial, " in capsys.readouterr().err


def seconds(spec: Any, count: int = 1, **more: Any) -> float:
    return estimate_seconds([(spec, seed) for seed in range(count)], "cpu", **more)


def test_estimates_grow_as_the_work_does():
    alone: dict[str, Any] = {"compiling": False, "speed": 1.0}
    large = Retrieval(vocab=256, dim=64, length=64, samples=10**6)
    facts = Facts(subjects=16, relations=16, answers=8, dim=32, heads=8, head_dim=4, width=32)
    memory = Memory(items=512, dim=64, method="trained")
    for spec, change, least, most in (
        (large, {"samples": 8 * 10**6}, 7, 8),
        (large, {"length": 512}, 7, 8),
        (large.replace(width=512), {"width": 4096}, 5, 8),
        (large.replace(then="adamw", steps=10), {"steps": 1000}, 70, 100),
        (large.replace(samples=10, vocab=4096), {"vocab": 8192}, 3.5, 4.1),
        (facts, {"max_steps": 2 * facts.max_steps}, 2, 2),
        (facts, {"batch": 4 * facts.batch, "max_steps": 1000}, 0.15, 0.25),
        (facts, {"heads": 32}, 2, 4),
        (memory, {"items": 1024}, 3.5, 4.5),
        (memory, {"max_steps": 2 * memory.most_steps}, 2, 2),
        (memory.replace(width=64), {"dim": 256}, 2, 16),
        (Flow(), {"steps": 81920}, 10, 10),
    ):
        ratio = seconds(spec.replace(**change), **alone) / seconds(spec, **alone)
        assert least - 1e-9 <= ratio <= most + 1e-9, (spec, change, ratio)
    assert seconds(large, 12, **alone) == pytest.approx(12 * seconds(large, **alone))
    assert seconds(large, speed=0.5) == pytest.approx(2 * seconds(large, speed=1.0))
    # A program is compiled once for all that share it.
    assert seconds(large, 3) - seconds(large, 1) == pytest.approx(2 * seconds(large, **alone))
    assert seconds(SPEC) < 10
    assert seconds(SPEC.replace(vocab=4096, samples=10**8, length=1000), 100) > 86_400


def test_every_kind_has_rates_on_both_platforms():
    for platform in ("cpu", "gpu"):
        facts = Facts(subjects=4, relations=4, answers=2, dim=8, heads=1, head_dim=2)
        memory = Memory(items=8, dim=8)
        for spec in (SPEC, facts, memory, memory.replace(method="trained"), Flow()):
            assert job_seconds(spec, platform) > 0
            assert compile_seconds(spec, platform) > 0


def test_a_search_is_foreseen_by_asking_it():
    how: dict[str, Any] = {"resolution": 0.03, "tolerance": 0.1, "platform": "cpu"}

    def told(questions: list[Question], seeds: int, most_seeds: int) -> forecast.Forecast:
        return forecast.of_limits(questions, seeds=seeds, most_seeds=most_seeds, **how)

    specs = [Memory(items=2, dim=d, method="trained") for d in (16, 32)]
    small, large = ([question] for _, question in memory_questions(specs, 0.99))
    few, many = told(small, 4, 4), told(small, 4, 16)
    assert few.usual == many.usual < few.most < many.most
    assert told(large, 4, 4).most > 3 * few.most
    assert told([*small, *large], 4, 4).most == pytest.approx(few.most + told(large, 4, 4).most)
    # What it asks for is what the search does where the limit is the usual one.
    question = small[0]
    asked = forecast._asked(question, question.usual, 2, 2, spread=0.0, resolution=0.03, tolerance=0.1)
    closest = [max(value for value, seed in asked if seed == k and value <= question.usual) for k in (0, 1)]
    assert all(question.usual / 1.03 <= value <= question.usual for value in closest)
    crossing: dict[str, Any] = {"target": 0.5, "measure": "accuracy", "platform": "cpu"}
    one = forecast.of_crossings([SPEC], "samples", [(50, 500)], most_seeds=32, **crossing)
    wide = forecast.of_crossings([SPEC], "samples", [(50, 5 * 10**6)], most_seeds=32, **crossing)
    assert one.usual <= one.most < wide.most
    assert one.usual <= wide.usual


def test_times_in_words():
    for count, said in (
        (0.2, "1 second"),
        (40.2, "40 seconds"),
        (100, "1.7 minutes"),
        (720, "12 minutes"),
        (7200, "2 hours"),
        (3e5, "3.5 days"),
        (86400 * 365 * 40, "15,000 days"),
    ):
        assert duration(count) == said
    assert time_left(0.0, 10.0, 500.0) is None
    assert time_left(1.0, 10.0, 0.5) is None
    assert time_left(5.0, 10.0, 60.0) == pytest.approx(60.0)


def test_no_time_is_told_before_anything_is_done():
    tally = Tally(total=4, work=8.0)
    tally.began -= 100
    assert tally.said == "0 of 4"
    tally.worked = 4.0
    assert tally.said.startswith("0 of 4, about 1.7 minutes left")
    tally.left = ((Memory(items=4, dim=4, method="trained"), 0),)
    assert "at most" in tally.said


def test_a_line_is_said_where_there_is_no_terminal(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    """While the work itself is silent, too."""
    monkeypatch.setattr(display, "SECONDS_BETWEEN_LINES", 0.01)
    looked = threading.Semaphore(0)

    class Slow(Watch):
        def stands(self) -> Standing | None:
            looked.release()
            return super().stands()

    with Slow("steps", 10) as watch:
        watch.advance(3)
        for _ in range(3):  # by then the second line has been printed
            assert looked.acquire(timeout=HANG_SECONDS)
    lines = capsys.readouterr().err.splitlines()
    assert lines[1].startswith("steps: 30% done")
    monkeypatch.setattr(display, "SECONDS_BETWEEN_LINES", HANG_SECONDS)
    with Watch("steps", 10) as watch:
        watch.advance(10)
    assert capsys.readouterr().err == ""


def test_progress_moves_within_a_training(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sweep, "SECONDS_BETWEEN_WORDS", -1.0)
    spec = Facts(
        subjects=4,
        relations=4,
        answers=2,
        dim=8,
        heads=2,
        head_dim=2,
        width=8,
        max_steps=96,
        batch=16,
        length=6,
        target=1.0,
        lr=1e-8,
    )
    jobs: list[AnyJob] = [(spec, 0), (spec, 1), (SPEC, 0)]
    seen: list[tuple[int, float]] = []
    with Store(Path("none")) as store:
        tally = sweep.sweep(jobs, store, ThisProcess("cpu"), lambda one: seen.append((one.done, one.worked)))
    assert tally.worked == pytest.approx(tally.work)
    assert tally.work == pytest.approx(sum(job_seconds(one, "cpu") for one, _ in jobs))
    shares = [worked for _, worked in seen]
    assert shares == sorted(shares)
    before = [worked for done, worked in seen if done < 2]  # while both trainings are under way
    assert len(set(before)) >= 6  # of three checks each


def test_waiting_for_another_process_is_said_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = tmp_path / "s.db"
    jobs: list[AnyJob] = [(SPEC, seed) for seed in range(3)]
    workers = FakeWorkers(lambda spec, seed: Trial(spec, seed, "ok"))
    with Store(path) as store, Store(path) as other, Watch() as watch:
        claims = Claims(other)
        claims.take(jobs[1:3])
        waits = 0

        def hear(tally: Tally) -> None:
            nonlocal waits
            watch(tally)
            waits += tally.waiting > 0
            if waits == 2:  # said at the first, and not again
                claims.close()

        tally = sweep.sweep(jobs, store, workers, hear)
    assert (tally.done, waits) == (3, 2)
    assert capsys.readouterr().err == ("waiting for 2 trials that another process is computing\n")


def test_validation_moves_with_every_trial():
    told: list[float] = []
    specs = [SPEC, SPEC.replace(dim=40)]
    assert len(list(compare_accuracy(specs, 3, "cpu", told.append))) == 2
    assert len(told) == 6
    assert sum(told) == pytest.approx(2)
