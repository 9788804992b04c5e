"""Estimate how long work takes before it starts: count operations, and scale them to this machine.

A trial consists of passes over tokens, matrix products and elementwise work (a softmax, a hidden unit). Their rates
were measured on two cores (REFERENCE) and on an H200; a probe of a few milliseconds compares this machine's CPU with
those cores. Estimates are good to a factor of two or three, and count all steps of a training.
"""

import math
import os
import statistics
import time
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from mnemoscope.engine.kinds import kind_of
from mnemoscope.engine.rates import RATES, REFERENCE_CORES, known_platform
from mnemoscope.engine.record import AnyJob
from mnemoscope.spec import Retrieval, Spec
from mnemoscope.training.three_step import kind as three_step

# Seconds of the probe on the reference cores: a matrix product on one core, and exponentials.
REFERENCE = (5.6e-6, 15.5e-6)
PROBES = 25
# However busy a machine is, most of its load passes: assume at least this share of the cores.
LEAST_SHARE = 1 / 3
# A prediction, on the reference.
THEORY_SECONDS = 0.015


def machine_speed() -> float:
    """The speed of this machine's CPU, at its current load, relative to the reference."""
    # More cores help where steps are large, and not where they are small.
    cores = math.sqrt((os.cpu_count() or 1) / REFERENCE_CORES)
    return _core_speed() * cores * _idle_share()


@lru_cache(maxsize=1)
def _core_speed() -> float:
    matrix = np.ones((64, 64), np.float32)  # a larger one would use all cores, and wait for them
    line = np.linspace(0.0, 1.0, 2**15, dtype=np.float32)
    measured = (_median_seconds(np.matmul, matrix, matrix), _median_seconds(np.exp, line))
    return statistics.geometric_mean(
        reference / max(seconds, 1e-9) for reference, seconds in zip(REFERENCE, measured, strict=True)
    )


def _median_seconds(what: np.ufunc, *arrays: np.ndarray) -> float:
    durations = []
    for _ in range(PROBES):
        began = time.perf_counter()
        what(*arrays)
        durations.append(time.perf_counter() - began)
    return statistics.median(durations)


def _idle_share() -> float:
    """The share of the cores that is idle, by the last minute's load; a probe is too short to see it."""
    if not hasattr(os, "getloadavg"):  # Windows
        return 1.0
    return max(LEAST_SHARE, min(1.0, (os.cpu_count() or 1) / (1 + os.getloadavg()[0])))


def estimate_seconds(
    jobs: Sequence[AnyJob], platform: str, *, compiling: bool = True, speed: float | None = None
) -> float:
    """About how long the jobs take in one process, trainings with all of their steps.

    `speed` is the CPU's relative to the reference, measured by default.
    """
    each: dict[str, float] = {}
    programs: dict[str, float] = {}
    total = 0.0
    for spec, _ in jobs:
        if spec.id not in each:  # a sweep has many seeds of few specs
            kind = kind_of(spec)
            cost = kind.cost(spec, platform)
            each[spec.id] = cost.seconds
            programs[kind.program_id(spec, platform)] = cost.compile_seconds
        total += each[spec.id]
    if compiling:
        total += sum(programs.values())
    return scaled(total, platform, speed)


def scaled(seconds: float, platform: str, speed: float | None = None) -> float:
    """Seconds on this machine from seconds on the reference."""
    if known_platform(platform) == "gpu":
        return seconds
    return seconds / (machine_speed() if speed is None else speed)


def job_seconds(spec: Spec, platform: str) -> float:
    """One trial in a batch on the reference, without compilation."""
    return kind_of(spec).cost(spec, platform).seconds


def compile_seconds(spec: Spec, platform: str) -> float:
    """Compilation of one program, on the reference."""
    return kind_of(spec).cost(spec, platform).compile_seconds


def stops_early(spec: Spec) -> bool:
    """Whether a trial may end before all of its steps are taken."""
    return most_steps(spec) > 0


def most_steps(spec: Spec) -> int:
    """The most steps of a training; 0 for other kinds."""
    return kind_of(spec).cost(spec, "cpu").most_steps


def decoding_seconds(spec: Retrieval) -> float:
    """Decoders of the first gradient on the reference's CPU; most of it is message passing."""
    V, d = spec.vocab, spec.dim
    rounds = 25 * (V**2 * 4e-8 + 6 * V**2 * d * 4e-11)
    assigned = 2e-10 * V**3 if V <= 2048 else 0.0
    return rounds + 3 * assigned + 20 * d**3 * 4e-11 + 0.05


def training_seconds(spec: Retrieval, platform: str) -> float:
    """The training steps alone, without evaluation, on the reference."""
    return three_step.training_seconds(spec, RATES[known_platform(platform)])


def autodiff_seconds(spec: Retrieval, platform: str) -> float:
    """The same steps by automatic differentiation, on the reference."""
    rates = RATES[known_platform(platform)]
    d, N = spec.dim, spec.samples
    embedded = N * spec.length * d * rates.embedded
    return embedded + 18 * N * (spec.width + spec.vocab) * d * rates.product
