"""How long work takes, said before it is begun: operations counted, at rates of this machine.

Trials fall apart into passes over tokens, products of matrices, and single numbers that something
is done with (a softmax, a hidden unit). What each of those takes was measured on two cores
(REFERENCE) and on an H200; on a CPU a probe of a few milliseconds says how this machine compares
with those two cores. Good to a factor of two or three. A training counts with all of its steps.
"""

import math
import os
import statistics
import time
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from mnemoscope.engine.record import AnyJob
from mnemoscope.models.facts import by_position, scores_per_head
from mnemoscope.spec import Facts, Flow, Memory, Retrieval, Spec
from mnemoscope.training import facts_trials, memory_trials
from mnemoscope.training.three_step.call import bucket
from mnemoscope.training.three_step.simulation import passes

# Seconds of the probe on the cores on which the rates below were measured: a product of matrices
# that one core makes, and exponentials.
REFERENCE = (5.6e-6, 15.5e-6)
REFERENCE_CORES = 2
PROBES = 25
# However busy a machine is, most of it passes: we reckon with at least so much of the cores.
LEAST_SHARE = 1 / 3
# Tables by pair of tokens above this many entries are given up for a factored form.
DENSE = 1.5e8


class Rates(NamedTuple):
    """Seconds that one of each takes."""

    token: float  # drawn and counted in one pass
    product: float  # a multiplication and an addition in a product of matrices
    entry: float  # of a table by pair of tokens, in all that is done with it
    unit: float  # a hidden unit or a weight that a softmax makes
    embedded: float  # a coordinate of a token's vector, by automatic differentiation
    drawn: float  # a token of a sequence of facts
    step: float  # of a training, however small
    trial: float  # however small
    program: dict[str, float]  # to compile, by kind


RATES = {
    "cpu": Rates(
        token=7e-9,
        product=4e-11,
        entry=2e-8,
        unit=2.2e-9,
        embedded=1.6e-8,
        drawn=2.5e-8,
        step=3e-6,
        trial=5e-3,
        program={"retrieval": 5.0, "facts": 3.0, "memory": 1.0, "flow": 3.0},
    ),
    "gpu": Rates(
        token=5e-11,
        product=5e-14,
        entry=1e-10,
        unit=1e-11,
        embedded=4e-11,
        drawn=1e-11,
        step=4e-5,
        trial=2e-4,
        program={"retrieval": 5.0, "facts": 12.0, "memory": 4.0, "flow": 5.0},
    ),
}


def machine_speed() -> float:
    """How fast this machine's CPU is beside the one that the rates are of, as busy as it is."""
    # More cores help where steps are large, and not where they are small.
    cores = math.sqrt((os.cpu_count() or 1) / REFERENCE_CORES)
    return _core_speed() * cores * _idle_share()


@lru_cache(maxsize=1)
def _core_speed() -> float:
    matrix = np.ones((64, 64), np.float32)  # larger ones would take all cores, and wait for them
    line = np.linspace(0.0, 1.0, 2**15, dtype=np.float32)
    found = (_median_seconds(np.matmul, matrix, matrix), _median_seconds(np.exp, line))
    return statistics.geometric_mean(
        reference / max(one, 1e-9) for reference, one in zip(REFERENCE, found, strict=True)
    )


def _median_seconds(what: np.ufunc, *arrays: np.ndarray) -> float:
    told = []
    for _ in range(PROBES):
        began = time.perf_counter()
        what(*arrays)
        told.append(time.perf_counter() - began)
    return statistics.median(told)


def _idle_share() -> float:
    """What others leave us of the cores, by the last minute's load. A probe is too short to see."""
    if not hasattr(os, "getloadavg"):  # Windows
        return 1.0
    return max(LEAST_SHARE, min(1.0, (os.cpu_count() or 1) / (1 + os.getloadavg()[0])))


def estimate_seconds(
    jobs: Sequence[AnyJob], platform: str, *, compiling: bool = True, speed: float | None = None
) -> float:
    """About how long the jobs take, one process on its own; trainings with all of their steps.

    `speed` is that of the CPU beside the reference's, by default as it is measured now.
    """
    platform = _known(platform)
    each: dict[str, float] = {}
    programs: dict[str, float] = {}
    total = 0.0
    for spec, _ in jobs:
        if spec.id not in each:  # a sweep has many seeds of few specs
            each[spec.id] = job_seconds(spec, platform)
            programs[_program(spec, platform)] = compile_seconds(spec, platform)
        total += each[spec.id]
    if compiling:
        total += sum(programs.values())
    return scaled(total, platform, speed)


def scaled(seconds: float, platform: str, speed: float | None = None) -> float:
    """Seconds of the reference as those of this machine."""
    if _known(platform) == "gpu":
        return seconds
    return seconds / (machine_speed() if speed is None else speed)


