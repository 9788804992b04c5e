"""From measurements to the record of a trial."""

import math

import numpy as np

from mnemoscope.engine.device import Place, Precision
from mnemoscope.engine.record import Job, Status, Step, Trial
from mnemoscope.spec import Retrieval
from mnemoscope.training.three_step.call import Result
from mnemoscope.training.three_step.evaluation import ROUNDED, Measurement, times_asked


def trial_of(job: Job, result: Result, seconds: float, precision: Precision, place: Place) -> Trial:
    """The record of a job's result from a compiled call."""
    return make_trial(job, read_steps(job[0], result.measurements), bool(result.finite), seconds, precision, place)


def make_trial(
    job: Job,
    steps: list[Step],
    finite: bool,
    seconds: float,
    precision: Precision,
    place: Place,
    *,
    settled: bool = True,
) -> Trial:
    """The record of a job, from the model after each step; `settled` says whether further training has settled."""
    spec, seed = job
    status, message = judge(spec, steps, finite)
    if status == "ok" and not settled:
        status, message = "unreached", f"the loss was still falling after {spec.steps:,} steps"
    return Trial(
        spec=spec,
        seed=seed,
        status=status,
        message=message,
        history=tuple(steps),
        seconds=seconds,
        precision=precision,
        device=place.device_kind,
    )


def judge(spec: Retrieval, steps: list[Step], finite: bool) -> tuple[Status, str]:
    """Whether the results count: all numbers are finite, and attention moved."""
    for step in steps:
        if not all(math.isfinite(value) for value in (step.loss, step.signal, step.std) if value is not None):
            return "diverged", f"numbers overflowed by {step.name}"
    if not finite:
        return "diverged", "numbers overflowed by V2"
    if spec.length > 1 and steps[-1].signal == 0 and steps[-1].std == 0:
        return "diverged", "attention did not move: the step sizes are too small for float32"
    return "ok", ""


def read_steps(spec: Retrieval, measurements: dict[str, Measurement]) -> list[Step]:
    """The measurements as steps of a record, which begins before training."""
    chance = 1 / spec.vocab
    before = [Step("start", chance, 1 / spec.length, chance)] if "V1" in measurements else []
    # In the order of training: JAX returns a dictionary sorted by name.
    return before + [
        make_step(spec, name, measurements[name]) for name in ("V1", "W1", "V2", ROUNDED) if name in measurements
    ]


def make_step(spec: Retrieval, name: str, measurement: Measurement, loss: float | None = None) -> Step:
    """A measurement as the step of that name."""
    answered, attended, both, tied = (int(count) for count in measurement.hits)
    samples = int(measurement.samples)
    scored = name != "V1" and spec.attention == "learned"
    by_fact, bands = _by_fact(spec, measurement)
    return Step(
        name=name,
        accuracy=answered / samples,
        attention_accuracy=1 / spec.length if name == "V1" else attended / samples,
        map_accuracy=float(measurement.map_accuracy),
        recall=both / attended if attended else None,
        signal=float(measurement.margin.signal) if scored else None,
        std=float(measurement.margin.std) if scored else None,
        loss=loss,
        tied=tied,
        accuracy_by_fact=by_fact,
        bands=bands,
    )


def _by_fact(spec: Retrieval, measurement: Measurement) -> tuple[float | None, tuple[float, ...] | None]:
    """The accuracy that counts each token once, and that of every band, where they were measured."""
    if measurement.right is None:
        return None, None
    share = np.asarray(measurement.right) / times_asked(int(measurement.samples), spec.vocab)
    return float(share.mean()), tuple(float(share[band.tokens].mean()) for band in spec.bands)
