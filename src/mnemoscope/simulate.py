"""The main corridor: one spec and one seed in, one record out.

    spec, seed -> streams -> frozen vectors -> three steps [-> more training] -> record

Formulas: the model's stand in `models.transformer`, the steps' in `training.three_step` and, as
computed, in `training.by_token` and `training.by_sample`.
"""

import math
import time
from collections.abc import Iterator
from functools import partial

import jax
import jax.numpy as jnp

from mnemoscope import keys
from mnemoscope.evaluation import (
    Attend,
    answers_by_token,
    hits_by_sample,
    hits_by_token,
    map_accuracy,
)
from mnemoscope.models.transformer import Frozen, draw_frozen, margin
from mnemoscope.numerics import Device, Precision, check_memory, find_device, numerics
from mnemoscope.record import Step, Trial
from mnemoscope.spec import Retrieval
from mnemoscope.training import full
from mnemoscope.training.streaming import Progress, Source
from mnemoscope.training.three_step import ThreeSteps, query_scale, train_three_steps

# Measurements taken during training that goes on after the three steps.
CHECKPOINTS = 10
# Fresh sequences, at most, for the accuracy after the first step: attention is still uniform then,
# every sequence costs a product with the whole vocabulary, and the answer is close to chance.
UNIFORM_SAMPLES = 1024


def simulate(
    spec: Retrieval,
    seed: int = 0,
    *,
    precision: Precision = "float32",
    device: Device = "auto",
    progress: Progress | None = None,
) -> Trial:
    """Train and test the model of `spec` with the random numbers of `seed`.

    `progress`, if given, is told now and then what share of one pass over the samples was done;
    `passes(spec)` of them are made in all.
    """
    began = time.perf_counter()
    place = find_device(device)
    check_memory(spec, precision, place)
    with numerics(precision, place):
        streams = {name: jnp.asarray(keys.stream(spec, seed, name)) for name in keys.STREAMS}
        frozen = draw_frozen(spec.program(), spec.embedding, streams)
        train = Source(streams["train"], frozen.permutation)
        test = Source(streams["test"], frozen.permutation)
        learned = train_three_steps(spec, frozen, train, progress)
        steps = [*_measure_three_steps(spec, frozen, test, learned)]
        if spec.then != "none":
            steps += _train_on(spec, frozen, train, test, learned, progress)
        finite = bool(jnp.all(jnp.isfinite(learned.V2))) and all(
            step.loss is None or math.isfinite(step.loss) for step in steps
        )
    return Trial(
        spec=spec,
        seed=seed,
        status="ok" if finite else "diverged",
        steps=tuple(steps),
        seconds=time.perf_counter() - began,
        precision=precision,
        device=place.device_kind,
    )


def passes(spec: Retrieval) -> int:
    """How often the training samples are gone through, for a progress bar."""
    return (1 if spec.attention == "locked" else 3) + spec.steps


def _measure_three_steps(
    spec: Retrieval, frozen: Frozen, test: Source, learned: ThreeSteps
) -> Iterator[Step]:
    """The model before training and after each step."""
    look = partial(_look, spec, frozen, test)
    if spec.attention == "locked":
        yield look("V2", "locked", learned.V2, learned.alpha)
        return
    attend: Attend = "argmax" if spec.gamma == "limit" else "softmax"
    w = learned.alpha
    if spec.gamma != "limit":
        w = query_scale(spec, frozen) * w
    chance = 1 / spec.vocab
    yield Step("start", chance, 1 / spec.length, chance)
    yield look("V1", "uniform", learned.V1, w)
    yield look("W1", attend, learned.V1, w)
    yield look("V2", attend, learned.V2, w)


def _train_on(
    spec: Retrieval,
    frozen: Frozen,
    train: Source,
    test: Source,
    learned: ThreeSteps,
    progress: Progress | None,
) -> Iterator[Step]:
    """Further training, looked at about CHECKPOINTS times, first where it starts from."""
    state = full.start(spec, frozen, learned)
    every = max(1, spec.steps // CHECKPOINTS)
    for taken in range(spec.steps + 1):
        # The loss belongs to the parameters before the step, so the last look needs one step more.
        after, info = full.step(
            spec.program(), spec.then, frozen, train, state,
            jnp.uint32(spec.samples), jnp.asarray(spec.learning_rate, frozen.Z.dtype),
        )  # fmt: skip
        if taken % every == 0 or taken == spec.steps:
            w = state.parameters.key_query @ frozen.query
            name, loss = f"{spec.then} {taken}", float(info.loss)
            yield _look(spec, frozen, test, name, "softmax", state.parameters.value, w, loss)
        if progress is not None and taken < spec.steps:
            jax.block_until_ready(after)
            progress(1.0)
        state = after


def _look(
    spec: Retrieval, frozen: Frozen, test: Source, name: str, attend: Attend, Vmat: jax.Array,
    w: jax.Array, loss: float | None = None,
) -> Step:  # fmt: skip
    """One line of the record: how the model with Vmat and W_KQ z_EOS = w does on `test`."""
    program, samples = spec.program(), spec.test_samples
    answers = answers_by_token(program, frozen, Vmat)
    if attend == "argmax" or attend == "locked":
        hits = hits_by_token(program, frozen, test, attend, answers, w, jnp.uint32(samples))
    else:
        if attend == "uniform":
            samples = min(samples, UNIFORM_SAMPLES)
        hits = hits_by_sample(program, frozen, test, attend, Vmat, w, jnp.uint32(samples))
    answered, attended, both = (int(count) for count in hits)
    signal, std = margin(frozen, w)
    has_scores = attend in ("argmax", "softmax")
    return Step(
        name=name,
        accuracy=answered / samples,
        attention_accuracy=1 / spec.length if attend == "uniform" else attended / samples,
        map_accuracy=float(map_accuracy(frozen, answers)),
        recall=both / attended if attended else None,
        signal=float(signal) if has_scores else None,
        std=float(std) if has_scores else None,
        loss=loss,
    )
