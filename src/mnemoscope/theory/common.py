r"""The overlap that all queries of a seed share: the mean over x of k(t, x) for a stored token t.

It differs from zero where values have a common part: the trigger, or an activation's constant
part. With v_t = z_t + z_trig and q = |z_trig|^2, or v_t = z_t and q = 0 for a trigger in the keys,

    E_x k(t, x) has mean M(q) and variance C(q) over tokens t                                (S5)
    attention-only      M = q,              C = q/d
    attention-MLP       M = E f,            C = Var_t E_x f + (E_a[p_a^2 E_t phi_a(t)^2] - M^2)/m

with f of (E2) at |v_t|^2, |v_x|^2 and v_t . v_x, and p_a = E_x phi_a(x) for a hidden unit a.
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from mnemoscope.spec import Retrieval
from mnemoscope.theory.activation import apply, coefficients
from mnemoscope.theory.quadrature import chi_square_nodes, combine, normal_nodes
from mnemoscope.theory.registry import embedding_law

# Nodes over norms, over overlaps and over a hidden unit's input, and Hermite orders of an activation.
NORMS, OVERLAPS, INPUTS, ORDERS = 3, 5, 24, 28


@dataclass(frozen=True)
class SharedOverlap:
    """M and C of (S5), at nodes over the trigger's squared norm."""

    mean: np.ndarray
    variance: np.ndarray
    weight: np.ndarray


def common_overlap(spec: Retrieval) -> SharedOverlap:
    """The mean overlap of a stored token with all queries (S5)."""
    law = embedding_law(spec.embedding)
    q, weight = law.squared_norm_nodes(float(spec.dim), NORMS)
    if spec.trigger == "keys":
        q, weight = np.zeros(1), np.ones(1)
    if not spec.width:
        variance = q / spec.dim if law.overlapping else 0 * q
        return SharedOverlap(q, variance, weight)
    moments = [_hidden(spec.activation, spec.embedding, spec.dim, float(square)) for square in q]
    mean, variance, unit = np.array(moments).T
    return SharedOverlap(mean, variance + np.maximum(unit - mean**2, 0.0) / spec.width, weight)


@lru_cache(maxsize=1024)
def _hidden(activation: str, embedding: str, dim: int, q: float) -> tuple[float, float, float]:
    """M, C at infinite width, and E_a[p_a^2 E_t phi_a(t)^2]."""
    law = embedding_law(embedding)
    overlap = law.overlapping / math.sqrt(dim)
    (square, along), weight = combine(law.squared_norm_nodes(float(dim), NORMS), normal_nodes(OVERLAPS))
    along = along * overlap * np.sqrt(square * q)  # z_t . z_trig
    norm = np.maximum(square + q + 2 * along, 1e-6)
    across, across_weight = normal_nodes(OVERLAPS)
    # Axes: z_t . z_x, t, x.
    across = across[:, None, None] * overlap * np.sqrt(square[:, None] * square)
    cosine = (across + along[:, None] + along + q) / np.sqrt(norm[:, None] * norm)
    powers = np.clip(cosine, -1, 1)[..., None] ** np.arange(ORDERS)
    c = coefficients(activation, norm, ORDERS)
    overlaps = np.tensordot(across_weight, np.einsum("etxk,tk,xk->etx", powers, c, c), 1) @ weight
    mean = float(overlaps @ weight)
    variance = float((overlaps - mean) ** 2 @ weight)
    # A unit's weights w_a: their length over sqrt(d), and their response to the trigger.
    (length, trigger), chance = combine(chi_square_nodes(float(dim), NORMS), normal_nodes(INPUTS))
    g, g_weight = normal_nodes(INPUTS)
    phi = apply(activation, (trigger * math.sqrt(q))[:, None] + np.sqrt(length)[:, None] * g)
    return mean, variance, float(chance @ ((phi @ g_weight) ** 2 * (phi**2 @ g_weight)))
