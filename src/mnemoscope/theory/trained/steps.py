r"""How many steps training takes to its end, from the margin.

Below capacity the items can be stored with room to spare. With weights of size 1 (w = W e_x ~ N(0, I_d)) the best
matrix gives every item the margin kappa that solves (T13)

    m d = N E dist^2(g, {w : (u_x - u_y)^T w >= kappa for all y}).

A margin shifts the item's own coordinate in (T2), g_x -> g_x - kappa, from where the ratio of the cone's dimension at
this d to that at d = infinity carries over. To name labels, logits have to exceed those of M - 1 others by about ln M,
which takes weights of size ln M / kappa. AdamW moves a weight by about its rate in a step, so that (T14)

    steps = c ln M / (rate kappa).

The form is derived, the number c was measured (docs/theory/trained.md). Gradient descent follows no such law closely.
"""

import math
from functools import lru_cache

from scipy.optimize import brentq

from mnemoscope.spec import Retrieval
from mnemoscope.theory.trained.capacity import effective_inputs, seen_share, taken
from mnemoscope.theory.trained.cones import orthogonal_squares

# c of (T14).
PACE = 1.5
# Draws of (T2) with a margin.
DRAWS = 400
# The rate of trainings that settle (`--then adamw --stop settled`).
ADAMW_RATE = 0.1


def margin(items: float, labels: float, dim: int, inputs: int, law: str) -> float | None:
    """kappa of (T13); None above capacity."""
    cone = taken(labels, dim, law)
    per_item = cone.dimension * (1 - cone.closed) + dim * cone.closed
    if items * per_item >= inputs * dim:
        return None
    correction = per_item / _distance(round(labels), 0.0)

    def excess(kappa: float) -> float:
        return items * correction * _distance(round(labels), round(kappa, 6)) - inputs * dim

    high = 1.0
    while excess(high) < 0:
        high *= 2
    return float(brentq(excess, 0.0, high, xtol=1e-4))  # pyright: ignore[reportArgumentType]


@lru_cache(maxsize=65536)
def _distance(labels: int, kappa: float) -> float:
    return float(orthogonal_squares(max(2, labels), DRAWS, kappa=kappa).mean())


def steps_to_store(
    items: float, dim: int, law: str, rate: float, labels: float | None = None, inputs: int = 0
) -> int | None:
    """(T14): AdamW's steps at a rate; None above capacity, where there is no margin."""
    labels = items if labels is None else labels
    kappa = margin(items, labels, dim, inputs or dim, law)
    return None if not kappa else math.ceil(PACE * math.log(labels) / (rate * kappa))


def steps_needed(spec: Retrieval) -> int | None:
    """The steps after the three that AdamW takes at the spec's rate; None above capacity."""
    seen = seen_share(spec.samples, spec.vocab)
    rate = spec.learning_rate if spec.then == "adamw" else ADAMW_RATE
    inputs = effective_inputs(spec.dim, spec.width, spec.activation)
    return steps_to_store(spec.vocab * seen, spec.dim, spec.embedding, rate, spec.vocab, inputs)
