r"""How much of a stored token a query retrieves: the overlap of the features that the values see.

A query x retrieves its own pair with weight `own`, and any other stored pair with a weight that has
a mean and a variance over tokens (docs/theory/recall.md). Without an MLP the overlap is z_t . z_x;
with one it is (1/m) sum_a phi(w_a . z_t) phi(w_a . z_x).
"""

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from mnemoscope.theory.quadrature import combine, normal_nodes
from mnemoscope.theory.registry import embedding_law
from mnemoscope.theory.spec_grid import Number, Sizes
from mnemoscope.theory.units import DRAWS, draw_overlaps

# With an MLP, by the number of norms asked for: groups of queries by how much they share with all
# tokens, groups by interference within each of those, and draws of hidden units.
GROUPS = {1: (2, 2, DRAWS // 8), 2: (2, 3, DRAWS // 4), 3: (3, 4, DRAWS)}
MOMENTS = ("own", "mean", "variance", "skewness", "kurtosis")


@dataclass(frozen=True)
class Kernel:
    """Nodes over queries, along the first axis: overlaps with itself and with others, and weights."""

    own: np.ndarray
    mean: np.ndarray
    variance: np.ndarray
    weight: np.ndarray
    # The mean variance at infinite width.
    interference: Number
    # Skewness and excess kurtosis of the overlaps over tokens; None for normal ones.
    skewness: np.ndarray | None = None
    kurtosis: np.ndarray | None = None

    def take(self, at: np.ndarray) -> "Kernel":
        """The kernels of some of the settings."""
        rows = {name: None if (row := getattr(self, name)) is None else row[:, at] for name in MOMENTS}
        return replace(self, **rows, interference=0.0)

    def averages(self) -> tuple[Number, Number, Number]:
        """`own`, `mean` and `variance`, averaged over queries."""
        return self.weight @ self.own, self.weight @ self.mean, self.weight @ self.variance


def kernel(spec: Sizes, norms: int = 3) -> Kernel:
    """The overlaps of a spec's features, with this many nodes over the queries' norms."""
    return _hidden(spec, norms) if spec.hidden else _bare(spec, norms)


def _bare(spec: Sizes, norms: int) -> Kernel:
    d, law = spec.dim, embedding_law(spec.embedding)
    squares = law.squared_norm_nodes(d, norms)
    if spec.trigger == "keys":
        t, weight = squares
        return Kernel(t, 0 * t, t / d, weight, weight @ t / d)  # (B1)
    # The trigger is in every value: (z_t + z_trig) . (z_x + z_trig) (C2). Its overlap with the
    # query, of variance 1/d, moves the own pair against the others.
    g, g_weight = normal_nodes(2)
    g = g.reshape(-1, *(1,) * np.ndim(d)) / np.sqrt(d)
    (t, xi), weight = combine(squares, (g if law.overlapping else 0 * g, g_weight))
    spread = (t + 1) / d
    return Kernel(t + xi + 1, np.ones_like(t), spread, weight, weight @ spread)


def _hidden(spec: Sizes, norms: int) -> Kernel:
    """With the MLP; each pair of d and m is computed once."""
    unique, at = np.unique(spec.dim + 1j * spec.width, return_inverse=True)
    pairs = tuple((round(pair.real), round(pair.imag)) for pair in unique.tolist())
    kernels = _by_pair(spec.activation, spec.embedding, spec.trigger, norms, pairs)
    return replace(kernels.take(at), interference=kernels.interference[at])


@lru_cache(maxsize=64)
def _by_pair(activation: str, embedding: str, trigger: str, norms: int, pairs: tuple[tuple[int, int], ...]) -> Kernel:
    """The kernels of these pairs of d and m, side by side."""
    kernels = [_of_pair(activation, embedding, trigger, d, m, norms) for d, m in pairs]
    rows = {name: np.stack([getattr(kernel, name) for kernel in kernels], axis=-1) for name in MOMENTS}
    interference = np.array([kernel.interference for kernel in kernels])
    # Group sizes differ by one query at most, so the first kernel's weights serve all.
    return Kernel(**rows, weight=kernels[0].weight, interference=interference)


@lru_cache(maxsize=1024)
def _of_pair(activation: str, embedding: str, trigger: str, dim: int, width: int, norms: int) -> Kernel:
    """The kernel of one d and m: queries grouped by what they share and by their interference.

    Only ratios to `own` matter: recall does not change when all overlaps of a query are scaled (B13).
    """
    across, along, draws = GROUPS[norms]
    overlaps = draw_overlaps(activation, embedding, trigger == "additive", dim, width, draws)
    own = np.maximum(overlaps.own, 1e-12)
    ratio, shared = overlaps.variance / own**2, overlaps.mean / own
    if np.ptp(shared) < 1e-6:  # nothing is shared
        groups = np.array_split(np.argsort(ratio), across * along)
    else:
        groups = [
            part
            for group in np.array_split(np.argsort(shared, kind="stable"), across)
            for part in np.array_split(group[np.argsort(ratio[group])], along)
        ]

    def means(values: np.ndarray) -> np.ndarray:
        return np.array([values[group].mean() for group in groups])

    size = means(own)
    weight = np.array([len(group) for group in groups]) / len(own)
    # Medians: a few queries dominate the means.
    skewness, kurtosis = (
        np.array([np.median(values[group]) for group in groups]) for values in (overlaps.skewness, overlaps.kurtosis)
    )
    return Kernel(
        size, size * means(shared), size**2 * means(ratio), weight, float(overlaps.wide.mean()), skewness, kurtosis
    )
