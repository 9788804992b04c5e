"""Measurements that pages order: one runs, the others wait, any can be cancelled, and finished trials are kept.

A thread sends orders to the worker process and records its progress, which pages show.
"""

import itertools
import multiprocessing
import threading
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Literal

from mnemoscope.experiments.estimate.estimate import Estimate
from mnemoscope.spec import SpecError
from mnemoscope.spec.token_laws import UNIFORM
from mnemoscope.spec.validators import Device
from mnemoscope.ui.explorer import diagram
from mnemoscope.ui.explorer.measured import measured_points
from mnemoscope.ui.explorer.state import RANGES, State
from mnemoscope.ui.explorer.worker import Order, serve

Stage = Literal["waiting", "running", "done", "cancelled", "failed"]
# How many may wait, and how many finished ones stay in the list.
MOST_WAITING, SHOWN = 20, 8
SECONDS_BETWEEN_POLLS = 0.1
# Numbers of samples on a measured curve, and the factor by which it extends to each side of the crossing.
CURVE_POINTS, REACH = 7, 6.0


def make_order(state: State, what: str, seeds: int) -> tuple[str, Order]:
    """The order in words, and the order: one setting, or seven N around where theory crosses the target."""
    spec = state.measured_spec
    setting = f"V={spec.vocab:,} d={spec.dim:,} L={spec.length:,}"
    if spec.width:
        setting += f" m={spec.width:,} {spec.activation}"
    if spec.tokens != UNIFORM:
        setting += f" tokens {spec.tokens}"
    how_many = f"{seeds} seed" + "s" * (seeds > 1)
    if state.trained:
        setting += " trained to the end"
    if what == "point":
        return f"{setting} N={spec.samples:,}, {how_many}", Order((spec,), seeds)
    predicted = diagram.draw(state, moving=False)
    middle = diagram.crossing(predicted.samples, predicted.accuracy, state.target) or spec.samples
    least, most = RANGES["samples"]
    low, high = max(least, middle / REACH), min(most, middle * REACH)
    samples = [round(low * (high / low) ** (k / (CURVE_POINTS - 1))) for k in range(CURVE_POINTS)]
    specs = tuple(spec.replace(samples=count) for count in samples)
    return f"{setting} N={samples[0]:,} to {samples[-1]:,}, {how_many} each", Order(specs, seeds)


@dataclass
class Measurement:
    """One order and its progress."""

    number: int
    words: str
    order: Order
    stage: Stage = "waiting"
    done: float = 0.0
    message: str = ""
    stop: threading.Event = field(default_factory=threading.Event)

    @property
    def share(self) -> float:
        """From 0 to 1."""
        return self.done / max(1, self.order.trials)

    @property
    def over(self) -> bool:
        """Whether it has ended."""
        return self.stage not in ("waiting", "running")

    @property
    def status(self) -> str:
        """Its progress in words."""
        trials = f"{int(self.done)} of {self.order.trials} trials"
        return {
            "waiting": "waiting",
            "running": trials if self.done else "starting",
            "done": self.message,
            "cancelled": f"cancelled; {trials} kept",
            "failed": self.message,
        }[self.stage]


class Measurements:
    """All orders of one server, on one store."""

    def __init__(self, store: Path, device: Device = "auto") -> None:
        self.store, self.device = store, device
        self._all: list[Measurement] = []
        self._numbers = itertools.count(1)
        self._changed = threading.Condition()
        self._closing = False
        self._worker: tuple[BaseProcess, Connection] | None = None
        self._thread = threading.Thread(target=self._work, name="measurements", daemon=True)
        self._thread.start()

    def add(self, words: str, order: Order) -> Measurement:
        """Queue an order; refuse it if the queue is full. The worker refuses orders that would take too long."""
        with self._changed:
            if len(self._waiting()) >= MOST_WAITING:
                raise SpecError("", f"expected at most {MOST_WAITING} waiting: cancel some first")
            measurement = Measurement(next(self._numbers), words, order)
            self._all.append(measurement)
            over = [other for other in self._all if other.over]
            for old in over[: max(0, len(over) - SHOWN)]:
                self._all.remove(old)
            self._changed.notify_all()
        return measurement

    def _waiting(self) -> list[Measurement]:
        return [each for each in self._all if each.stage == "waiting"]

    def cancel(self, number: int) -> None:
        """Stop one; its finished trials are kept."""
        with self._changed:
            for measurement in self._all:
                if measurement.number == number and not measurement.over:
                    measurement.stop.set()
                    if measurement.stage == "waiting":
                        measurement.stage = "cancelled"
                    self._changed.notify_all()

    def newest_first(self) -> list[Measurement]:
        """All that are still shown."""
        with self._changed:
            return self._all[::-1]

    @property
    def version(self) -> str:
        """A text that changes whenever one is added, dropped, or changes its stage."""
        with self._changed:
            return "-".join(f"{each.number}.{each.stage}" for each in self._all)

    @property
    def finished(self) -> int:
        """How many trials have finished; it changes when there is more to show."""
        with self._changed:
            return sum(int(each.done) for each in self._all)

    def close(self) -> int:
        """Stop the worker; how many orders were not finished."""
        with self._changed:
            self._closing = True
            left = [each for each in self._all if not each.over]
            for measurement in left:
                measurement.stop.set()
            self._changed.notify_all()
        self._thread.join(timeout=10)
        return len(left)

    def _work(self) -> None:
        while True:
            with self._changed:
                while not (waiting := self._waiting()) and not self._closing:
                    self._changed.wait()
                if self._closing:
                    break
                now = waiting[0]
                now.stage = "running"
            try:
                self._run(now)
            except Exception as error:  # the worker is gone, for example out of memory
                self._end_worker()
                gone = isinstance(error, OSError | EOFError)
                now.message = "the measuring process ended unexpectedly" if gone else str(error)
                now.stage = "failed"
        self._end_worker()

    def _run(self, now: Measurement) -> None:
        line = self._start_worker()
        line.send(now.order)
        while True:
            if now.stop.is_set():
                # End the process: a long trial would not stop for a message. Finished trials are kept.
                self._end_worker()
                now.stage = "cancelled"
                return
            if not line.poll(SECONDS_BETWEEN_POLLS):
                continue
            kind, value = line.recv()
            if kind == "at":
                now.done = max(now.done, float(value))
            elif kind == "refused":
                now.stage, now.message = "failed", str(value)
                return
            else:
                now.done = float(now.order.trials)
                now.message = f"{value} trials crashed" if value else self._result(now.order)
                now.stage = "failed" if value else "done"
                return

    def _result(self, order: Order) -> str:
        """The outcome in words."""
        spec = order.specs[0]
        if len(order.specs) > 1:
            return f"{order.trials} trials on the curve, kept in the store"
        point = next(point for point in measured_points(spec, self.store) if point["samples"] == spec.samples)
        return f"accuracy {Estimate.read(point, 'mean')} over {point['seeds']} seeds, kept in the store"

    def _start_worker(self) -> Connection:
        if self._worker is None or not self._worker[0].is_alive():
            context = multiprocessing.get_context("spawn")
            ours, theirs = context.Pipe()
            process = context.Process(target=serve, args=(theirs, self.store, self.device), daemon=True)
            process.start()
            theirs.close()
            self._worker = (process, ours)
        return self._worker[1]

    def _end_worker(self) -> None:
        if self._worker is None:
            return
        process, line = self._worker
        self._worker = None
        line.close()
        process.terminate()
        process.join(timeout=5)
        if process.is_alive():
            process.kill()
            process.join()
