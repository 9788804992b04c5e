"""Trials of paper B's associative memories: settings and seeds in, outcomes out.

Memories that differ in seed and, within an eighth of an octave or 32 (on a GPU: an octave or half
of one), in the number of items share a program. On a GPU they run side by side. On a CPU each has
its steps alone, so that it ends with the same numbers whatever else was asked for. The same seed
has the same first items at every N.
"""

from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np

from mnemoscope.engine.device import Place, Precision, find_device, forget_programs, numerics
from mnemoscope.engine.early_stopping import (
    LEAST_LARGE,
    LEAST_ON_GPU,
    Hear,
    Rows,
    TrainingJob,
    TrainingPlan,
    filled,
    most_rows,
    round_up,
    train_until_target,
)
from mnemoscope.engine.free_memory import SINGULAR, check_fits
from mnemoscope.engine.interrupts import keeping_partial
from mnemoscope.engine.memory_budget import MemoryBudget
from mnemoscope.engine.random import named_key
from mnemoscope.engine.record import Trial
from mnemoscope.models.memory import Full, least_squares
from mnemoscope.spec import Memory, SpecError
from mnemoscope.spec.validators import Device
from mnemoscope.training.memory import accuracy_of, advance, begin, constructed_accuracy

MemoryJob = tuple[Memory, int]
# Steps between two looks at accuracy, as in the authors' experiments.
CHECK = 32
# Memories side by side on a GPU, at most.
MOST_AT_ONCE = 64
# Items from which on a GPU, too, has much to do in a step.
LARGE = 1024


def program_of(spec: Memory, platform: str = "cpu") -> Memory:
    """The setting whose compiled program serves this one: items are rounded up.

    On a GPU much further: small steps take as long as larger ones, and compiling takes longer.
    """
    items = spec.items
    if platform != "cpu" and spec.embedding != "orthonormal":
        items = max(64, round_up(items, LARGE))
    elif spec.embedding != "orthonormal":  # which has no room for more rows than dimensions
        step = max(32, 2 ** (items.bit_length() - 4))
        items = -(-items // step) * step
    return spec.replace(items=items, lr=0.0, max_steps=0, target=0.99)


def recall_many(
    jobs: Sequence[MemoryJob], *, device: Device = "auto", precision: Precision = "float32", hear: Hear | None = None
) -> list[Trial]:
    """One outcome for each (spec, seed), in the order asked for. `hear` is told of progress."""
    place = find_device(device)
    groups: dict[Memory, list[int]] = {}
    for number, (spec, _) in enumerate(jobs):
        groups.setdefault(program_of(spec, place.platform), []).append(number)
    found: dict[int, Trial] = {}
    with numerics(precision, place), keeping_partial(found):
        for program, numbers in groups.items():
            forget_programs()
            size = _batch_size(program, place)
            if program.method == "least-squares":
                _check_solving(program)
            run = _train if program.method == "trained" else _construct
            for first in range(0, len(numbers), size):
                part = numbers[first : first + size]
                done = run(program, [jobs[number] for number in part], place, precision, hear)
                found.update(zip(part, done, strict=True))
    return [found[number] for number in range(len(jobs))]


def needed_bytes(program: Memory) -> int:
    """About what a memory holds while a step runs: logits, hidden units, items and answers."""
    N, M, d, m = program.items, program.labels, program.dim, program.width or program.rank
    at_once = N * M if program.method == "trained" else min(N * M, 2**24)
    return 4 * (4 * at_once + 3 * N * m + 2 * (N + M) * d + 4 * program.parameters)


def _check_solving(program: Memory) -> None:
    """Least squares solves in double precision on the host, one memory after the other."""
    N, M, d = program.items, program.labels, program.dim
    needed = 8 * ((SINGULAR + 2) * d**2 + 3 * (N + M) * d)
    check_fits("dim", f"{d:,}", needed, "least squares")


def _batch_size(program: Memory, place: Place) -> int:
    fits = (MemoryBudget.of(place).planned or 2**30) // needed_bytes(program)
    if fits < 1:
        raise SpecError(
            "items",
            f"expected few enough for the memory that is free, got {program.items:,} "
            f"({needed_bytes(program) / 1e9:.1f} GB)",
        )
    return most_rows(fits, MOST_AT_ONCE, place)


def draw_streams(jobs: list[MemoryJob]) -> tuple[dict[str, jnp.ndarray], jnp.ndarray]:
    """The streams of each job, and its number of items."""
    names = ("item", "answer", "inner", "outer")
    keys = {
        name: jnp.asarray(np.stack([named_key(seed, f"memory-{name}", dim=spec.dim) for spec, seed in jobs]))
        for name in names
    }
    return keys, jnp.asarray([spec.items for spec, _ in jobs], jnp.uint32)


def _construct(
    program: Memory, jobs: list[MemoryJob], place: Place, precision: Precision, hear: Hear | None
) -> list[Trial]:
    keys, items = draw_streams(jobs)
    if program.method == "hebbian":
        told = np.asarray(constructed_accuracy(program, keys, items))
    else:
        pairs, _ = begin(program, keys, items)
        E, U, label = (np.asarray(part) for part in (pairs.E, pairs.U, pairs.label))
        weights = [
            least_squares(E[row, :n].astype(float), U[row, :m].astype(float), label[row, :n])
            for row, (n, m) in enumerate((spec.items, spec.labels) for spec, _ in jobs)
        ]
        told = np.asarray(accuracy_of(program, pairs, Full(jnp.asarray(np.stack(weights), float))))
    return [
        Trial(
            spec,
            seed,
            "ok",
            metrics={"accuracy": float(told[row]), "parameters": spec.parameters},
            precision=precision,
            device=place.device_kind,
        )
        for row, (spec, seed) in enumerate(jobs)
    ]


def _train(
    program: Memory, jobs: list[MemoryJob], place: Place, precision: Precision, hear: Hear | None
) -> list[Trial]:
    most, least = _batch_size(program, place), LEAST_ON_GPU
    if program.items > LARGE:
        least = LEAST_LARGE
    rows = filled(jobs, place, most, least)
    pairs, state = begin(program, *draw_streams(rows))
    lr = jnp.asarray([spec.rate for spec, _ in rows], float)
    last = np.zeros(len(jobs))

    def go_on(rows: Rows) -> tuple[Rows, dict[str, np.ndarray]]:
        nonlocal last
        pairs, state, lr = rows
        state, loss, accuracy = advance(program, CHECK, pairs, state, lr)
        last = np.asarray(accuracy)
        return (pairs, state, lr), {"loss": np.asarray(loss), "accuracy": last}

    training_jobs = [TrainingJob(s, seed, s.target, s.most_steps, s.parameters) for s, seed in jobs]
    # All items are in every check: its accuracy is the final one.
    plan = TrainingPlan(go_on, CHECK, lambda rows: last, place, precision, most, least)
    return train_until_target(training_jobs, (pairs, state, lr), plan, hear)
