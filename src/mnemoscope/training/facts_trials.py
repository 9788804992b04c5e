"""Trainings of paper B's transformer: settings and seeds in, outcomes out.

Trainings that share a program run side by side on a GPU; on a CPU each has its steps alone, so that
it ends with the same numbers whatever else was asked for. Each stops at the first check at which
accuracy on fresh sequences reaches its target; what is reported is accuracy on sequences that no
check saw.
"""

import time
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from mnemoscope.engine.device import Place, Precision, find_device, forget_programs, numerics
from mnemoscope.engine.early_stopping import (
    COMPILE_SECONDS,
    Hear,
    Rows,
    TrainingJob,
    TrainingPlan,
    filled,
    most_rows,
    train_until_target,
)
from mnemoscope.engine.free_memory import SINGULAR, SOLVED, check_fits
from mnemoscope.engine.interrupts import keeping_partial
from mnemoscope.engine.memory_budget import MemoryBudget
from mnemoscope.engine.random import named_key, normal
from mnemoscope.engine.record import Trial
from mnemoscope.models.constructed import write_weights
from mnemoscope.models.facts import Weights, by_position, draw_frozen, scores_per_head
from mnemoscope.spec import Facts, SpecError
from mnemoscope.spec.validators import Device
from mnemoscope.tasks.facts import Sizes, draw_facts
from mnemoscope.training.facts import Extent, World, advance, begin, final_accuracy, measure

FactsJob = tuple[Facts, int]
# Steps between two looks at accuracy.
CHECK = 32
# Trainings side by side on a GPU, at most; memory may allow fewer.
MOST_AT_ONCE = 64
# With so much work in a step (about as many products), and so many trainings, a GPU is busy: more
# would only end later, all at once.
BUSY, SOME = 2**31, 16
# A GPU takes a step of these sizes in the time of a smaller one.
LEAST = {"subjects": 32, "relations": 32, "answers": 8, "noise": 64, "width": 128}
# Steps of at most so many sequences x tokens x dimensions are cheap beside a compilation.
SMALL = 2**17
# A compilation for a GPU tries out kernels (training/facts.py), and takes about so long.
TRYING_SECONDS = 12.0


def program_of(spec: Facts, platform: str = "cpu") -> Facts:
    """The setting whose compiled program serves this one: sizes are rounded up.

    Subjects, relations, answers and noise to a quarter of an octave, heads and width to a power of
    two. Where a step is small, and on a GPU, all go up further, so that fewer programs are
    compiled: on a GPU at least to LEAST. What is too much is zero, or never occurs.
    """
    if spec.method == "constructed":
        return spec.replace(lr=0.01, max_steps=1, target=0.99)
    small = platform == "cpu" and spec.batch * spec.tokens * spec.dim <= SMALL
    up = _power_of_two if small or platform != "cpu" else _quarter_octave
    sizes = {name: up(getattr(spec, name)) for name in ("subjects", "relations", "answers")}
    heads, width = _power_of_two(spec.heads), spec.width and max(8, _power_of_two(spec.width))
    if small:
        heads, width = max(8, heads), width and max(64, width)
    sizes |= {"noise": up(spec.noise_tokens), "heads": heads, "width": width}
    if platform != "cpu":
        sizes |= {name: sizes[name] and max(size, sizes[name]) for name, size in LEAST.items()}
    return spec.replace(**sizes, lr=0.01, max_steps=1, target=0.99)