def job_seconds(spec: Spec, platform: str) -> float:
    """One trial on the reference, beside others of its kind; compilation is not in it."""
    rates = RATES[_known(platform)]
    if isinstance(spec, Retrieval):
        return _retrieval(spec, rates)
    if isinstance(spec, Facts):
        return _facts(facts_trials.program_of(spec, platform), rates) * (
            spec.max_steps if spec.method == "trained" else 1
        )
    if isinstance(spec, Memory):
        return _memory(memory_trials.program_of(spec, platform), rates) * (
            spec.most_steps if spec.method == "trained" else 1
        )
    assert isinstance(spec, Flow)
    return _flow(spec, rates)


def stops_early(spec: Spec) -> bool:
    """Whether a trial may end before all of its steps are taken."""
    return isinstance(spec, Facts | Memory) and spec.method == "trained"


def most_steps(spec: Spec) -> int:
    """The steps after which a training gives up; 0 where there is none."""
    if not stops_early(spec):
        return 0
    return spec.max_steps if isinstance(spec, Facts) else spec.most_steps  # pyright: ignore[reportAttributeAccessIssue]


def decoding_seconds(spec: Retrieval) -> float:
    """Decoders of the first gradient, on the reference: most is message passing, on a CPU."""
    V, d = spec.vocab, spec.dim
    rounds = 25 * (V**2 * 4e-8 + 6 * V**2 * d * 4e-11)
    assigned = 2e-10 * V**3 if V <= 2048 else 0.0
    return rounds + 3 * assigned + 20 * d**3 * 4e-11 + 0.05


def training_seconds(spec: Retrieval, platform: str) -> float:
    """The steps alone, on the reference, without answers to all tokens."""
    return _training(spec, RATES[_known(platform)])


def autodiff_seconds(spec: Retrieval, platform: str) -> float:
    """The same steps by automatic differentiation, on the reference."""
    rates = RATES[_known(platform)]
    d, N = spec.dim, spec.samples
    embedded = N * spec.length * d * rates.embedded
    return embedded + 18 * N * (spec.width + spec.vocab) * d * rates.product


def terms_seconds(spec: Retrieval, platform: str) -> float:
    """Attention's terms of one trial, on the reference, in double precision."""
    return 2 * job_seconds(spec, platform)


def compile_seconds(spec: Spec, platform: str) -> float:
    """A program of that kind, on the reference."""
    return RATES[_known(platform)].program[spec.kind]


# A prediction, on the reference.
THEORY_SECONDS = 0.015


def _known(platform: str) -> str:
    return "cpu" if platform == "cpu" else "gpu"


def _program(spec: Spec, platform: str) -> str:
    if isinstance(spec, Retrieval):
        return f"{spec.embedding} {spec.then} {bucket(spec).canonical()}"
    if isinstance(spec, Facts):
        return facts_trials.program_of(spec, platform).canonical()
    if isinstance(spec, Memory):
        return memory_trials.program_of(spec, platform).canonical()
    return spec.canonical()


def _retrieval(spec: Retrieval, rates: Rates) -> float:
    V, d = spec.vocab, spec.dim
    answers = 2 * V**2 * d * rates.product + V**2 * rates.entry / 2
    return _training(spec, rates) + answers + rates.trial


def _training(spec: Retrieval, rates: Rates) -> float:
    V, d, m, N = spec.vocab, spec.dim, spec.width, spec.samples
    gone_through = passes(spec)
    dense = V**2 <= DENSE
    # With an MLP, or with factored tables, a token is a d-vector and not a look-up in a table.
    vectors = max(1.0, d / 16) if m or not dense else 1.0
    total = N * spec.length * gone_through * rates.token * vectors
    if dense:
        total += V**2 * d * rates.product + V**2 * rates.entry / 2
    total += N * m * gone_through * (2 * d * rates.product + rates.unit)
    if spec.eta != "limit" or spec.steps:
        total += N * V * gone_through * (2 * (m or d) * rates.product + 2 * rates.unit)
    return total + spec.steps * rates.step


def _facts(program: Facts, rates: Rates) -> float:
    """A step of one training among others."""
    B, H, d = program.batch, program.heads, program.dim
    weighed = B * H * scores_per_head(program)
    each = 2 * d if by_position(program) else program.head_dim
    products = weighed * each + B * d * (2 * program.width + program.outputs)
    units = weighed + B * (program.outputs + program.width)
    return (
        2 * products * rates.product
        + units * rates.unit
        + B * program.length * rates.drawn
        + 12 * program.parameters * rates.unit
        + rates.step
    )


def _memory(program: Memory, rates: Rates) -> float:
    """A step of one memory among others, or its construction."""
    N, M, d, m = program.items, program.labels, program.dim, program.width or program.rank
    products = N * M * d + 6 * N * m * d
    return (
        products * rates.product + (0.8 * N * M + N * m) * rates.unit + 4 * program.parameters * rates.unit + rates.step
    )


def _flow(spec: Flow, rates: Rates) -> float:
    sequences = spec.batch or spec.subjects * spec.relations
    logits = sequences * spec.tokens * spec.relations * spec.answers
    drawn = spec.batch * spec.length * rates.drawn
    return spec.steps * (12 * logits * rates.product + drawn + rates.step)
