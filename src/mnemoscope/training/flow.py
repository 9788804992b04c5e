r"""Gradient descent of linear attention with one-hot embeddings, and its stages.

    logit_a = sum_v c_v w_v V_av,        w = W_KQ e_EOS,    loss = -ln p(a*(s, r))

c_v is how often token v is in the sequence. Facts are a*(s, r) = floor(s D/S) + D r. The exact gradient needs no
sampling: with weights that are the same for all noise tokens, a sequence's logits depend on its noise only through how
much of it there is, T - 3, and the gradient is linear in each c_v beside it. So one sequence for every fact, with noise
counts at their mean (T - 3)/K, gives the exact gradient, and leaves noise tokens alike.

From a small start, relation and subject grow at different rates: the loss stays at ln D while the
model names answers of the right relation but knows nothing of the subject.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float, UInt32

from mnemoscope.engine.device import find_device, numerics
from mnemoscope.engine.early_stopping import KEPT_CHECKS
from mnemoscope.engine.free_memory import check_fits
from mnemoscope.engine.kinds import Cost, Hear
from mnemoscope.engine.random import named_key, normal
from mnemoscope.engine.rates import RATES, known_platform
from mnemoscope.engine.record import Trial
from mnemoscope.spec.flow import Flow
from mnemoscope.spec.validators import Device
from mnemoscope.tasks.facts import Sizes, count_tokens, draw_sequences

# Steps in a compiled call, between progress reports.
SEGMENT = 512
# What is measured at every step.
SEEN = ("loss", "accuracy", "relation_only", "answer_mass", "relation_mass")


class Weights(NamedTuple):
    """Values by answer and token, and the attention's score of every token."""

    V: Float[Array, "A n"]
    w: Float[Array, "n"]


@dataclass(frozen=True)
class Course:
    """Measurements before every step.

    They include the share of sequences whose largest logit is the answer's, or one of its relation's, and the mean
    probability of each: from a small start the largest logit may be right long before the model is confident.
    """

    spec: Flow
    loss: np.ndarray
    accuracy: np.ndarray
    relation_only: np.ndarray
    answer_mass: np.ndarray
    relation_mass: np.ndarray


def run_flow(spec: Flow, seed: int = 0, report: Callable[[int], object] | None = None) -> Course:
    """Run gradient descent from a small start. Only the stochastic mode depends on the seed."""
    check_memory(spec)
    weights = _start(spec, seed)
    key = jnp.asarray(named_key(seed, "flow-train", tokens=spec.tokens, length=spec.length))
    seen: list[Any] = []
    program = FLOW.program(spec, "any")
    for first in range(0, spec.steps, SEGMENT):
        count = min(SEGMENT, spec.steps - first)
        numbers = jnp.arange(first, first + SEGMENT, dtype=jnp.uint32)
        weights, measured = _segment(program, weights, key, numbers, jnp.asarray(spec.lr))
        seen.append([np.asarray(part)[:count] for part in measured])
        if report is not None:
            report(count)
    return Course(spec, *(np.concatenate(parts) for parts in zip(*seen, strict=True)))


def check_memory(spec: Flow) -> None:
    """Refuse sizes that do not fit, by the largest of them."""
    sizes = {name: getattr(spec, name) for name in ("subjects", "relations", "noise", "batch")}
    blame = max(sizes, key=lambda name: sizes[name])
    check_fits(blame, f"{sizes[blame]:,}", FLOW.bytes_needed(spec), "its sequences")


