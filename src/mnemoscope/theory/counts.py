r"""Moments of the training sample: how often labels and tokens meet.

K[y, v] counts token v in sequences of label y, and n[y] the sequences of label y. With tokens
relabelled so that Pi* is the identity, K = diag(n) + (noise tokens). Kc is K less its column means,
and F = Kc - (n - N/V) 1^T (L-1)/V removes the effect of uneven label counts.
"""

from dataclasses import dataclass

from mnemoscope.theory.mlp_gains import Gains
from mnemoscope.theory.registry import embedding_law
from mnemoscope.theory.spec_grid import Number, Sizes


@dataclass(frozen=True)
class Counts:
    """Moments of K, n and the sequences."""

    # n = N/V: sequences per label, on average.
    per_label: Number
    # (L-1)/V: how often a sequence has a given token as noise, on average.
    per_token: Number
    # E sum_y F[y, v]^2: signal and noise in a token's column.
    column: Number
    # The same with every sequence's mean removed, and the share of F that remains.
    kept: Number
    share: Number
    # E sum_y F[y, v]^2 (n_y - N/V)^2.
    uneven: Number
    # E (sum_y F[y, v] F[y, w])^2 for two tokens: chance similarity of columns.
    alike: Number
    # Variance over tokens of sum_y K F, with every sequence's mean removed.
    spread: Number


def count_moments(spec: Sizes) -> Counts:
    """The moments of a spec's sample, to O(1/V)."""
    V, L, N = spec.vocab, spec.length, spec.samples
    n, q = N / V, 1 - 1 / L
    # Moments of a Poisson count of mean n: E n^2, E n^3, E n^2 (n - E n)^2, Var n^2.
    square, cube = n**2 + n, n**3 + 3 * n**2 + n
    uneven_square, square_spread = n**3 + 5 * n**2 + n, 4 * n**3 + 6 * n**2 + n
    column = (1 - 1 / V) * ((1 - 1 / V) * n * L + n**2)  # (A9)
    # A sequence's mean takes 1/L of a token's weight, and 1/V more as the token may occur twice.
    share = q - 1 / V
    return Counts(
        per_label=n,
        per_token=(L - 1) / V,
        column=column,
        kept=share**2 * column + n * q,  # (A10)
        share=share,
        uneven=(L - 1) * square + uneven_square,
        alike=(L**2 * square + 2 * L * cube) / V,
        spread=n**3 / L + 2 * L**2 * square / V + 4 * n**3 * L / V + q**2 * square_spread + n - q * (4 * n**2 + 2 * n),
    )


def trigger_weight(spec: Sizes, gain: Gains) -> Number:
    """E tau, the weight that the second step gives the trigger (A5)."""
    V, L, N = spec.vocab, spec.length, spec.samples
    b = (L - 1) / V
    b2 = b * (1 - 1 / V) + b**2  # the mean square of a token's count among the noise tokens
    # (A3): E sum_y n_y Kc[y, y]
    own = (V - 1) * (N / V * (1 + b) + N * (N - 1) / V**2)
    # (A4): E sum_{yv} K Kc = E sum K^2 - E sum_v (column sum)^2 / V
    squares = V * (N * (1 + 2 * b + b2) / V + N * (N - 1) * ((1 + b) / V) ** 2)
    squares += V * (V - 1) * (N * b2 / V + N * (N - 1) * (b / V) ** 2)
    columns = N * L / V * (1 - 1 / V) + (N * L / V) ** 2
    weight = gain.linear * (own - (squares - columns) / L)
    # (F7): sequences of one label share a token, and a trigger in the values, which adds to their
    # overlap once more.
    seen = 2 if spec.trigger == "additive" else 1
    weight += gain.pair * N * (N - 1) / V * (1 - 1 / L) / L**2 * (seen + 1 / spec.dim)
    return weight + (trigger_in_values(spec, gain) if spec.trigger == "additive" else 0.0)


def trigger_in_values(spec: Sizes, gain: Gains) -> Number:
    """The weight that label counts add to a trigger in the values (C1).

    Informative positions carry it themselves, and all tokens push along it through Z^T Z.
    """
    V, L, N = spec.vocab, spec.length, spec.samples
    seen = (1 - 1 / V) * (1 - 1 / L)
    if embedding_law(spec.embedding).overlapping:
        seen = seen + (L - 1) / spec.dim
    return (gain.linear + gain.constant + gain.own) * N * seen
