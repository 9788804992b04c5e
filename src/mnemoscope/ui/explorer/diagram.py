"""The predicted diagram and the curve beside it, with the meaning and the law of each regime, for the page to draw."""

import json
import math
import re
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from markupsafe import Markup, escape

from mnemoscope.experiments.plan import MEANINGS
from mnemoscope.experiments.plan_laws import Training
from mnemoscope.spec import LETTERS, Retrieval
from mnemoscope.spec.token_laws import UNIFORM
from mnemoscope.theory import fast_predict
from mnemoscope.theory.fast_predict import Surface, surface
from mnemoscope.theory.frequencies import surface as frequencies
from mnemoscope.theory.laws import law_of
from mnemoscope.theory.registry import missing, not_derived
from mnemoscope.theory.spec_grid import SpecGrid
from mnemoscope.theory.trained.fast import trained_surface
from mnemoscope.ui.explorer.state import RANGES, State, read_state

# Columns and rows of the grid: while a slider moves, and at rest.
MOVING, RESTING = (17, 13), (29, 23)
CURVE = 41
# The same where tokens are not uniform: theory then draws seeds for each cell, and takes milliseconds for it.
UNEVEN_MOVING, UNEVEN_RESTING = (11, 9), (17, 13)
UNEVEN_CURVE = 17
# Diagrams in the cache, a few kilobytes each.
KEPT = 2048


class Drawn(NamedTuple):
    """A grid of settings row by row with the prediction for each, and the curve at the cross.

    Beside both, the accuracy after the other training.
    """

    x: np.ndarray
    y: np.ndarray
    predicted: Surface
    other: np.ndarray
    samples: np.ndarray
    accuracy: np.ndarray
    other_accuracy: np.ndarray


def draw(state: State, *, moving: bool) -> Drawn:
    """The diagram over the x axis and N, and accuracy along N at the cross."""
    uniform = state.tokens == UNIFORM
    columns, rows = (MOVING if uniform else UNEVEN_MOVING) if moving else RESTING if uniform else UNEVEN_RESTING
    samples = _steps("samples", CURVE if uniform else UNEVEN_CURVE)
    x, y = _steps(state.x, columns), _steps("samples", rows)
    across, up = (part.ravel() for part in np.meshgrid(x, y))
    here = state.values[state.x]
    if here:  # one call for both is cheaper
        across = np.concatenate([across, np.full(len(samples), float(here))])
        up = np.concatenate([up, samples])
    settings = state.cells(**{state.x: across, "samples": up})
    predicted, other = _surfaces(state, settings, moving=moving)
    cells = len(x) * len(y)
    parts = (predicted.accuracy, predicted.attention_accuracy, predicted.regime, predicted.valid)
    grid = Surface(*(part[:cells] for part in parts))
    if here:
        curves = [found.accuracy[cells:] for found in (predicted, other)]
    else:  # the x axis is the width, and the cross has no MLP
        curves = [found.accuracy for found in _surfaces(state, state.cells(samples=samples), moving=moving)]
    return Drawn(x, y, grid, other.accuracy[:cells], samples, *curves)


def _surfaces(state: State, cells: SpecGrid, *, moving: bool) -> tuple[Surface, Surface]:
    """Theory for the page's training, and for the other one."""
    if state.tokens == UNIFORM:
        nodes = fast_predict.COARSE if moving else fast_predict.FINER
        first, end = surface(cells, nodes), trained_surface(cells, nodes)
    else:
        seeds = frequencies.COARSE if moving else frequencies.FINER
        nothing = np.full(len(cells.vocab), np.nan)  # the end of training is derived for uniform tokens alone
        first = frequencies.frequency_surface(cells, state.tokens, seeds)
        end = Surface(nothing, nothing, np.full(len(nothing), "none"), np.zeros(len(nothing), bool))
    return (end, first) if state.trained else (first, end)


def crossing(samples: np.ndarray, accuracy: np.ndarray, target: float) -> float | None:
    """The first N at which accuracy reaches the target, interpolated linearly in ln N."""
    above = np.flatnonzero(accuracy >= target)
    if not len(above):
        return None
    at = int(above[0])
    if at == 0:
        return float(samples[0])
    a, b = accuracy[at - 1], accuracy[at]
    share = (target - a) / (b - a)
    return float(samples[at - 1] * (samples[at] / samples[at - 1]) ** share)


def as_json(state: State, *, moving: bool) -> bytes:
    """Everything that the page draws."""
    # The cross's own N does not change the drawing.
    values = {**state.values, "samples": RANGES["samples"][0]}
    return _packed(tuple(values.items()), state.target, state.x, state.training, moving)


