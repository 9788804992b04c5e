r"""The optimisers of training step by step, by name, as optax transformations.

    gd, sgd   theta <- theta - lr g                                        `optax.sgd`
    adamw     the step of `training/adamw.py`
    adam      the same with optax's order of rounding                      `optax.adam`
    muon      theta <- theta - lr O(m), m Nesterov's mean of gradients     `optax.contrib.muon`
    sign      theta <- theta - lr sign(g)                                  `optax.sign_sgd`

With weight decay w every step also takes lr w theta from the weights, whatever the optimiser (decoupled, as in AdamW).

O is five Newton-Schulz iterations of the gradient over its Frobenius norm. It raises singular values above about 1/200
of that norm to 0.7 to 1.2, and leaves smaller ones small: an approximation to the polar factor, which Muon is defined
by and which `models/one_step.py` takes exactly. A stack of matrices, such as one for each head, is orthogonalised
matrix by matrix; vectors take Adam's step with
Nesterov's mean.
"""

from collections.abc import Callable, Collection
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, UInt32
from optax.contrib import MuonDimensionNumbers

from mnemoscope.spec.optimisers import WARMUP, Optimiser, Schedule
from mnemoscope.training.adamw import adamw

Rate = Float[Array, ""] | float


def _matrices(weights: Any, tables: Collection[str] = ()) -> Any:
    """The last two axes of every array are a matrix; None for a vector, and for an MLP that is not there.

    None as well for `tables`, by the names that they have in a dictionary: their rows stand for tokens or positions.
    """

    def axes(path: Any, part: Array) -> MuonDimensionNumbers | None:
        named = any(getattr(key, "key", None) in tables for key in path)
        return (
            MuonDimensionNumbers(part.ndim - 2, part.ndim - 1) if part.ndim >= 2 and part.size and not named else None
        )

    return jax.tree_util.tree_map_with_path(axes, weights)


def _muon(lr: Rate, tables: Collection[str] = ()) -> optax.GradientTransformation:
    return optax.contrib.muon(lr, muon_weight_dimension_numbers=partial(_matrices, tables=tables))


OPTIMISERS: dict[str, Callable[[Rate], optax.GradientTransformation]] = {
    "gd": optax.sgd,
    "sgd": optax.sgd,
    "adam": optax.adam,
    "adamw": adamw,
    "muon": _muon,
    "sign": optax.sign_sgd,
}


def optimiser(
    name: Optimiser, lr: Rate, weight_decay: float = 0.0, tables: Collection[str] = ()
) -> optax.GradientTransformation:
    """The transformation for a rate, which may be traced. Muon does not orthogonalise the arrays named `tables`."""
    plain = _muon(lr, tables) if name == "muon" and tables else OPTIMISERS[name](lr)
    if not weight_decay:
        return plain

    def update(gradient: Any, state: Any, weights: Any = None) -> tuple[Any, Any]:
        updates, state = plain.update(gradient, state, weights)
        return jax.tree.map(lambda step, theta: step - lr * weight_decay * theta, updates, weights), state

    return optax.GradientTransformation(plain.init, update)  # pyright: ignore[reportArgumentType]


def rate_at(schedule: Schedule, lr: Rate, taken: UInt32[Array, ""], steps: int) -> Rate:
    """The rate of the step that follows `taken` of `steps` steps."""
    if schedule == "constant":
        return lr
    shapes: dict[str, Callable[[], optax.Schedule]] = {
        "linear": lambda: optax.linear_schedule(1.0, 0.0, steps),
        "cosine": lambda: optax.cosine_decay_schedule(1.0, steps),
        "warmup-cosine": lambda: optax.warmup_cosine_decay_schedule(0.0, 1.0, max(1, round(WARMUP * steps)), steps),
    }
    # The first step of a warm-up has a rate, too.
    count = taken.astype(float) + (1.0 if schedule == "warmup-cosine" else 0.0)
    return lr * jnp.asarray(shapes[schedule]()(count), jnp.result_type(float))
