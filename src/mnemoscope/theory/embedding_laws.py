r"""The embedding laws that theory covers, with their moments.

Z has V rows in d dimensions, B = Z Z^T holds their overlaps, t = |z|^2. Scores see H B H, with the
tokens' mean removed, which acts as V - 1 rows of the same law (docs/theory/attention.md).
"""

from mnemoscope.spec import Retrieval
from mnemoscope.theory.registry import EmbeddingLaw, Gram, register
from mnemoscope.theory.spec_grid import Number


def gaussian(V: Number, d: Number) -> Gram:
    """Rows from N(0, I/d): exact."""
    v, g = V - 1, 2 / d  # |z|^2 is chi^2_d / d
    norms = (1 + g, (1 + g) * (1 + 2 * g), (1 + g) * (1 + 2 * g) * (1 + 3 * g))
    third = v * (v**2 + d**2 + 3 * v * d + 3 * v + 3 * d + 4) / d**3  # (A7)
    fourth = v**3 + 6 * v**2 * d + 6 * v * d**2 + d**3
    fourth += 6 * v**2 + 17 * v * d + 6 * d**2 + 21 * v + 21 * d + 20  # (A8)
    return Gram(V / d, *norms, third, v * fourth / d**3 / V)


def sphere(V: Number, d: Number) -> Gram:
    """Unit rows: count how the indices of a trace can coincide. Exact but for the mean."""
    v = V - 1
    pairs, triples = v * (v - 1), v * (v - 1) * (v - 2)
    third = (v + 3 * pairs / d + triples / d**2) / d  # (A7)
    fourth = v + 6 * pairs / d + 3 * pairs / (d * (d + 2)) + 6 * triples / d**2
    fourth += triples * (v - 3) / d**3  # (A8)
    return Gram(V / d, 1.0, 1.0, 1.0, third, fourth / V)


register(Retrieval.kind, EmbeddingLaw("gaussian", unit_norm=False, gram=gaussian))
register(Retrieval.kind, EmbeddingLaw("sphere", unit_norm=True, gram=sphere))
register(Retrieval.kind, EmbeddingLaw("orthonormal", unit_norm=True, gram=None))
