"""How often each token occurs: the laws that a setting may name, and their probabilities.

    uniform       every token alike
    zipf:A        p_v proportional to (v + 1)^-A, so that token 0 is the most frequent
    file:DIGITS   a vector of the user's own, kept under its content's name by `tasks.token_files`

Ranks and ids agree under zipf. Embeddings are drawn alike for all tokens, so their order has no effect.
"""

import math
import re
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from itertools import pairwise
from typing import Any

import numpy as np

from mnemoscope.spec.validators import FROM_FILE, between, nearest, shown

UNIFORM = "uniform"
# Stands for all laws but uniform where they share a compiled program: what holds for it, such as the size of a counter,
# holds for any other.
MOST_UNEVEN = "zipf:10"
_ZIPF = re.compile(r"zipf:(.+)")
# Beyond this exponent a single token has nearly all of the probability.
_exponent = between(0, 10)


def read_tokens(value: Any) -> str:
    """A law's name in its one spelling; `zipf:0` is uniform."""
    text = value.strip() if isinstance(value, str) else ""
    if text == UNIFORM or FROM_FILE.fullmatch(text):
        return text
    zipf = _ZIPF.fullmatch(text)
    if zipf is None:
        close = nearest(text.split(":")[0], (UNIFORM, "zipf", "file"))
        raise ValueError(f"expected uniform, zipf:EXPONENT or file:PATH, got {shown(value)}{close}")
    try:
        exponent = _exponent(zipf[1])
    except ValueError as error:
        raise ValueError(f"{error} as zipf's exponent") from None
    return f"zipf:{exponent!r}".removesuffix(".0") if exponent else UNIFORM


def read_frequencies(value: Any) -> str:
    """The same for what has no file of probabilities."""
    law = value.strip() if isinstance(value, str) else ""
    if law != UNIFORM and not law.startswith("zipf:"):
        close = nearest(law.split(":")[0], (UNIFORM, "zipf"))
        raise ValueError(f"expected uniform or zipf:EXPONENT, got {shown(value)}{close}")
    return read_tokens(law)


@lru_cache(maxsize=64)
def probabilities(law: str, count: int) -> np.ndarray:
    """The probability of each of `count` tokens, in float64; they sum to 1."""
    if law == UNIFORM:
        p = np.full(count, 1 / count)
    elif zipf := _ZIPF.fullmatch(law):
        weights = np.arange(1, count + 1, dtype=float) ** -float(zipf[1])
        p = weights / weights.sum()
    else:
        # Imported late: `tasks` comes after `spec`. It reads a kept file and needs no simulator.
        p = import_module("mnemoscope.tasks.token_files").load(law)
    p.setflags(write=False)
    return p


@dataclass(frozen=True)
class Band:
    """The tokens that are expected `least` times or more, and fewer than `below` times, in the training sample."""

    least: float
    below: float
    tokens: np.ndarray

    @property
    def name(self) -> str:
        """As tables show it."""
        return f"{self.least:g}-{self.below:g}"


def bands(p: np.ndarray, samples: int) -> tuple[Band, ...]:
    """Tokens by their expected number of training sequences, samples x p: below 1, then by factors of ten.

    From rare to frequent, and without bands that hold no token.
    """
    expected = samples * p
    edges = [0.0, *(10.0**k for k in range(max(0, math.floor(math.log10(max(1.0, expected.max())))) + 2))]
    parts = (
        Band(least, below, np.flatnonzero((expected >= least) & (expected < below))) for least, below in pairwise(edges)
    )
    return tuple(band for band in parts if len(band.tokens))