@lru_cache(maxsize=KEPT)
def _packed(values: tuple[tuple[str, Any], ...], target: float, x: str, training: Training, moving: bool) -> bytes:
    state = State(dict(values), target, x, training)
    drawn = draw(state, moving=moving)
    accuracy, regimes = (part.reshape(len(drawn.y), -1) for part in (drawn.predicted.accuracy, drawn.predicted.regime))
    names = list(dict.fromkeys(regimes.ravel().tolist()))
    at_target = crossing(drawn.samples, drawn.accuracy, target)
    content = {
        "x": {"field": x, "label": _label(x), "values": drawn.x.tolist()},
        "y": {"field": "samples", "label": _label("samples"), "values": drawn.y.tolist()},
        "accuracy": _rounded(accuracy),
        "training": training,
        "other": _rounded(drawn.other.reshape(len(drawn.y), -1)),
        "names": names,
        "regimes": [[names.index(name) for name in row] for row in regimes.tolist()],
        "laws": {name: _law(state, name) for name in names},
        "target": target,
        "curve": {
            "samples": drawn.samples.tolist(),
            "accuracy": _rounded(drawn.accuracy[None])[0],
            "other": _rounded(drawn.other_accuracy[None])[0],
        },
        "crossing": None if at_target is None else round(at_target),
    }
    return json.dumps(content, allow_nan=False, separators=(",", ":")).encode()


def as_table(state: State) -> str:
    """The resting diagram as comma-separated values."""
    drawn = draw(state, moving=False)
    lines = [",".join([*state.values, "accuracy", "attention_accuracy", "regime", "valid", "training"])]
    cells, predicted = [(x, y) for y in drawn.y for x in drawn.x], drawn.predicted
    columns = (predicted.accuracy, predicted.attention_accuracy, predicted.regime, predicted.valid)
    for (x, y), accuracy, attention, regime, valid in zip(cells, *columns, strict=True):
        setting = {**state.values, state.x: round(x), "samples": round(y)}
        numbers = ["" if np.isnan(value) else f"{value:.4f}" for value in (accuracy, attention)]
        words = [*numbers, regime, "true" if valid else "false", state.training]
        lines.append(",".join([*map(str, setting.values()), *words]))
    return "\n".join(lines) + "\n"


def formula(state: State, regime: str, width: float) -> Markup:
    """A regime's law in HTML for this width, empty if the regime has none."""
    if state.tokens != UNIFORM:
        return Markup("")  # the laws are those of uniform tokens
    law = law_of(regime, state.values["trigger"], width, state.values["activation"])
    text = "" if law is None else law.words.replace(">>", "≫")
    if regime == "storage":  # the leading order of N_c, which only a trained model has
        text = "m d ≫ 2 V ln V" if width else "d^2 ≫ 2 V ln V"
    return Markup(re.sub(r"([A-Za-z])\^([0-9.]+)", r"\1<sup>\2</sup>", str(escape(text))))


def _law(state: State, name: str) -> dict[str, str]:
    _, unknown = missing(state.cells(width=_width_on_map(state)))
    if not unknown and state.tokens != UNIFORM:
        # Sizes do not matter here, and these always go together.
        possible = {"dim": state.values["vocab"], "length": 2}
        spec = Retrieval.read({**state.values, **possible, "width": _width_on_map(state)})
        unknown = not_derived(spec, trained=state.trained)
    if name == "none" and unknown:
        return {"name": "not derived", "words": unknown, "formula": ""}
    if name == "none":  # an empty cell of the diagram
        words = "orthonormal embeddings need at least as many dimensions as tokens"
        return {"name": "no such setting", "words": words, "formula": ""}
    law = formula(state, name, _width_on_map(state))
    return {"name": name.replace("_", " "), "words": MEANINGS[name], "formula": law}


def _width_on_map(state: State) -> int:
    """If the x axis is the width, every cell has an MLP, even when the cross has none."""
    return RANGES["width"][0] if state.x == "width" else state.values["width"]


@lru_cache(maxsize=32)
def _steps(name: str, count: int) -> np.ndarray:
    """Whole numbers over a size's range, even in the logarithm."""
    low, high = RANGES[name]
    return np.unique(np.geomspace(low, high, count).round())


def _label(name: str) -> str:
    return f"{LETTERS[name]}, {name}"


def _rounded(values: np.ndarray) -> list[list[float | None]]:
    rows = np.round(values, 3).tolist()
    return [[None if math.isnan(value) else value for value in row] for row in rows]


def warm_up() -> None:
    """Fill the tables that the first redraw would otherwise wait for."""
    as_json(read_state({}), moving=True)
    as_json(read_state({"width": 512}), moving=True)
