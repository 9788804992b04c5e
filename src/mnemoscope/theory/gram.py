r"""Averages over random embeddings: powers of a norm, and traces of powers of the overlaps.

Z has V rows in d dimensions, B = Z Z^T their overlaps, t = |z|^2. What scores see of B is H B H,
with the tokens' mean taken off: as V - 1 rows of the same law (docs/theory/attention.md).
"""

from dataclasses import dataclass

from mnemoscope.theory.spec_grid import Number, Sizes


@dataclass(frozen=True)
class Gram:
    """Moments of one spec's input embeddings."""

    # V/d, the mean over tokens of sum_{w != v} (z_v . z_w)^2.
    load: Number
    # E t^2, E t^3, E t^4 for t = |z|^2.
    norm2: Number
    norm3: Number
    norm4: Number
    # E tr B^3 / d and E tr B^4 / V, the mean taken off.
    third: Number
    fourth: Number


def gram_moments(spec: Sizes) -> Gram:
    """The moments, exact for Gaussian rows; on the sphere exact but for the mean taken off."""
    V, d = spec.vocab, spec.dim
    v = V - 1
    if spec.embedding == "gaussian":
        g = 2 / d  # |z|^2 is chi^2_d / d
        norms = (1 + g, (1 + g) * (1 + 2 * g), (1 + g) * (1 + 2 * g) * (1 + 3 * g))
        third = v * (v**2 + d**2 + 3 * v * d + 3 * v + 3 * d + 4) / d**3  # (A7)
        fourth = v**3 + 6 * v**2 * d + 6 * v * d**2 + d**3
        fourth += 6 * v**2 + 17 * v * d + 6 * d**2 + 21 * v + 21 * d + 20  # (A8)
        return Gram(V / d, *norms, third, v * fourth / d**3 / V)
    # Unit rows: count the ways in which the indices of a trace coincide.
    pairs, triples = v * (v - 1), v * (v - 1) * (v - 2)
    third = (v + 3 * pairs / d + triples / d**2) / d  # (A7)
    fourth = v + 6 * pairs / d + 3 * pairs / (d * (d + 2)) + 6 * triples / d**2
    fourth += triples * (v - 3) / d**3  # (A8)
    return Gram(V / d, 1.0, 1.0, 1.0, third, fourth / V)
