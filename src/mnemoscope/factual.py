"""Trainings of paper B's transformer: settings and seeds in, outcomes out.

Trainings that share a program run side by side. Each stops at the first check at which accuracy on
fresh sequences reaches its target; what is reported is accuracy on sequences that no check saw.
"""

from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np

from mnemoscope.fields import Device
from mnemoscope.keys import named_key
from mnemoscope.numerics import Place, Precision, find_device, forget_programs, numerics
from mnemoscope.record import Outcome
from mnemoscope.room import Room
from mnemoscope.spec import Facts, SpecError
from mnemoscope.together import Lesson, Rows, School, train_together
from mnemoscope.training.factual import advance, begin, final_accuracy

FactsJob = tuple[Facts, int]
# Steps between two looks at accuracy.
CHECK = 32
# Trainings side by side, at most; memory may allow fewer.
MOST_AT_ONCE = {"cpu": 16, "gpu": 64}


def program_of(spec: Facts, platform: str = "cpu") -> Facts:
    """The setting whose compiled program serves this one: heads and width are rounded up.

    Heads to a power of two, width to one from 8 on, or from 128 where hidden units cost little
    beside a compilation: fewer programs to compile, and what is too much is zero.
    """
    heads = 1 << (spec.heads - 1).bit_length()
    least = 8 if platform == "cpu" else 128
    width = max(least, 1 << (spec.width - 1).bit_length()) if spec.width else 0
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
        groups.setdefault(program_of(spec, place.platform), []).append(number)
    found: dict[int, Outcome] = {}
    with numerics(precision, place):
        for program, numbers in groups.items():
            forget_programs()
            size = _batch_size(program, place)
            for first in range(0, len(numbers), size):
                part = numbers[first : first + size]
                done = _train(program, [jobs[number] for number in part], place, precision)
                found.update(zip(part, done, strict=True))
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


def _train(
    program: Facts, jobs: list[FactsJob], place: Place, precision: Precision
) -> list[Outcome]:
    """One batch, in one compiled program."""
    each = [_keys(spec, seed) for spec, seed in jobs]
    keys = {name: jnp.asarray(np.stack([one[name] for one in each])) for name in each[0]}
    heads, width = (
        jnp.asarray([getattr(spec, name) for spec, _ in jobs], jnp.int32)
        for name in ("heads", "width")
    )
    world, state = begin(program, keys, heads, width)
    lr = jnp.asarray([spec.lr for spec, _ in jobs], float)

    def go_on(rows: Rows) -> tuple[Rows, dict[str, np.ndarray]]:
        world, state, lr = rows
        state, info = advance(program, CHECK, world, state, lr)
        return (world, state, lr), {k: np.asarray(part) for k, part in info._asdict().items()}

    def final(rows: Rows) -> np.ndarray:
        return np.asarray(final_accuracy(program, *rows[:2]))

    lessons = [Lesson(s, seed, s.target, s.max_steps, s.parameters) for s, seed in jobs]
    return train_together(
        lessons, (world, state, lr), School(go_on, CHECK, final, place, precision)
    )
