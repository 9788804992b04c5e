r"""Training beyond the three steps, by the optimisers of `training/optimisers.py`.

Does the early phase decide the outcome? From (V2, W1), both V and W_KQ keep learning on the same N
samples; W_in and the embeddings stay frozen. The gradient of Lhat is summed chunk by chunk, so memory
does not grow with N here either. With a batch of B, step t takes samples t B, ..., t B + B - 1, each
modulo N: the samples are independent, so their order is as random as any.

In the limit of the step sizes the three steps give only directions. Training then starts from these
at a scale of our choice. Attention scores: the larger of the trigger's lift and the spread of the
token scores is 2 ln L. Logits: a token's own label is on average 2 ln V above the mean of the others
(or, if that is below the spread of the logits, the spread is 2 ln V). The softmax over L positions, or
V labels, is then about to saturate and still has a gradient. Averages over tokens weigh each by how often it occurs:
frequent ones have logits far above the plain average, and a scale that serves rare ones would begin with a huge loss.
"""

from functools import partial
from typing import NamedTuple, cast

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Float, UInt32

from mnemoscope.engine.layout import Layout
from mnemoscope.models.retrieval import Frozen, Parameters, forward, margin, token_features
from mnemoscope.spec import Retrieval
from mnemoscope.spec.optimisers import Optimiser, Schedule
from mnemoscope.tasks.alias import alias_table, probabilities_in
from mnemoscope.tasks.label_noise import word_below
from mnemoscope.tasks.retrieval import Batch
from mnemoscope.training.optimisers import Rate, optimiser, rate_at
from mnemoscope.training.three_step.algorithm import Rates, ThreeSteps, parameters_of
from mnemoscope.training.three_step.streaming import Noise, Source, Span, fold


class Further(NamedTuple):
    """What is compiled of further training."""

    optimiser: Optimiser
    weight_decay: float
    schedule: Schedule
    batch: int
    label_noise: float
    bits: int
    # Of the schedule, which is compiled for its number.
    steps: int

    @classmethod
    def of(cls, spec: Retrieval) -> "Further":
        """That of a spec that names an optimiser."""
        steps = 0 if spec.schedule == "constant" else spec.steps
        name = cast(Optimiser, spec.then)
        return cls(name, spec.weight_decay, spec.schedule, spec.batch, spec.label_noise, spec.bits, steps)

    def transformation(self, lr: Rate) -> optax.GradientTransformation:
        """The optimiser at a rate."""
        return optimiser(self.optimiser, lr, self.weight_decay)

    def sees(self, source: Source, noise_key: UInt32[Array, "2"], samples: Array) -> Source:
        """The samples as further training sees them: over and over, and with label noise."""
        if self.label_noise:
            source = source._replace(noise=Noise(noise_key, jnp.uint32(word_below(self.label_noise))))
        return source._replace(cycle=samples) if self.batch else source


class State(NamedTuple):
    """The parameters, and the optimiser's state."""

    parameters: Parameters
    optimiser: optax.OptState


class Info(NamedTuple):
    """The loss and the size of the gradient before a step."""

    loss: Float[Array, ""]
    gradient_norm: Float[Array, ""]


def start(spec: Retrieval, frozen: Frozen, learned: ThreeSteps) -> State:
    """The result of the three steps: unchanged at finite step sizes, scaled in the limit."""
    table = alias_table(spec.tokens, spec.vocab)
    entries = None if table is None else jnp.asarray(table)
    return begin(spec.program(), Further.of(spec), frozen, learned, Rates.of(spec), entries)


def begin(
    program: Retrieval,
    further: Further,
    frozen: Frozen,
    learned: ThreeSteps,
    rates: Rates,
    table: UInt32[Array, "V"] | None = None,
) -> State:
    """The same for a program, whose step sizes and tokens' alias table are arguments."""
    limit = program.gamma == "limit"
    parameters = _scaled(program, frozen, learned, table) if limit else parameters_of(frozen, learned, rates)
    return State(parameters, further.transformation(1.0).init(parameters))


