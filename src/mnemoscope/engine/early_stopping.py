"""Train a batch until every training has stopped.

A training stops at the first check at which its accuracy reaches the target, or at its last step.
When most of a batch has stopped, the rest continues in a smaller batch. On a CPU a batch is one
training: more would be no faster, and their last digits would depend on their neighbours.
"""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from mnemoscope.engine.device import Place, Precision
from mnemoscope.engine.interrupts import stop_if_asked
from mnemoscope.engine.kinds import Hear
from mnemoscope.engine.record import Status, Trial

# Seconds to compile the program of a smaller batch.
COMPILE_SECONDS = 4.0
# A GPU runs this many small trainings in the time of one, and this many large ones.
LEAST_ON_GPU, LEAST_LARGE = 8, 4
# Checks that a trial's curve keeps, at most.
KEPT_CHECKS = 128

# A spec with `target`, `most_steps` and `parameters`, and a seed.
TrainingJob = tuple[Any, int]
# A tree of arrays whose first axis has a row for each training.
Rows = Any


@dataclass(frozen=True)
class TrainingPlan:
    """How to train a batch.

    `advance` takes `check` steps and returns `loss`, `accuracy` and any other measurements, row by
    row. `final` has the accuracy to report, which may be on other data than that of the checks, and
    any other shares. `at_end` has what is measured once, and may be numbers of any size.
    """

    advance: Callable[[Rows], tuple[Rows, dict[str, np.ndarray]]]
    check: int
    final: Callable[[Rows], dict[str, np.ndarray]]
    place: Place
    precision: Precision
    # The most rows that fit in memory, and the fewest to run on a GPU.
    most: int
    least: int = LEAST_ON_GPU
    compile_seconds: float = COMPILE_SECONDS
    at_end: Callable[[Rows], dict[str, np.ndarray]] | None = None


def row_count(trainings: int, place: Place, most: int, least: int = LEAST_ON_GPU) -> int:
    """The number of rows to run for this many trainings, where at most `most` rows fit in memory.

    A GPU gets 8, 12, 16, 24, 32, ..., so that batches of any size share a few compiled programs.
    """
    if place.platform == "cpu":
        return trainings
    return max(trainings, min(most, max(least, round_up(trainings, 8))))


def round_up(number: int, halves_above: int) -> int:
    """Round up to a power of two, or, above `halves_above`, to three quarters of one if that is enough."""
    octave = 1 << (number - 1).bit_length()
    return 3 * octave // 4 if halves_above < number <= 3 * octave // 4 else octave


def most_rows(fits: int, usual: int, place: Place) -> int:
    """How many trainings to run at once: the usual number, or as many as fit in memory; one on a CPU."""
    most = max(1, min(usual, fits))
    return 1 if place.platform == "cpu" else 1 << (most.bit_length() - 1)


def filled(jobs: Sequence[Any], place: Place, most: int, least: int = LEAST_ON_GPU) -> list[Any]:
    """The jobs of a batch, with the last one repeated until every row has a job."""
    return [*jobs, *[jobs[-1]] * (row_count(len(jobs), place, most, least) - len(jobs))]


