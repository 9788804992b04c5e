"""Tokens of unequal probability, for averages: the most frequent ones singly, all others in groups of like p."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from mnemoscope.spec.token_laws import probabilities

# Tokens that are followed singly, and the most groups of the others.
SINGLE, GROUPS = 16, 24


@dataclass(frozen=True)
class Tokens:
    """The V tokens: `single` holds the ids of the most frequent ones, `groups` the ids of all others."""

    vocab: int
    single: np.ndarray
    groups: tuple[np.ndarray, ...]
    # p of each single token; its mean in each group, and the number of tokens there.
    often: np.ndarray
    rare: np.ndarray
    size: np.ndarray
    # Sums of p^2 and p^3 over all tokens.
    squares: float
    cubes: float

    def mean(self, single: np.ndarray, rare: np.ndarray) -> np.ndarray:
        """The mean over tokens of what each single token and each group has, as often as they occur."""
        return single @ self.often + rare @ (self.size * self.rare)

    def by_token(self, single: np.ndarray, rare: np.ndarray) -> np.ndarray:
        """The same numbers in the order of the tokens."""
        values = np.empty(self.vocab)
        values[self.single] = single
        for members, value in zip(self.groups, rare, strict=True):
            values[members] = value
        return values


@lru_cache(maxsize=64)
def tokens_of(law: str, vocab: int) -> Tokens:
    """The tokens of a law."""
    return grouped(probabilities(law, vocab))


def grouped(p: np.ndarray) -> Tokens:
    """Tokens of these probabilities."""
    order = np.argsort(-p, kind="stable")
    single, rest = order[:SINGLE], order[SINGLE:]
    groups: list[np.ndarray] = []
    never = rest[p[rest] == 0]
    rest = rest[p[rest] > 0]
    if len(rest):
        # Even steps in ln p, and one group of tokens that never occur.
        at = np.log(p[rest])
        step = max((at[0] - at[-1]) / GROUPS, 1e-9)
        of = np.minimum(((at[0] - at) / step).astype(int), GROUPS - 1)
        groups = [rest[of == k] for k in np.unique(of)]
    groups += [never] if len(never) else []
    return Tokens(
        vocab=len(p),
        single=single,
        groups=tuple(groups),
        often=p[single],
        rare=np.array([p[members].mean() for members in groups]),
        size=np.array([float(len(members)) for members in groups]),
        squares=float((p**2).sum()),
        cubes=float((p**3).sum()),
    )
