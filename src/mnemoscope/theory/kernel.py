r"""How much of a stored token a query finds: the overlap of the features that the values see.

A query x finds its own pair with weight `own`, and any other stored pair with a weight that has a
mean and a variance over tokens (docs/theory/recall.md). Without an MLP the overlap is z_t . z_x;
with one it is (1/m) sum_a phi(w_a . z_t) phi(w_a . z_x).
"""

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from mnemoscope.theory.quadrature import Nodes, combine, normal_nodes
from mnemoscope.theory.registry import embedding_law
from mnemoscope.theory.spec_grid import Number, Sizes
from mnemoscope.theory.units import DRAWS, draw_overlaps

# With an MLP, for each number of norms that is asked for: queries in so many groups by how much
# they share with all tokens, each in so many by interference, and so many draws of units.
GROUPS = {1: (2, 2, DRAWS // 8), 2: (2, 3, DRAWS // 4), 3: (3, 4, DRAWS)}


@dataclass(frozen=True)
class Kernel:
    """Nodes over queries: what each finds of itself and of others, and how common it is.

    Of several settings, with the nodes along the first axis.
    """

    own: np.ndarray
    mean: np.ndarray
    variance: np.ndarray
    weight: np.ndarray
    # The mean of the variance that would be left at infinite width.
    interference: Number
    # Skewness and excess kurtosis of the overlaps over tokens, where they have any.
    skewness: np.ndarray | None = None
    kurtosis: np.ndarray | None = None

    def take(self, at: np.ndarray) -> "Kernel":
        """That of some of the settings."""
        rows = {
            name: None if (rows := getattr(self, name)) is None else rows[:, at]
            for name in ("own", "mean", "variance", "skewness", "kurtosis")
        }
        return replace(self, **rows, interference=0.0)


def kernel(spec: Sizes, norms: int = 3) -> Kernel:
    """The overlaps of a spec's features, over so many of the queries' norms."""
    return _hidden(spec, norms) if spec.hidden else _bare(spec, norms)


def _bare(spec: Sizes, norms: int) -> Kernel:
    d = spec.dim
    if spec.trigger == "keys":
        t, weight = embedding_law(spec.embedding).squared_norm_nodes(d, norms)
        return Kernel(t, 0 * t, t / d, weight, weight @ t / d)  # (B1)
    # The trigger is in every value: (z_t + z_trig) . (z_x + z_trig) (C2). Its overlap with the
    # query moves the own pair against the others.
    (t, xi), weight = combine(embedding_law(spec.embedding).squared_norm_nodes(d, norms), _trigger_overlap(spec))
    spread = (t + 1) / d
    return Kernel(t + xi + 1, np.ones_like(t), spread, weight, weight @ spread)


def _hidden(spec: Sizes, norms: int) -> Kernel:
    """With the MLP, for every pair of d and m once."""
    pairs, at = np.unique(spec.dim + 1j * spec.width, return_inverse=True)
    kernels = _by_pair(
        spec.activation,
        spec.embedding,
        spec.trigger,
        norms,
        tuple((round(pair.real), round(pair.imag)) for pair in pairs.tolist()),
    )
    return replace(kernels.take(at), interference=kernels.interference[at])


@lru_cache(maxsize=64)
def _by_pair(activation: str, embedding: str, trigger: str, norms: int, pairs: tuple[tuple[int, int], ...]) -> Kernel:
    """The kernels of these pairs of d and m, side by side."""
    kernels = [_of_pair(activation, embedding, trigger, d, m, norms) for d, m in pairs]
    rows = {
        name: np.stack([getattr(kernel, name) for kernel in kernels], axis=-1)
        for name in ("own", "mean", "variance", "skewness", "kurtosis")
    }
    wide = np.array([kernel.interference for kernel in kernels])
    # The groups differ by one query at most, so all have the weights of the first.
    return Kernel(**rows, weight=kernels[0].weight, interference=wide)


@lru_cache(maxsize=1024)
def _of_pair(activation: str, embedding: str, trigger: str, dim: int, width: int, norms: int) -> Kernel:
    """Queries that find themselves equally well, beside their interference, in one node each.

    Only ratios to `own` tell one query's answer from another's: recall does not change when all
    its overlaps are scaled (B13).
    """
    across, along, draws = GROUPS[norms]
    overlaps = draw_overlaps(activation, embedding, trigger == "additive", dim, width, draws)
    own = np.maximum(overlaps.own, 1e-12)
    ratio, shared = overlaps.variance / own**2, overlaps.mean / own
    parts = [
        part
        for group in np.array_split(np.argsort(shared, kind="stable"), across)
        for part in np.array_split(group[np.argsort(ratio[group])], along)
    ]
    if np.ptp(shared) < 1e-6:  # nothing is shared
        parts = np.array_split(np.argsort(ratio), across * along)

    def means(values: np.ndarray) -> np.ndarray:
        return np.array([values[part].mean() for part in parts])

    size = means(own)
    weight = np.array([len(part) for part in parts]) / len(own)
    # Those of a usual query: their means are a few queries' alone.
    skewness, kurtosis = (
        np.array([np.median(values[part]) for part in parts]) for values in (overlaps.skewness, overlaps.kurtosis)
    )
    return Kernel(
        size, size * means(shared), size**2 * means(ratio), weight, float(overlaps.wide.mean()), skewness, kurtosis
    )


def _trigger_overlap(spec: Sizes) -> Nodes:
    """z_x . z_trig, of variance 1/d, where the trigger is in the values."""
    if spec.trigger == "keys":
        return np.zeros((1, *np.shape(spec.dim))), np.ones(1)
    g, weight = normal_nodes(2)
    g = g.reshape(-1, *(1,) * np.ndim(spec.dim)) / np.sqrt(spec.dim)
    return (g if embedding_law(spec.embedding).overlapping else 0 * g), weight
