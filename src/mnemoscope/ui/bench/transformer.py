"""A small transformer on facts: trainings side by side beside one alone, and one training beside plain PyTorch."""

import json
import statistics
import subprocess
import sys
import time
from typing import Any

import jax
import jax.numpy as jnp

from mnemoscope.engine.device import find_device, numerics, untouched_environment
from mnemoscope.engine.record import Trial
from mnemoscope.spec import Transformer
from mnemoscope.spec.validators import Device
from mnemoscope.training.transformer import TRANSFORMER
from mnemoscope.ui.bench.compare import torch_is_here

# Two layers of d = 64 and 4,096 facts.
SETTING = Transformer(subjects=256, relations=16, answers=16, length=16, layers=2, dim=64, heads=4, width=256)
RATES = (1e-3, 2e-3, 3e-3)
SEEDS = 4
# Steps of one timing: as many as several checks take.
STEPS = 512
RIVAL = "mnemoscope.ui.bench.torch_transformer"


def time_transformer(device: Device, *, quick: bool = False, repeats: int = 5, torch: bool = True) -> dict[str, Any]:
    """Seconds of twelve trainings in one call and of the longest of them alone; and of one step, ours and PyTorch's.

    `quick` takes fewer steps of a smaller setting, for a machine without a GPU. All is compiled before it is timed.
    """
    spec = small(SETTING) if quick else SETTING
    jobs = [(spec.replace(lr=rate), seed) for rate in RATES for seed in range(SEEDS)]
    together, trials = _time(jobs, device)
    steps = [int(trial.metrics["steps"] or 0) for trial in trials]
    longest = jobs[steps.index(max(steps))]
    alone, _ = _time([longest], device)
    step = _step_seconds(spec, device, STEPS // 8 if quick else STEPS, repeats)
    found = {
        "spec": spec.model_dump(),
        "parameters": spec.parameters,
        "trainings": len(jobs),
        "steps": steps,
        "accuracies": [trial.accuracy for trial in trials],
        "seconds": together,
        "alone_seconds": alone,
        "ratio": together / alone,
        "step_seconds": step,
        "torch_step_seconds": None,
        "torch_ratio": None,
    }
    rival = _torch(spec, find_device(device).platform, STEPS // 8 if quick else STEPS, repeats) if torch else None
    if rival is not None:
        found |= {"torch_step_seconds": rival["seconds"], "torch_ratio": rival["seconds"] / step, "torch": rival}
    return found


def small(spec: Transformer) -> Transformer:
    """The same in small, for a quick look."""
    return spec.replace(subjects=32, batch=64, width=64, max_steps=512)


def _time(jobs: list[tuple[Transformer, int]], device: Device) -> tuple[float, list[Trial]]:
    TRANSFORMER.run(jobs, device)  # compiles
    began = time.perf_counter()
    trials = TRANSFORMER.run(jobs, device)
    return time.perf_counter() - began, trials


def _step_seconds(spec: Transformer, device: Device, steps: int, repeats: int) -> float:
    """Seconds of a step of one training, sequences and optimiser with it, and with the checks between steps."""
    place = find_device(device)
    program = TRANSFORMER.program(spec, place.platform)
    with numerics("float32", place):
        world, state = TRANSFORMER.start(program, TRANSFORMER.arguments([(spec, 0)]))
        lr = jnp.asarray([spec.lr], float)
        times = []
        for _ in range(1 + repeats):
            began = time.perf_counter()
            measured: Any = None
            for _ in range(steps // TRANSFORMER.check):
                state, measured = TRANSFORMER.advance(program, TRANSFORMER.check, world, state, lr)
            jax.block_until_ready((state, measured))
            times.append((time.perf_counter() - began) / steps)
    return statistics.median(times[1:])  # the first compiles


def _torch(spec: Transformer, platform: str, steps: int, repeats: int) -> dict[str, Any] | None:
    """PyTorch's answer, from a process of its own; None where it is not installed."""
    if not torch_is_here():
        return None
    request = {"spec": spec.model_dump(), "platform": platform, "steps": steps, "repeats": repeats}
    done = subprocess.run(
        [sys.executable, "-m", RIVAL],
        input=json.dumps(request),
        capture_output=True,
        text=True,
        env=untouched_environment(),
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(f"PyTorch's side failed: {done.stderr.strip().splitlines()[-1:]}")
    return json.loads(done.stdout.strip().splitlines()[-1])
