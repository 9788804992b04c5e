"""An interrupt waits until no compiled program is under way."""

import math
import signal
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import patience
import pytest

from mnemoscope import Trial
from mnemoscope.engine import early_stopping, interrupts
from mnemoscope.engine.interrupts import Interrupted, interrupts_held, keeping_partial, stop_if_asked
from mnemoscope.engine.record import Job
from mnemoscope.experiments.sweep import ThisProcess, sweep
from mnemoscope.spec import Facts, Retrieval
from mnemoscope.store.trials import Store
from mnemoscope.training.three_step import batch, simulation, streaming
from mnemoscope.training.three_step.batch import simulate_many
from mnemoscope.training.three_step.call import Call

LONG = Retrieval(vocab=16, dim=12, length=4, samples=1000, then="adamw", steps=10**6)
FACTS = Facts(subjects=8, relations=8, answers=4, dim=4, heads=1, head_dim=1, width=0, max_steps=10**6)
MANY = Retrieval(vocab=16, dim=12, length=4, samples=10**9)
SHORT = MANY.replace(samples=100)


@pytest.fixture(autouse=True)
def _as_in_a_terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(interrupts, "SAME_PRESS_SECONDS", 0.0)
    monkeypatch.setattr(interrupts, "_pressed", -math.inf)
    # Whoever runs the tests in the background may have had interrupts ignored.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_an_interrupt_waits_and_the_second_does_not(capfd: pytest.CaptureFixture[str]):
    with interrupts_held():
        signal.raise_signal(signal.SIGINT)
        assert "Ctrl-C again stops at once" in capfd.readouterr().err
    with pytest.raises(KeyboardInterrupt):
        stop_if_asked()
    stop_if_asked()  # answered, and forgotten
    with interrupts_held():
        signal.raise_signal(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    stop_if_asked()


def test_one_press_may_come_twice(monkeypatch: pytest.MonkeyPatch):
    now = 100.0
    monkeypatch.setattr(interrupts, "time", SimpleNamespace(monotonic=lambda: now))
    monkeypatch.setattr(interrupts, "SAME_PRESS_SECONDS", 0.3)
    with interrupts_held():
        for _ in range(3):
            signal.raise_signal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        stop_if_asked()
    signal.raise_signal(signal.SIGINT)  # what was finished is told meanwhile
    now += 0.4
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


def test_elsewhere_an_interrupt_is_heard_at_once():
    with interrupts_held():
        pass
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


def test_who_hears_interrupts_already_goes_on_hearing_them():
    heard: list[int] = []
    signal.signal(signal.SIGINT, lambda number, frame: heard.append(number))
    with interrupts_held():
        signal.raise_signal(signal.SIGINT)
    assert heard == [signal.SIGINT]
    stop_if_asked()


def test_nobody_who_reads_the_line_is_no_trouble(monkeypatch: pytest.MonkeyPatch):
    def gone(*words: object) -> int:
        raise BrokenPipeError

    monkeypatch.setattr("mnemoscope.engine.interrupts.os.write", gone)
    with interrupts_held():
        signal.raise_signal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        stop_if_asked()


def test_what_was_noted_and_not_answered_is_forgotten():
    with interrupts_held():
        signal.raise_signal(signal.SIGINT)
    # And nobody asked: the work came to its end another way.
    with interrupts_held():
        stop_if_asked()


def test_an_interrupt_takes_along_what_was_found():
    with interrupts_held():
        signal.raise_signal(signal.SIGINT)
        with pytest.raises(Interrupted) as caught, keeping_partial({7: "before"}):
            stop_if_asked(["now"])
    assert caught.value.finished == ["now", "before"]


@pytest.mark.parametrize("calls", [1, 3, 8])
def test_what_a_batch_has_finished_is_kept(calls: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Eight trials, a call each, and an interrupt during one of them: it ends, and is kept too."""
    made = 0

    def start(call: Call, jobs: list[Job]) -> None:
        nonlocal made
        made += 1
        if made == calls:
            signal.raise_signal(signal.SIGINT)

    def read(running: Any, jobs: list[Job], since: float) -> list[Trial]:
        return [Trial(spec, seed, "ok") for spec, seed in (jobs[number] for number in running.numbers)]

    monkeypatch.setattr(batch, "start_call", start)
    monkeypatch.setattr(batch, "_read_batch", read)
    monkeypatch.setattr(batch, "compiled", lambda call, example: None)
    with Store(tmp_path / "s.db") as store:
        with pytest.raises(KeyboardInterrupt):
            sweep([(SHORT, seed) for seed in range(8)], store, ThisProcess("cpu"))
        assert store.count() == calls


@pytest.mark.parametrize(
    "spec",
    [pytest.param(LONG, marks=pytest.mark.long), pytest.param(FACTS, marks=pytest.mark.long), MANY],
    ids=["after", "facts", "retrieval"],
)
def test_work_without_end_stops(spec: Retrieval | Facts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The interrupt comes while a compiled program runs, and is raised by us, not within JAX."""
    asked = threading.Semaphore(0)

    def ask(finished: Iterable[Any] = ()) -> None:
        stop_if_asked(finished)
        asked.release()

    def press() -> None:
        # Asked twice, it is past the first call: the next compiled program is under way.
        if asked.acquire(timeout=patience.SECONDS) and asked.acquire(timeout=patience.SECONDS):
            signal.raise_signal(signal.SIGINT)

    for module in (simulation, streaming, early_stopping):
        monkeypatch.setattr(module, "stop_if_asked", ask)
    with Store(tmp_path / "s.db") as store:
        threading.Thread(target=press, daemon=True).start()
        with pytest.raises(KeyboardInterrupt) as caught:
            sweep([(spec, 0)], store, ThisProcess("cpu"))
    assert caught.traceback[-1].name == "stop_if_asked"
    assert simulate_many([(SHORT, 0)])[0].status == "ok"  # JAX is well
