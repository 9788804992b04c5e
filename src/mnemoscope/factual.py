"""Trainings of paper B's transformer: settings and seeds in, outcomes out.

Trainings that share a program run side by side. Each stops at the first check at which accuracy on
fresh sequences reaches its target; what is reported is accuracy on sequences that no check saw.
When most of a batch is done, the rest goes on in a smaller one.
"""

import time
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from mnemoscope.fields import Device
from mnemoscope.keys import named_key
from mnemoscope.memory import Room
from mnemoscope.numerics import Place, Precision, find_device, forget_programs, numerics
from mnemoscope.record import Outcome, Status
from mnemoscope.spec import Facts, SpecError
from mnemoscope.training.factual import State, World, advance, begin, final_accuracy

FactsJob = tuple[Facts, int]
# Steps between two looks at accuracy.
CHECK = 32
# Trainings side by side, at most; memory may allow fewer.
MOST_AT_ONCE = {"cpu": 16, "gpu": 64}
# Going on in a smaller batch costs a compilation of about so many seconds.
COMPILE_SECONDS = 8.0
KEPT_CHECKS = 128


def program_of(spec: Facts) -> Facts:
    """The setting whose compiled program serves this one: heads and width are rounded up.

    Heads to a power of two, width to one from 8 on: fewer programs to compile, and what is too much
    is zero.
    """
    heads = 1 << (spec.heads - 1).bit_length()
    width = max(8, 1 << (spec.width - 1).bit_length()) if spec.width else 0
    return spec.replace(heads=heads, width=width, lr=0.01, max_steps=1, target=0.99)


def train_many(
    jobs: Sequence[FactsJob],
    *,
    device: Device = "auto",
    precision: Precision = "float32",
) -> list[Outcome]:
    """One outcome for each (spec, seed), in the order asked for."""
    place = find_device(device)
    groups: dict[Facts, list[int]] = {}
    for number, (spec, _) in enumerate(jobs):
        groups.setdefault(program_of(spec), []).append(number)
    found: dict[int, Outcome] = {}
    with numerics(precision, place):
        for program, numbers in groups.items():
            forget_programs()
            size = _batch_size(program, place)
            for first in range(0, len(numbers), size):
                part = numbers[first : first + size]
                batch = _Batch(program, [jobs[number] for number in part], place, precision)
                found.update(zip(part, batch.train(), strict=True))
    return [found[number] for number in range(len(jobs))]


def needed_bytes(program: Facts) -> int:
    """About what a training holds while a step runs: attention by sample, head and token."""
    B, H, V = program.batch, program.heads, program.tokens
    return 4 * (6 * B * H * V + 8 * H * V * program.dim + 4 * B * (program.outputs + V))


def _batch_size(program: Facts, place: Place) -> int:
    kind = "cpu" if place.platform == "cpu" else "gpu"
    planned = Room.of(place).planned or 2**30
    fits = planned // needed_bytes(program)
    if fits < 1:
        raise SpecError(
            "batch", f"expected few enough sequences for the memory that is free, got "
            f"{program.batch:,} ({needed_bytes(program) / 1e9:.1f} GB)",
        )  # fmt: skip
    return max(1, min(MOST_AT_ONCE[kind], fits))


def _keys(spec: Facts, seed: int) -> dict[str, np.ndarray]:
    """Streams: the same seed has the same facts and sequences at every d, H, m and lr."""
    task = {"subjects": spec.subjects, "relations": spec.relations}
    wide = {**task, "noise": spec.noise_tokens, "length": spec.length}
    made = {"facts": named_key(seed, "facts", **task, answers=spec.answers)}
    made |= {name: named_key(seed, f"facts-{name}", **wide) for name in ("train", "test", "final")}
    names = ("token", "answer", "Q", "K", "V", "O", "W1", "b", "W2")
    return made | {name: named_key(seed, f"facts-{name}", dim=spec.dim) for name in names}


class _Batch:
    """Trainings side by side, until each has its outcome."""

    def __init__(
        self, program: Facts, jobs: list[FactsJob], place: Place, precision: Precision
    ) -> None:
        self.program, self.jobs, self.place, self.precision = program, jobs, place, precision
        self.outcomes: dict[int, Outcome] = {}
        self.curves: list[list[dict[str, float]]] = [[] for _ in jobs]
        self.began = time.perf_counter()

    def train(self) -> list[Outcome]:
        """Steps and checks in turn."""
        world, state = self._begin()
        at = list(range(len(self.jobs)))
        lr = jnp.asarray([spec.lr for spec, _ in self.jobs], float)
        longest = max(spec.max_steps for spec, _ in self.jobs)
        taken = 0
        while len(self.outcomes) < len(self.jobs):
            clock = time.perf_counter()
            state, info = advance(self.program, CHECK, world, state, lr)
            told = {name: np.asarray(part) for name, part in info._asdict().items()}
            taken += CHECK
            self._judge(at, taken, told, world, state)
            each = time.perf_counter() - clock
            left = [row for row, number in enumerate(at) if number not in self.outcomes]
            saved = each * (longest - taken) / CHECK * (1 - len(left) / len(at))
            if left and 2 * len(left) <= len(at) and saved > COMPILE_SECONDS:
                world, state, lr = _take((world, state, lr), left)
                at = [at[row] for row in left]
        return [self.outcomes[number] for number in range(len(self.jobs))]

    def _begin(self) -> tuple[World, State]:
        each = [_keys(spec, seed) for spec, seed in self.jobs]
        keys = {name: jnp.asarray(np.stack([one[name] for one in each])) for name in each[0]}
        heads, width = (
            jnp.asarray([getattr(spec, name) for spec, _ in self.jobs], jnp.int32)
            for name in ("heads", "width")
        )
        return begin(self.program, keys, heads, width)

    def _judge(
        self, at: list[int], taken: int, told: dict[str, np.ndarray], world: World, state: State
    ) -> None:
        """Note how each training stands, and write down those that are over."""
        over: dict[int, tuple[Status, str]] = {}
        for row, number in enumerate(at):
            spec, _ = self.jobs[number]
            if number in self.outcomes:
                continue
            values = {name: float(part[row]) for name, part in told.items()}
            self.curves[number].append({"step": taken, **values})
            if not np.isfinite(values["loss"]):
                over[row] = ("diverged", f"the loss overflowed within {taken:,} steps")
            elif values["accuracy"] >= spec.target:
                over[row] = ("ok", "")
            elif taken >= spec.max_steps:
                over[row] = ("unreached", f"accuracy {spec.target:g} not within {taken:,} steps")
        if not over:
            return
        final = np.asarray(final_accuracy(self.program, world, state))
        for row, (status, message) in over.items():
            number = at[row]
            spec, seed = self.jobs[number]
            curve = self.curves[number]
            self.outcomes[number] = Outcome(
                spec, seed, status,
                metrics={
                    "accuracy": float(final[row]) if status != "diverged" else None,
                    "relation_accuracy": curve[-1]["relation"], "loss": curve[-1]["loss"],
                    "steps": taken, "parameters": spec.parameters,
                },
                curve=tuple(curve[:: -(-len(curve) // KEPT_CHECKS)]),
                seconds=(time.perf_counter() - self.began) / len(self.jobs), message=message,
                precision=self.precision, device=self.place.device_kind,
            )  # fmt: skip


def _take(trees: Any, rows: list[int]) -> Any:
    return jax.tree.map(lambda part: part[jnp.asarray(rows)], trees)