def train_until_target(
    jobs: Sequence[TrainingJob], rows: Rows, plan: TrainingPlan, hear: Hear | None = None
) -> list[Trial]:
    """Alternate steps and checks until every job has stopped. Rows beyond the jobs are padding."""
    outcomes: dict[int, Trial] = {}
    curves: list[list[dict[str, float]]] = [[] for _ in jobs]
    number_of_row = list(range(len(jobs)))
    size, check_seconds = row_count(len(jobs), plan.place, plan.most, plan.least), math.inf
    longest = max(spec.most_steps for spec, _ in jobs)
    began, taken = time.perf_counter(), 0
    while len(outcomes) < len(jobs):
        stop_if_asked(outcomes.values())
        clock = time.perf_counter()
        rows, measured = plan.advance(rows)
        taken += plan.check
        stopped: dict[int, tuple[Status, str]] = {}
        for row, number in enumerate(number_of_row):
            if number in outcomes:
                continue
            spec, seed = jobs[number]
            values = {name: float(part[row]) for name, part in measured.items()}
            curves[number].append({"step": taken, **values})
            verdict = _judge(spec, taken, values, curves[number])
            if verdict is not None:
                stopped[row] = verdict
            if hear is not None:
                hear(spec, seed, 1.0 if verdict else taken / spec.most_steps)
        final, ended = ({}, {})
        if stopped:
            final, ended = plan.final(rows), plan.at_end(rows) if plan.at_end else {}
        for row, (status, message) in stopped.items():
            number = number_of_row[row]
            (spec, seed), curve = jobs[number], curves[number]
            last = {name: value for name, value in curve[-1].items() if name != "step"}
            end = {name: min(1.0, float(part[row])) for name, part in final.items()}
            accuracy = None if status == "diverged" else end["accuracy"]
            once = {name: _known(float(part[row])) for name, part in ended.items()}
            if (bits := once.get("bits_stored")) is not None:
                once["bits_per_parameter"] = bits / spec.parameters
            metrics = {**last, **end, **once, "accuracy": accuracy, "steps": taken, "parameters": spec.parameters}
            kept = tuple(curve[:: -(-len(curve) // KEPT_CHECKS)])
            seconds = (time.perf_counter() - began) / len(jobs)
            how = (seconds, message, plan.precision, plan.place.device_kind)
            outcomes[number] = Trial(spec, seed, status, kept, metrics, *how)
        # A check may have waited for a compilation, so the fastest tells what one costs.
        check_seconds = min(check_seconds, time.perf_counter() - clock)
        left = [row for row, number in enumerate(number_of_row) if number not in outcomes]
        fewer = row_count(len(left), plan.place, plan.most, plan.least)
        saved = check_seconds * (longest - taken) / plan.check * (1 - fewer / size)
        if left and 2 * fewer <= size and saved > plan.compile_seconds:
            keep = jnp.asarray([*left, *left[-1:] * (fewer - len(left))])
            rows = jax.tree.map(lambda part, keep=keep: part[keep], rows)
            number_of_row, size, check_seconds = [number_of_row[row] for row in left], fewer, math.inf
    return [outcomes[number] for number in range(len(jobs))]


def _known(value: float) -> float | None:
    """A measurement, or None where there was nothing to measure."""
    return value if math.isfinite(value) else None


def _judge(
    spec: Any, taken: int, values: dict[str, float], curve: Sequence[dict[str, float]]
) -> tuple[Status, str] | None:
    """How a training ended, or None if it continues."""
    if not np.isfinite(values["loss"]):
        return "diverged", f"the loss overflowed within {taken:,} steps"
    stop = getattr(spec, "stop", "target")
    if stop == "target" and values["accuracy"] >= spec.target:
        return "ok", ""
    if stop == "settled" and stopped_falling([check["loss"] for check in curve]):
        return "ok", ""
    if taken >= spec.most_steps:
        if stop == "steps":
            return "ok", ""
        what = f"accuracy {spec.target:g}" if stop == "target" else "a loss that has stopped falling"
        return "unreached", f"{what} not within {taken:,} steps"
    return None


# A loss this small has nowhere to fall; below this share of itself, a fall from one window to the next is none.
SMALL, FALL = 0.005, 0.01
# The first window of checks, and the share of the checks before it that each further one takes: a fifth.
FIRST_WINDOW, WINDOW = 64, 5


def stopped_falling(losses: Sequence[float]) -> bool:
    """Whether the loss has stopped falling, by its means over windows of checks (the rule and its numbers are ours).

    The first window has FIRST_WINDOW checks, each further one at least a fifth of the checks before it: slow training
    is given time in proportion. Means are compared when a window is full, so that looking often changes nothing.
    """
    if losses and losses[-1] < SMALL:
        return True
    first, before = 0, math.inf
    while True:
        length = max(FIRST_WINDOW, -(-first // WINDOW))
        if first + length > len(losses):
            return False
        mean = math.fsum(losses[first : first + length]) / length
        if math.isfinite(before) and before - mean <= FALL * before:
            return True
        first, before = first + length, mean
