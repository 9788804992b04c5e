r"""Attention's signal and each of its noise terms, measured separately in one trial.

The second step's weights beta = sum_i T_i R[y_i, :] are bilinear in the counts, so they decompose exactly
(docs/theory/attention.md). With dn = n - N/V, M = dn 1^T (L-1)/V, F = Kc - M, B = Z Z^T and its diagonal D:

    mean_bias       M left,  M right
    label_noise     M left,  F right   and   F left, M right
    gradient_noise  F left,  F right,  through B - D
    count_noise     F left,  F right,  through D

"M left" stands for dn times T_i's mean, (L-1)/V (I - 1/V). What theory predicts is the variance
over tokens of the scores B beta of each.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mnemoscope.engine.layout import Layout
from mnemoscope.experiments.trial_parts import trial_parts
from mnemoscope.models.retrieval import Frozen
from mnemoscope.spec import Retrieval, SpecError
from mnemoscope.spec.validators import Device
from mnemoscope.training.three_step.by_token import count_pairs, inverse, spread_means
from mnemoscope.training.three_step.streaming import Count, Source

NAMES = ("mean_bias", "label_noise", "gradient_noise", "count_noise")


def measure_terms(spec: Retrieval, seed: int, device: Device = "auto") -> dict[str, float]:
    """The trigger's weight as `signal`, and each noise's variance over tokens.

    In units of (N L)^-2 and its square. `label_and_count` is twice the two noises' covariance,
    `total` the variance of the scores themselves.
    """
    if spec.width or spec.trigger != "keys":
        raise SpecError("width", "expected the attention-only model with the trigger in the keys")
    with trial_parts(spec, seed, device, "float64") as (layout, frozen, source):
        signal, scores = _measure(spec.program(), layout, frozen, source, Count.of(spec.samples))
        scores, overlap = np.asarray(scores), np.asarray(frozen.Z @ frozen.trigger)
        spread = np.cov(scores, bias=True)
        terms = {"signal": float(signal), "overlap": float(signal) ** 2 * float(overlap.var())}
        terms["total"] = float((scores.sum(axis=0) + float(signal) * overlap).var())
    terms |= {name: float(spread[k, k]) for k, name in enumerate(NAMES)}
    return {**terms, "label_and_count": 2 * float(spread[1, 3])}


@partial(jax.jit, static_argnames=("program", "layout"))
def _measure(
    program: Retrieval, layout: Layout, frozen: Frozen, source: Source, samples: Count
) -> tuple[Float[Array, ""], Float[Array, "4 V"]]:
    V, L = program.vocab, program.length
    Z, U = frozen.Z, frozen.U - frozen.U.mean(axis=0)
    counts = count_pairs(program, layout, source, samples)
    K, n = counts.pairs.astype(Z.dtype), counts.labels.astype(Z.dtype)
    K = K - K.mean(axis=0)
    uneven, often = n - n.mean(), (L - 1) / V
    F = K - uneven[:, None] * often
    zero = jnp.zeros(V, Z.dtype)

    def weights(R: Array) -> tuple[Array, Array]:
        """beta and tau of a table R, whose columns sum to zero."""
        q = spread_means(program, layout, source, R, zero, samples)
        r = n @ R[jnp.arange(V), inverse(frozen.permutation)]
        return (K * R).sum(axis=0) - q, r - (K * R).sum() / L

    def left_uneven(R: Array) -> Array:
        """The same with T_i's mean in place of T_i."""
        beta = uneven @ R * often
        return beta - beta.mean()

    AF = U @ (frozen.U.T @ F)
    by_norm = AF * jnp.sum(Z**2, axis=1)
    by_overlap = AF @ Z @ Z.T - by_norm
    bias = (U @ (frozen.U.T @ uneven))[:, None] * (Z @ Z.sum(axis=0) * often)
    (b_bias, t_bias), (b_norm, t_norm), (b_overlap, t_overlap) = map(weights, (bias, by_norm, by_overlap))
    mean_bias = left_uneven(bias)
    labels = b_bias - mean_bias + left_uneven(by_norm) + left_uneven(by_overlap)
    gradient = b_overlap - left_uneven(by_overlap)
    count = b_norm - left_uneven(by_norm)
    beta = jnp.stack([mean_bias, labels, gradient, count])
    return t_bias + t_norm + t_overlap, beta @ Z @ Z.T