@partial(jax.jit, static_argnames=("spec",))
def _scaled(
    spec: Retrieval, frozen: Frozen, learned: ThreeSteps, table: UInt32[Array, "V"] | None = None
) -> Parameters:
    lift, std = margin(frozen, learned.alpha)
    if table is not None:
        p, scores = probabilities_in(table), frozen.Z @ learned.alpha
        std = jnp.sqrt(p @ (scores - p @ scores) ** 2)
    largest = jnp.maximum(jnp.abs(lift), std)
    # One position needs no attention, and leaves alpha at zero.
    per_score = 2 * jnp.log(spec.length) / jnp.where(largest > 0, largest, 1)
    w = per_score * learned.alpha
    # Means and spread of the logits A U^T, A = H V2^T, without forming the V x V matrix: the sum of
    # their squares is tr(A^T A U^T U).
    A, U, V = token_features(spec, frozen)[1] @ learned.V2.T, frozen.U, spec.vocab
    if table is None:
        mean = A.mean(axis=0) @ U.mean(axis=0)
        own = jnp.sum(A * U[frozen.permutation], axis=1).mean()
        squares = jnp.sum((A.T @ A) * (U.T @ U)) / V**2
    else:  # the same averages with weights p_v in place of 1/V
        p = probabilities_in(table)
        mean = (p @ A) @ U.mean(axis=0)
        own = p @ jnp.sum(A * U[frozen.permutation], axis=1)
        squares = jnp.sum((A.T @ (p[:, None] * A)) * (U.T @ U)) / V
    above = (own - mean) * V / (V - 1)
    spread = jnp.sqrt(jnp.maximum(squares - mean**2, 0))
    per_logit = 2 * jnp.log(V) / jnp.maximum(above, spread)
    query = frozen.query / (frozen.query @ frozen.query)
    return Parameters(per_logit * learned.V2, jnp.outer(w, query))


def loss_and_gradient(
    spec: Retrieval,
    layout: Layout,
    frozen: Frozen,
    source: Source,
    parameters: Parameters,
    samples: Array,
    most: Array | None = None,
    first: Array | None = None,
) -> tuple[Float[Array, ""], Parameters]:
    """Lhat and its gradient in V and W_KQ, over all samples, or over as many from number `first` on.

    Side by side, a loop over `most` serves all trainings.
    """

    def summed(parameters: Parameters, batch: Batch, live: Bool[Array, "B"]) -> Array:
        logits, _ = forward(spec, frozen, parameters, batch)
        log_p = jax.nn.log_softmax(logits, axis=1)
        own = jnp.take_along_axis(log_p, batch.label[:, None], axis=1)[:, 0]
        return -jnp.sum(jnp.where(live, own, 0))

    def body(carry: tuple[Array, Parameters], batch: Batch, live: Bool[Array, "B"]) -> tuple[Array, Parameters]:
        return jax.tree.map(jnp.add, carry, jax.value_and_grad(summed)(parameters, batch, live))

    zero = (jnp.zeros((), frozen.Z.dtype), jax.tree.map(jnp.zeros_like, parameters))
    if first is None:
        span = Span(jnp.uint32(0), samples, samples if most is None else most)
    else:
        span = Span(first, first + samples, first + samples)
    total = fold(body, zero, source, span, length=spec.length, chunk=layout.by_sample, platform=layout.platform)
    return jax.tree.map(lambda part: part / samples.astype(frozen.Z.dtype), total)


@partial(jax.jit, static_argnames=("spec", "layout", "further"))
def step(
    spec: Retrieval,
    layout: Layout,
    further: Further,
    frozen: Frozen,
    source: Source,
    state: State,
    samples: Array,
    lr: Array,
    taken: Array,
) -> tuple[State, Info]:
    """Take the step that follows `taken` steps."""
    if further.batch:
        batch = jnp.uint32(further.batch)
        layout = layout._replace(by_sample=min(layout.by_sample, further.batch))
        loss, g = loss_and_gradient(spec, layout, frozen, source, state.parameters, batch, first=taken * batch)
    else:
        loss, g = loss_and_gradient(spec, layout, frozen, source, state.parameters, samples)
    norm = jnp.sqrt(sum(jnp.sum(part**2) for part in g))
    rate = rate_at(further.schedule, lr, taken, further.steps)
    updates, after = further.transformation(rate).update(g, state.optimiser, state.parameters)
    moved = cast(Parameters, optax.apply_updates(state.parameters, updates))
    return State(moved, after), Info(loss, norm)
