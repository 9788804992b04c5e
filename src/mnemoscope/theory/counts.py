r"""Moments of the training sample: how often a label and a token meet.

K[y, v] counts token v in sequences of label y, n[y] the sequences of label y. Relabelling tokens
so that Pi* is the identity, K = diag(n) + (noise tokens). Kc is K less its columns' means.
"""

from dataclasses import dataclass

from mnemoscope.spec import Retrieval


@dataclass(frozen=True)
class Counts:
    """What the later formulas need to know of K, n and the sequences."""

    # E sum_i (Kc[y_i, x_il] - mean over the sequence of Kc[y_i, x_ij]): the trigger's weight.
    trigger: float
    # E sum_y Kc[y, v]^2: how much a token's column says, noise and signal together.
    column: float
    # The same as the gradient sees it, with every sequence's mean taken off.
    centred_column: float
    # E n[y], and the mean number of noise tokens in a sequence.
    per_label: float
    noise_tokens: float


def count_moments(spec: Retrieval) -> Counts:
    """The moments of a spec's sample, exact for `trigger` and to O(1/V) for the others."""
    V, L, N = spec.vocab, spec.length, spec.samples
    b = (L - 1) / V  # how often a given token stands among a sequence's noise tokens
    b2 = b * (1 - 1 / V) + b**2  # and the mean of its square
    # (A3): E sum_y n_y Kc[y, y]
    own = (V - 1) * (N / V * (1 + b) + N * (N - 1) / V**2)
    # (A4): E sum_{yv} K Kc = E sum K^2 - E sum_v (column sum)^2 / V
    squares = V * (N * (1 + 2 * b + b2) / V + N * (N - 1) * ((1 + b) / V) ** 2)
    squares += V * (V - 1) * (N * b2 / V + N * (N - 1) * (b / V) ** 2)
    columns = N * L / V * (1 - 1 / V) + (N * L / V) ** 2
    n = N / V
    trigger = own - (squares - columns) / L
    if spec.trigger == "additive":
        # (C1): label counts see the trigger in the values, and so do tokens through Z^T Z.
        trigger += N * (1 - 1 / V) * (1 - 1 / L)
        if spec.embedding != "orthonormal":
            trigger += N * (L - 1) / spec.dim
    return Counts(
        trigger=trigger,
        column=n * L + n**2,  # (A8)
        centred_column=n * (L - 1) + (n + n**2) * (1 - 1 / L) ** 2,  # (A9)
        per_label=n,
        noise_tokens=float(L - 1),
    )