def _quarter_octave(number: int) -> int:
    step = max(1, 2 ** (number.bit_length() - 3))
    return -(-number // step) * step


def _power_of_two(number: int) -> int:
    return 1 << (number - 1).bit_length()


def train_many(
    jobs: Sequence[FactsJob], *, device: Device = "auto", precision: Precision = "float32", hear: Hear | None = None
) -> list[Trial]:
    """One outcome for each (spec, seed), in the order asked for. `hear` is told of progress."""
    place = find_device(device)
    groups: dict[Facts, list[int]] = {}
    for number, (spec, _) in enumerate(jobs):
        groups.setdefault(program_of(spec, place.platform), []).append(number)
    found: dict[int, Trial] = {}
    with numerics(precision, place), keeping_partial(found):
        for program, numbers in groups.items():
            forget_programs()
            size = _batch_size(program, place)
            for first in range(0, len(numbers), size):
                part = numbers[first : first + size]
                run = _train if program.method == "trained" else _construct
                done = run(program, [jobs[number] for number in part], place, precision, hear)
                found.update(zip(part, done, strict=True))
    return [found[number] for number in range(len(jobs))]


def needed_bytes(program: Facts) -> int:
    """About what a training holds while a step runs: attention by sample, head, and what it weighs.

    Beside it are tables by token, or, place by place, what was embedded and what heads have seen.
    """
    B, H, V, d, T = program.batch, program.heads, program.tokens, program.dim, program.length
    tables = 8 * H * V * program.head_dim + 4 * B * V
    beside = B * d * (2 * T + 4 * H) if by_position(program) else tables
    return 4 * (6 * B * H * scores_per_head(program) + beside + 4 * B * program.outputs)


def _batch_size(program: Facts, place: Place) -> int:
    planned = MemoryBudget.of(place).planned or 2**30
    fits = planned // needed_bytes(program)
    if fits < 1:
        raise SpecError(
            "batch",
            f"expected few enough sequences for the memory that is free, got "
            f"{program.batch:,} ({needed_bytes(program) / 1e9:.1f} GB)",
        )
    return most_rows(fits, enough_rows(program), place)


def enough_rows(program: Facts) -> int:
    """How many trainings of a program run side by side on a GPU that has room; a power of two."""
    times = 2 if by_position(program) else 1  # for scores, and for what is seen
    attention, mlp = times * program.heads * scores_per_head(program), 2 * program.width
    work = program.batch * program.dim * (attention + mlp + program.outputs)
    rows = MOST_AT_ONCE
    while rows > SOME and rows * work > BUSY:
        rows //= 2
    return rows


def _keys(spec: Facts, seed: int) -> dict[str, np.ndarray]:
    """Streams: the same seed has the same facts and sequences at every d, H, m and lr."""
    task = {"subjects": spec.subjects, "relations": spec.relations}
    wide = {**task, "noise": spec.noise_tokens, "length": spec.length}
    made = {"facts": named_key(seed, "facts", **task, answers=spec.answers)}
    made |= {name: named_key(seed, f"facts-{name}", **wide) for name in ("train", "test", "final")}
    names = ("token", "answer", "Q", "K", "V", "O", "W1", "b", "W2", "code")
    return made | {name: named_key(seed, f"facts-{name}", dim=spec.dim) for name in names}


def _check_writing(spec: Facts) -> None:
    """Weights are written down in double precision on the host."""
    d, k, m = spec.dim, spec.head_dim, spec.width
    tokens = spec.subjects + spec.relations
    heads = 4 * spec.heads * k * d + SINGULAR * min(k + 1, d) * d
    rows = 5 * (spec.tokens + spec.outputs + tokens) * d
    hidden = 3 * m * d + m * spec.relations
    needed = 8 * (heads + rows + hidden + SOLVED * d**2)
    check_fits("dim", f"{d:,}", needed, "writing the weights down")


def _construct(
    program: Facts, jobs: list[FactsJob], place: Place, precision: Precision, hear: Hear | None
) -> list[Trial]:
    """Weights written down for each job, and how often they are right."""
    made = []
    for spec, seed in jobs:
        _check_writing(spec)
        began = time.perf_counter()
        keys = {name: jnp.asarray(key) for name, key in _keys(spec, seed).items()}
        sizes = Sizes.of(spec)
        frozen, facts = draw_frozen(program, keys), draw_facts(program, sizes, keys["facts"])
        tokens = spec.subjects + spec.relations
        w, draw = (
            np.asarray(normal(keys[name], rows, spec.dim), float)
            for name, rows in (("W1", spec.width), ("code", tokens))
        )
        E, U = (np.asarray(part, float) for part in frozen)
        written = write_weights(spec, E, U, np.asarray(facts), w, draw)
        weights = Weights(*(jnp.asarray(part, float) for part in written))
        one = jax.tree.map(lambda part: part[None], (World(sizes, frozen, facts, keys), weights))
        right, own = (float(part[0]) for part in measure(program, *one, keys["final"][None]))
        made.append(
            Trial(
                spec,
                seed,
                "ok",
                metrics={"accuracy": right, "relation_accuracy": own, "parameters": spec.parameters},
                seconds=time.perf_counter() - began,
                precision=precision,
                device=place.device_kind,
            )
        )
    return made


def _train(program: Facts, jobs: list[FactsJob], place: Place, precision: Precision, hear: Hear | None) -> list[Trial]:
    """One batch, in one compiled program."""
    most = _batch_size(program, place)
    rows = filled(jobs, place, most)
    each = [_keys(spec, seed) for spec, seed in rows]
    keys = {name: jnp.asarray(np.stack([one[name] for one in each])) for name in each[0]}
    own = [Sizes.of(spec) for spec, _ in rows]
    sizes = jax.tree.map(lambda *parts: jnp.stack(parts), *own)
    extent = Extent(*(jnp.asarray([getattr(spec, name) for spec, _ in rows], jnp.int32) for name in Extent._fields))
    world, state = begin(program, keys, sizes, extent)
    lr = jnp.asarray([spec.lr for spec, _ in rows], float)

    def go_on(rows: Rows) -> tuple[Rows, dict[str, np.ndarray]]:
        world, state, lr = rows
        state, info = advance(program, CHECK, world, state, lr)
        return (world, state, lr), {k: np.asarray(part) for k, part in info._asdict().items()}

    def final(rows: Rows) -> np.ndarray:
        return np.asarray(final_accuracy(program, *rows[:2]))

    training_jobs = [TrainingJob(s, seed, s.target, s.max_steps, s.parameters) for s, seed in jobs]
    plan = TrainingPlan(
        go_on,
        CHECK,
        final,
        place,
        precision,
        most,
        compile_seconds=COMPILE_SECONDS if place.platform == "cpu" else TRYING_SECONDS,
    )
    return train_until_target(training_jobs, (world, state, lr), plan, hear)
