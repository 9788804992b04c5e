"""The draws of `predict` with frequencies: what differs from seed to seed and cannot be averaged beforehand.

Always the same numbers, so that a prediction is repeatable and changes smoothly with the sizes.
"""

from functools import lru_cache

import numpy as np
from scipy.special import bdtrik, gammaincinv, ndtri, pdtrik

SEED = 20_261


class Draws:
    """Independent numbers for `count` seeds, along the first axis."""

    def __init__(self, count: int) -> None:
        self.count = count
        self._drawn = 0

    def normal(self, *shape: int) -> np.ndarray:
        """Standard normal numbers."""
        return ndtri(self.uniform(*shape))

    def uniform(self, *shape: int) -> np.ndarray:
        """Numbers between 0 and 1, without the ends."""
        self._drawn += 1
        return _even(self.count, self._drawn, shape)

    def chi_square(self, degrees: np.ndarray | float, *shape: int) -> np.ndarray:
        """chi^2; 0 where there are no degrees of freedom."""
        degrees = np.asarray(degrees, float)
        return np.where(degrees > 0, 2 * gammaincinv(np.maximum(degrees, 1) / 2, self.uniform(*shape)), 0.0)

    def binomial(self, trials: int, p: np.ndarray) -> np.ndarray:
        """Counts of events with these chances."""
        return _count(bdtrik(self.uniform(len(p)), float(trials), np.clip(p, 1e-12, 1 - 1e-12)))

    def poisson(self, mean: np.ndarray) -> np.ndarray:
        """Counts of these means, one for each of them."""
        return _count(pdtrik(self.uniform(*mean.shape[1:]), np.maximum(mean, 1e-12)))

    def vectors(self, number: int, dim: int, *, overlapping: bool) -> np.ndarray:
        """So many vectors of law N(0, I/d) in coordinates of their own span, as rows; without overlaps, a frame.

        Only their inner products matter, so a triangle of `number` coordinates holds them: below the diagonal normal
        numbers, on it what is left of each vector's length (Bartlett).
        """
        if not overlapping:
            return np.broadcast_to(np.eye(number), (self.count, number, number))
        rows = np.tril(self.normal(number, number), -1)
        at = np.arange(number)
        rows[:, at, at] = np.sqrt(self.chi_square(dim - at.astype(float), number))
        # Later coordinates than d do not exist.
        return np.where(at < dim, rows, 0.0) / np.sqrt(dim)


@lru_cache(maxsize=256)
def _even(count: int, at: int, shape: tuple[int, ...]) -> np.ndarray:
    """Every number's draws lie evenly between 0 and 1 (a Latin hypercube): means of sums hardly vary then."""
    random = np.random.default_rng([SEED, at])
    order = random.random((count, *shape)).argsort(axis=0)
    return (order + random.random((count, *shape))) / count


def _count(value: np.ndarray) -> np.ndarray:
    """The least whole number whose distribution function reaches a chance, from its continuous inverse."""
    return np.maximum(np.ceil(np.nan_to_num(value, nan=0.0) - 1e-9), 0.0)
