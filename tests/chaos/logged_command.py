"""A command that writes down what it computes: python logged_command.py WORDS..., LOG in COMPUTED.

One line a trial, written once it is computed and before it is kept. Processes that the command
starts import this file too, and do the same.
"""

import os
import sys
from collections.abc import Sequence
from typing import Any

from mnemoscope.engine.record import AnyJob, Trial
from mnemoscope.experiments import sweep
from mnemoscope.experiments.workers import batches, shared_batches
from mnemoscope.training.three_step.simulation import simulate
from mnemoscope.ui.cli import program

LOG = os.open(os.environ["COMPUTED"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)


def write(spec: Any, seed: int) -> None:
    os.write(LOG, f"{spec.id} {seed}\n".encode())


def run_batch(jobs: Sequence[AnyJob], *more: Any) -> list[Trial]:
    made = batches.run_batch(jobs, *more)
    for job in jobs:
        write(*job)
    return made


def simulate_one(spec: Any, seed: int = 0, **more: Any) -> Any:
    made = simulate(spec, seed, **more)
    write(spec, seed)
    return made


for module, name, heard in (
    (sweep, "run_batch", run_batch),
    (shared_batches, "run_batch", run_batch),
    (batches, "simulate", simulate_one),
):
    assert hasattr(module, name)
    setattr(module, name, heard)


if __name__ == "__main__":
    sys.exit(program())
