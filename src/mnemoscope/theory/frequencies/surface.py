"""Accuracy and regime of many settings whose tokens are not uniform, for a diagram that is redrawn.

The formulas are those of `predict`; only seeds are fewer. `tests/theory/test_frequencies.py` bounds the difference.
"""

import numpy as np

from mnemoscope.spec import Retrieval
from mnemoscope.theory.domain import inside
from mnemoscope.theory.fast_predict import Surface
from mnemoscope.theory.frequencies.predict import regime, solve
from mnemoscope.theory.limits import FREQUENCIES
from mnemoscope.theory.registry import embedding_law, not_derived
from mnemoscope.theory.spec_grid import SIZES, SpecGrid

# Seeds of a cell while a slider moves, and once it rests.
COARSE, FINER = 4, 16


def frequency_surface(cells: SpecGrid, tokens: str, seeds: int = FINER) -> Surface:
    """Theory's prediction for every cell with these token frequencies; NaN and "none" as in `surface`."""
    accuracy, attended = np.full((2, len(cells.vocab)), np.nan)
    regimes = np.full(len(accuracy), "none", dtype=object)
    possible = cells.dim >= embedding_law(cells.embedding).least_dim(cells.vocab)
    for at in np.flatnonzero(possible):
        spec = _setting(cells, int(at), tokens)
        if not_derived(spec):
            continue
        solved = solve(spec, seeds)
        accuracy[at], attended[at], regimes[at] = solved.accuracy, solved.attention_accuracy, regime(spec, solved)
    return Surface(accuracy, attended, regimes.astype(str), inside(cells, FREQUENCIES) & ~np.isnan(accuracy))


def _setting(cells: SpecGrid, at: int, tokens: str) -> Retrieval:
    sizes = {name: round(float(getattr(cells, name)[at])) for name in SIZES}
    choices = {name: getattr(cells, name) for name in ("activation", "embedding", "trigger")}
    return Retrieval(**sizes, **choices, tokens=tokens)
