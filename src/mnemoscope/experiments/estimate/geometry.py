r"""The geometry of embeddings that matters for recall: how far they are from random ones.

Random embeddings, z ~ N(0, I/d), have a mean of norm 1/sqrt(V), overlaps of size 1/sqrt(d), and the same variance in
every direction. Real ones share a direction (their mean is what the mean bias feeds on), overlap more, and live in
fewer directions. With l_1 >= l_2 >= ... the eigenvalues of their second moments about the mean,

    effective dimension   (sum l)^2 / sum l^2,   at most d                                    (G1)

which is d for random rows as V grows; sqrt(1 / effective dimension) is what overlaps are like.
"""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from mnemoscope.engine.free_memory import EIGENVECTORS, check_fits

# Cosines are computed between this many rows, evenly spaced.
MOST_ROWS = 2048


@dataclass(frozen=True)
class Geometry:
    """The geometry of one matrix; `expected` is that of random embeddings of its shape."""

    rows: int
    dim: int
    mean_norm: float
    norm_spread: float
    usual_cosine: float
    largest_cosine: float
    effective_dim: float
    spectrum: tuple[float, ...]

    @property
    def expected(self) -> dict[str, float]:
        """The same for gaussian embeddings, to leading order; the largest cosine varies, and is left out."""
        V, d = self.rows, self.dim
        return {
            "mean_norm": V**-0.5,
            "norm_spread": (2 * d) ** -0.5,
            "usual_cosine": d**-0.5,
            "effective_dim": d / (1 + d / V),  # sum l^2 = d (1/d^2)(1 + d/V): Marchenko-Pastur
        }

    def as_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        return {**asdict(self), "spectrum": list(self.spectrum), "random": self.expected}


def look_at(Z: np.ndarray) -> Geometry:
    """The geometry of rows whose squared norms are 1 on average."""
    Z = np.asarray(Z, float)
    V, d = Z.shape
    mean = Z.mean(axis=0)
    norms = np.linalg.norm(Z, axis=1)
    nonzero = Z[norms > 0]  # centring turns a row equal to the mean into zeros, without a direction
    sample = nonzero[:: -(-len(nonzero) // MOST_ROWS)]
    unit = sample / np.linalg.norm(sample, axis=1, keepdims=True)
    cosines = np.abs(unit @ unit.T)
    off = cosines[~np.eye(len(unit), dtype=bool)]
    centred = Z - mean
    values = _second_moments(centred)
    return Geometry(
        rows=V,
        dim=d,
        mean_norm=float(np.linalg.norm(mean)),
        norm_spread=float(norms.std() / norms.mean()),
        usual_cosine=float(np.sqrt(np.mean(off**2))),
        largest_cosine=float(off.max()),
        effective_dim=float(values.sum() ** 2 / np.sum(values**2)),
        spectrum=tuple(float(value) for value in values),
    )


def _second_moments(centred: np.ndarray) -> np.ndarray:
    """Eigenvalues of the second moments, largest first, from the smaller Gram matrix; the rest are 0."""
    V, d = centred.shape
    side = min(V, d)
    check_fits("embedding", f"{V:,} x {d:,}", 8 * EIGENVECTORS * side**2, "its spectrum")
    gram = centred.T @ centred if side == d else centred @ centred.T
    values = np.zeros(d)
    values[:side] = np.linalg.eigvalsh(gram / V)[::-1].clip(min=0)
    return values