class FlowKind:
    """Gradient flow as a kind: one run for each seed, which matters only in the stochastic mode."""

    def program(self, spec: Flow, platform: str) -> Flow:
        """The number of steps, the learning rate and the start are arguments of the compiled program."""
        return spec.replace(steps=1, lr=0.1, start=1e-5)

    def program_id(self, spec: Flow, platform: str) -> str:
        """Equal for settings that share a compiled program."""
        return self.program(spec, platform).canonical()

    def bytes_needed(self, program: Flow) -> int:
        """Counts and logits of all sequences with their gradients, and the weights with theirs."""
        tokens, answers = program.tokens, program.relations * program.answers
        sequences = program.batch or program.subjects * program.relations
        needed = 4 * (3 * sequences * tokens + 5 * sequences * answers + 3 * answers * tokens)
        return needed + 4 * program.batch * program.length + 8 * 5 * program.steps

    def cost(self, spec: Flow, platform: str) -> Cost:
        """The cost of all steps."""
        rates = RATES[known_platform(platform)]
        sequences = spec.batch or spec.subjects * spec.relations
        products = 12 * sequences * spec.tokens * spec.relations * spec.answers
        drawn = spec.batch * spec.length * rates.drawn
        seconds = spec.steps * (products * rates.product + drawn + rates.step)
        return Cost(seconds, {"cpu": 3.0, "gpu": 5.0}[known_platform(platform)], order=seconds)

    def run(
        self,
        jobs: Sequence[tuple[Flow, int]],
        device: Device = "auto",
        budget: int | None = None,
        hear: Hear | None = None,
    ) -> list[Trial]:
        """Run each job; a trial has the last measurements, and a curve of some of its steps."""
        place = find_device(device)
        records = []
        with numerics("float32", place):
            for spec, seed in jobs:
                began, taken = time.perf_counter(), 0

                def report(count: int, spec: Flow = spec, seed: int = seed) -> None:
                    nonlocal taken
                    taken += count
                    if hear is not None:
                        hear(spec, seed, taken / spec.steps)

                course = run_flow(spec, seed, report)
                every = -(-spec.steps // KEPT_CHECKS)
                curve = [
                    {"step": step, **{name: float(getattr(course, name)[step]) for name in SEEN}}
                    for step in sorted({*range(0, spec.steps, every), spec.steps - 1})
                ]
                finite = np.isfinite(curve[-1]["loss"])
                status, message = ("ok", "") if finite else ("diverged", "the loss overflowed")
                metrics = {**{name: curve[-1][name] if finite else None for name in SEEN}, "steps": spec.steps}
                how = {"seconds": time.perf_counter() - began, "message": message, "device": place.device_kind}
                records.append(Trial(spec, seed, status, tuple(curve), metrics, **how))
        return records


FLOW = FlowKind()


def _start(spec: Flow, seed: int) -> Weights:
    A, n = spec.relations * spec.answers, spec.tokens
    if not spec.batch:  # all equal, so that noise tokens stay equal
        return Weights(jnp.full((A, n), spec.start), jnp.full(n, spec.start))
    V, w = (
        normal(jnp.asarray(named_key(seed, f"flow-{name}", tokens=n)), rows, n) for name, rows in (("V", A), ("w", 1))
    )
    return Weights(spec.start * V, spec.start * w[0])


@partial(jax.jit, static_argnames="program")
def _segment(
    program: Flow, weights: Weights, key: UInt32[Array, "2"], numbers: UInt32[Array, "k"], lr: Float[Array, ""]
) -> tuple[Weights, Any]:
    def step(weights: Weights, number: UInt32[Array, ""]) -> tuple[Weights, Any]:
        counts, subject, relation = _sequences(program, key, number) if program.batch else _population(program)
        loss_and_gradient = jax.value_and_grad(_loss, has_aux=True)
        (loss, measured), gradient = loss_and_gradient(weights, program, counts, subject, relation)
        return jax.tree.map(lambda x, g: x - lr * g, weights, gradient), (loss, *measured)

    return lax.scan(step, weights, numbers)


def _population(program: Flow) -> tuple[Array, Array, Array]:
    """One sequence for every fact, noise at its mean."""
    S, R, K = program.subjects, program.relations, program.noise
    subject, relation = (part.ravel() for part in jnp.meshgrid(jnp.arange(S), jnp.arange(R)))
    rows = jnp.arange(S * R)
    counts = jnp.zeros((S * R, program.tokens))
    counts = counts.at[:, S + R : S + R + K].set((program.length - 3) / K)
    counts = counts.at[rows, subject].add(1.0).at[rows, S + relation].add(1.0)
    return counts.at[:, -1].add(1.0), subject, relation


def _sequences(program: Flow, key: UInt32[Array, "2"], number: UInt32[Array, ""]) -> tuple[Array, Array, Array]:
    """The fresh sequences of one step."""
    rows = number * jnp.uint32(program.batch) + jnp.arange(program.batch, dtype=jnp.uint32)
    asked = draw_sequences(program, Sizes.of(program), key, rows)
    counts = count_tokens(asked.tokens, program.tokens)
    return counts, asked.subject.astype(int), asked.relation.astype(int)


def _loss(
    weights: Weights, program: Flow, counts: Array, subject: Array, relation: Array
) -> tuple[Array, tuple[Array, Array, Array, Array]]:
    """-ln p(a*(s, r)); how often the answer, or at least its relation, is right; their probabilities."""
    D = program.answers
    answer = subject * D // program.subjects + D * relation
    logits = (counts * weights.w) @ weights.V.T
    log_p = jax.nn.log_softmax(logits, axis=1)
    named = jnp.argmax(logits, axis=1)
    right = jnp.mean((named == answer).astype(log_p.dtype))
    own = jnp.mean((named // D == relation).astype(log_p.dtype))
    sure = jnp.take_along_axis(log_p, answer[:, None], axis=1)
    at = jnp.arange(logits.shape[0])
    mass = jnp.exp(log_p).reshape(len(at), program.relations, D)[at, relation].sum(axis=1)
    return -jnp.mean(sure), (right, own, jnp.mean(jnp.exp(sure)), jnp.mean(mass))
