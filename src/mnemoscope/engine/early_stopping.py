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
from mnemoscope.spec import Spec

# Going on in a smaller batch costs a compilation of about so many seconds.
COMPILE_SECONDS = 4.0
# A GPU does so many small trainings in the time of one, and so many large ones.
LEAST_ON_GPU, LEAST_LARGE = 8, 4
KEPT_CHECKS = 128

# Arrays in any nesting, all with a first axis of one row for each training.
Rows = Any


@dataclass(frozen=True)
class TrainingJob:
    """One training of a batch: what it is of, where it stops, and when it gives up."""

    spec: Spec
    seed: int
    target: float
    most_steps: int
    parameters: int


@dataclass(frozen=True)
class TrainingPlan:
    """How a batch is trained.

    `advance` takes `check` steps and tells, row by row, `loss`, `accuracy` and whatever else there
    is; `final` is the accuracy to report, which may be on other data than the checks'.
    """

    advance: Callable[[Rows], tuple[Rows, dict[str, np.ndarray]]]
    check: int
    final: Callable[[Rows], np.ndarray]
    place: Place
    precision: Precision
    # The most rows that fit in memory, and the fewest rows on a GPU.
    most: int
    least: int = LEAST_ON_GPU
    compile_seconds: float = COMPILE_SECONDS


def row_count(trainings: int, place: Place, most: int, least: int = LEAST_ON_GPU) -> int:
    """How many rows to run for so many trainings, of which at most `most` fit in memory.

    A GPU gets 8, 12, 16, 24, 32, ..., so that batches of any size share a few compiled programs.
    """
    if place.platform == "cpu":
        return trainings
    return max(trainings, min(most, max(least, round_up(trainings, 8))))


def round_up(number: int, halves_above: int) -> int:
    """The next power of two, or three quarters of it where that is enough, above some number."""
    octave = 1 << (number - 1).bit_length()
    return 3 * octave // 4 if halves_above < number <= 3 * octave // 4 else octave


def most_rows(fits: int, usual: int, place: Place) -> int:
    """How many trainings to run at once: as usual, or as many as memory holds; on a CPU one."""
    most = max(1, min(usual, fits))
    return 1 if place.platform == "cpu" else 1 << (most.bit_length() - 1)


def filled(jobs: Sequence[Any], place: Place, most: int, least: int = LEAST_ON_GPU) -> list[Any]:
    """The jobs of a batch, the last one repeated until there is one for each row."""
    return [*jobs, *[jobs[-1]] * (row_count(len(jobs), place, most, least) - len(jobs))]


def train_until_target(
    jobs: Sequence[TrainingJob], rows: Rows, plan: TrainingPlan, hear: Hear | None = None
) -> list[Trial]:
    """Alternate steps and checks from the first state on. Rows beyond the jobs are padding."""
    outcomes: dict[int, Trial] = {}
    curves: list[list[dict[str, float]]] = [[] for _ in jobs]
    at = list(range(len(jobs)))
    size, each = row_count(len(at), plan.place, plan.most, plan.least), math.inf
    longest = max(job.most_steps for job in jobs)
    began, taken = time.perf_counter(), 0
    while len(outcomes) < len(jobs):
        stop_if_asked(outcomes.values())
        clock = time.perf_counter()
        rows, measured = plan.advance(rows)
        taken += plan.check
        over: dict[int, tuple[Status, str]] = {}
        for row, number in enumerate(at):
            if number in outcomes:
                continue
            values = {name: float(part[row]) for name, part in measured.items()}
            curves[number].append({"step": taken, **values})
            verdict = _judge(jobs[number], taken, values)
            if verdict is not None:
                over[row] = verdict
            if hear is not None:
                share = 1.0 if verdict else taken / jobs[number].most_steps
                hear(jobs[number].spec, jobs[number].seed, share)
        final = plan.final(rows) if over else np.empty(0)
        for row, (status, message) in over.items():
            number = at[row]
            job, curve = jobs[number], curves[number]
            ended = {name: value for name, value in curve[-1].items() if name != "step"}
            ended["accuracy"] = min(1.0, float(final[row]))
            outcomes[number] = Trial(
                job.spec,
                job.seed,
                status,
                metrics={
                    **(ended if status != "diverged" else {**ended, "accuracy": None}),
                    "steps": taken,
                    "parameters": job.parameters,
                },
                history=tuple(curve[:: -(-len(curve) // KEPT_CHECKS)]),
                seconds=(time.perf_counter() - began) / len(jobs),
                message=message,
                precision=plan.precision,
                device=plan.place.device_kind,
            )
        # A check may have waited for a compilation: the fastest shows what one takes.
        each = min(each, time.perf_counter() - clock)
        left = [row for row, number in enumerate(at) if number not in outcomes]
        fewer = row_count(len(left), plan.place, plan.most, plan.least)
        saved = each * (longest - taken) / plan.check * (1 - fewer / size)
        if left and 2 * fewer <= size and saved > plan.compile_seconds:
            keep = jnp.asarray([*left, *left[-1:] * (fewer - len(left))])
            rows = jax.tree.map(lambda part, keep=keep: part[keep], rows)
            at, size, each = [at[row] for row in left], fewer, math.inf
    return [outcomes[number] for number in range(len(jobs))]


def _judge(job: TrainingJob, taken: int, values: dict[str, float]) -> tuple[Status, str] | None:
    """How a training ended, or None where it goes on."""
    if not np.isfinite(values["loss"]):
        return "diverged", f"the loss overflowed within {taken:,} steps"
    if values["accuracy"] >= job.target:
        return "ok", ""
    if taken >= job.most_steps:
        return "unreached", f"accuracy {job.target:g} not within {taken:,} steps"
    return None
