"""Trials of settings of any kind, with retrieval's own options where they are retrieval's."""

from collections.abc import Sequence
from typing import Any, cast

from mnemoscope.engine.device import Precision
from mnemoscope.engine.kinds import Hear, kind_of
from mnemoscope.engine.record import AnyJob, Trial
from mnemoscope.spec import Retrieval, Spec, SpecError
from mnemoscope.spec.validators import Device
from mnemoscope.training.three_step import batch, simulation
from mnemoscope.training.three_step.batch import Message
from mnemoscope.training.three_step.streaming import Progress


def simulate(
    spec: Spec,
    seed: int = 0,
    *,
    precision: Precision = "float32",
    device: Device = "auto",
    budget: int | None = None,
    progress: Progress | None = None,
) -> Trial:
    """Train and test the model of `spec` with the random numbers of `seed`.

    `budget` is the memory to use, in bytes; by default, about half of what is free. For retrieval, `progress` is called
    from time to time with the share of one pass over the samples that was completed since the last call.
    """
    if spec.alone:
        more = {"precision": precision, "device": device, "budget": budget}
        return simulation.simulate(cast(Retrieval, spec), seed, **more, progress=progress)
    (trial,) = simulate_many([(spec, seed)], precision=precision, device=device, budget=budget)
    return trial


def simulate_many(
    jobs: Sequence[AnyJob],
    *,
    precision: Precision = "float32",
    device: Device = "auto",
    budget: int | None = None,
    say: Message | None = None,
    hear: Hear | None = None,
) -> list[Trial]:
    """Return one trial for each (spec, seed), in order. `budget` is in bytes.

    `hear(spec, seed, share)` reports the share of a trial that is done.
    """
    numbers: dict[str, list[int]] = {}
    for number, (spec, _) in enumerate(jobs):
        numbers.setdefault(spec.kind, []).append(number)
    done: dict[int, Trial] = {}
    for kind, group in numbers.items():
        part: list[Any] = [jobs[number] for number in group]
        if kind == Retrieval.kind:
            told = {"precision": precision, "device": device, "budget": budget}
            trials = batch.simulate_many(part, **told, say=say, hear=hear)
        elif precision != "float32":
            raise SpecError("precision", f"expected float32 for settings of kind {kind}, got {precision}")
        else:
            trials = [*kind_of(part[0][0]).run(part, device, budget, hear)]
        done.update(zip(group, trials, strict=True))
    return [done[number] for number in range(len(jobs))]
