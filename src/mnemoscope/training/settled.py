r"""Full-batch training until it has settled, in compiled loops of many steps.

Training has settled when more of it would change little. There are two cases:

    every sample is right, with room   The loss goes to 0, like 1/t or faster, and has no minimum. Accuracy on fresh
                                       sequences is decided long before. Settled as soon as Lhat < SMALL.
    some samples stay wrong            Lhat has a minimum above 0. Its mean over a window of steps is compared with that
                                       over the window before. A window is a fifth of the steps before it, so slow
                                       training is given time in proportion. Where the mean falls by less than FALL of
                                       itself, the loss has stopped falling.

At a constant rate training only rattles about a minimum, since AdamW's steps do not shrink with the gradient. So once
the loss has stopped falling, the rate falls to zero, linearly, over another fifth of the steps, and training has
settled. Where the steps are about to run out, the rate falls over the last of them, and training has not settled. The
rule and its numbers are our choice; docs/model.md has the measurements that they rest on.
"""

import math
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple, cast

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Float, Int

from mnemoscope.engine.layout import Layout
from mnemoscope.models.retrieval import Frozen, Parameters
from mnemoscope.spec import Retrieval
from mnemoscope.training.full_batch import Further, State, loss_and_gradient
from mnemoscope.training.side_by_side import over_rows
from mnemoscope.training.three_step.streaming import Source

# A mean loss so small that every sample is right with room.
SMALL = 0.005
# A fall of the mean loss, from one window to the next, below which it has stopped falling.
FALL = 0.0025
# A window, and the rate's way to zero, take a fifth of the steps before them.
WINDOW = REST = 5
# The first window, and the least number of steps times the rate, except for gradient descent: under the other
# optimisers a weight moves by about the rate in a step, and weights are of order 1 to 10.
FIRST_WINDOW = 100
LEAST_WAY = 10.0
MOST_STEPS = 2**31 - 1


class Bounds(NamedTuple):
    """The learning rate, the fewest steps before the loss can have stopped falling, and the most steps.

    `small` and `fall` are SMALL and FALL; at zero training takes all its steps.
    """

    lr: Float[Array, "*n"]
    least: Int[Array, "*n"]
    most: Int[Array, "*n"]
    small: Float[Array, "*n"]
    fall: Float[Array, "*n"]

    @classmethod
    def of(cls, specs: Sequence[Retrieval]) -> "Bounds":
        """The bounds of several trainings."""
        return cls(
            jnp.asarray([spec.learning_rate for spec in specs], float),
            jnp.asarray([least_steps(spec) for spec in specs], jnp.int32),
            jnp.asarray([spec.steps for spec in specs], jnp.int32),
            jnp.full(len(specs), SMALL, float),
            jnp.full(len(specs), FALL, float),
        )


def least_steps(spec: Retrieval) -> int:
    """The fewest steps after which the loss can have stopped falling, rather than not have begun to.

    In a step of size 1, gradient descent moves a token's logit by about its share of the samples, 1/V.
    """
    way = spec.vocab if spec.then in ("gd", "sgd") else LEAST_WAY
    return min(max(FIRST_WINDOW, math.ceil(min(way / spec.learning_rate, MOST_STEPS))), MOST_STEPS)


class Training(NamedTuple):
    """A training under way.

    `loss` is that before the last step. The rate begins to fall at step `rests`, and is zero at step `ends`. A window
    has the sum of its losses, its first step, and the mean of the window before.
    """

    state: State
    taken: Int[Array, "*n"]
    loss: Float[Array, "*n"]
    settled: Bool[Array, "*n"]
    rests: Int[Array, "*n"]
    ends: Int[Array, "*n"]
    window_sum: Float[Array, "*n"]
    window_first: Int[Array, "*n"]
    mean_before: Float[Array, "*n"]


def first_training(state: State, most: Int[Array, ""]) -> Training:
    """Before the first step."""
    nothing = jnp.zeros((), state.parameters.value.dtype)
    zero = jnp.zeros((), jnp.int32)
    # Without news, the rate falls over the last sixth, which is a fifth of what was before.
    rests = most - most // (REST + 1)
    return Training(state, zero, nothing, jnp.zeros((), bool), rests, most, nothing, zero, nothing + jnp.inf)


def under_way(training: Training) -> Bool[Array, "*n"]:
    """Whether it goes on: it has not come to its end, and has not diverged."""
    return (training.taken < training.ends) & jnp.isfinite(training.loss)


class Task(NamedTuple):
    """What does not change in a training: the frozen vectors, its samples, how many there are, and its bounds."""

    frozen: Frozen
    source: Source
    samples: Array
    bounds: Bounds


@partial(jax.jit, static_argnames=("program", "layout", "further"))
def advance(
    program: Retrieval, layout: Layout, further: Further, tasks: Task, trainings: Training, most: Array, steps: Array
) -> Training:
    """Take up to `steps` steps of every training; `most` is the largest number of samples.

    All steps are in one compiled loop, and cutting them into several calls changes no number.
    """

    def run_row(task: Task, training: Training) -> Training:
        until = training.taken + steps

        def goes_on(training: Training) -> Bool[Array, ""]:
            return under_way(training) & (training.taken < until)

        return jax.lax.while_loop(goes_on, lambda now: _step(program, layout, further, task, now, most), training)

    return over_rows(run_row, tasks, trainings)


def _step(
    program: Retrieval, layout: Layout, further: Further, task: Task, training: Training, most: Array
) -> Training:
    parameters, optimised = training.state
    loss, g = loss_and_gradient(program, layout, task.frozen, task.source, parameters, task.samples, most)
    left = (training.ends - training.taken).astype(loss.dtype)
    span = jnp.maximum(training.ends - training.rests, 1).astype(loss.dtype)
    rate = task.bounds.lr * jnp.minimum(left / span, 1)
    updates, optimised = further.transformation(rate).update(g, optimised, parameters)
    state = State(cast(Parameters, optax.apply_updates(parameters, updates)), optimised)
    return _watch(task.bounds, training._replace(state=state, taken=training.taken + 1, loss=loss))


def _watch(bounds: Bounds, training: Training) -> Training:
    """What the loss of the last step says about the next ones."""
    taken, first = training.taken, training.window_first
    total = training.window_sum + training.loss
    # The first window has FIRST_WINDOW steps, and each of the others a fifth of the steps before it.
    full = taken >= jnp.maximum(first + (first + WINDOW - 1) // WINDOW, FIRST_WINDOW)
    mean = total / (taken - first).astype(total.dtype)
    # Also where it rises: a rate that is too large has to fall.
    stopped = full & (taken >= bounds.least) & ~(training.mean_before - mean > bounds.fall * training.mean_before)
    stopped = stopped & (first > 0) & (taken < training.rests)
    right = training.loss < bounds.small
    ends = jnp.where(stopped, taken + (taken + REST - 1) // REST, training.ends)
    return training._replace(
        settled=training.settled | stopped | right,
        rests=jnp.where(stopped, taken, training.rests),
        ends=jnp.where(right, taken, jnp.minimum(ends, bounds.most)),
        window_sum=jnp.where(full, 0, total),
        window_first=jnp.where(full, taken, first),
        mean_before=jnp.where(full, mean, training.mean_before),
    )
