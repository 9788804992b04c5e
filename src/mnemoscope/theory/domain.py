"""Where each law of theory was checked against simulation: the one place that decides `valid`.

`DOMAINS` is a table with one row per law. `predict`, `critical`, `plan`, the explorer's maps and the
matched filter all consult it. To cover another law, add a row or split one:

- `about` says which settings the law covers: for each choice that matters, the values allowed. Rows
  of one measure must not overlap, and together they cover every setting that is derived
  (`tests/theory/test_domain.py` goes through all choices).
- `limits` are closed intervals of quantities listed in QUANTITIES. Each gives the reason why numbers
  outside are unreliable, with the quantity's value in place of `{value}`.
- `validated` is the command that checked the law within these limits. A law that was not checked, or
  that failed, has a `doubt` instead, and its numbers are never valid.
- `held` gives the sizes that the command ran. Limits mark where an approximation breaks down; beyond
  `held` a valid number is extrapolated in size, and `plan` says so.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from operator import attrgetter
from typing import Any, Literal

import numpy as np

from mnemoscope.spec import LETTERS, Retrieval, SpecError
from mnemoscope.spec.token_laws import UNIFORM
from mnemoscope.spec.validators import Measure
from mnemoscope.theory.registry import missing, underived
from mnemoscope.theory.spec_grid import Number, Sizes, SpecGrid
from mnemoscope.theory.trained.capacity import effective_inputs, load, seen_share

QUANTITIES: dict[str, tuple[tuple[str, ...], Callable[[Any], Number]]] = {
    **{letter: ((name,), attrgetter(name)) for name, letter in LETTERS.items()},
    "d - V": (("dim", "vocab"), lambda sizes: sizes.dim - sizes.vocab),
    "V/d": (("vocab", "dim"), lambda sizes: sizes.vocab / sizes.dim),
    "L/V": (("length", "vocab"), lambda sizes: sizes.length / sizes.vocab),
    "N/V": (("samples", "vocab"), lambda sizes: sizes.samples / sizes.vocab),
    "m/d": (("width", "dim"), lambda sizes: sizes.width / sizes.dim),
    "N/N_c": (("vocab", "dim", "samples", "width"), lambda sizes: _load(sizes)),
}
"""Quantities that limits refer to: the sizes each depends on, and its formula."""


def _load(sizes: Any) -> Number:
    """The facts seen, over those that the trained weights can hold."""

    def each(V: float, d: float, N: float, m: float) -> float:
        inputs = effective_inputs(int(d), int(m), sizes.activation)
        return load(V * seen_share(N, V), V, int(d), inputs, sizes.embedding)

    loads = np.vectorize(each, otypes=[float])(sizes.vocab, sizes.dim, sizes.samples, sizes.width)
    return float(loads) if np.ndim(loads) == 0 else loads


# Laws of accuracy that are not those of three steps with uniform tokens.
Law = Literal["trained", "frequencies"]


@dataclass(frozen=True)
class Limit:
    """A closed interval of one quantity, and why numbers outside are unreliable."""

    quantity: str
    low: float = -np.inf
    high: float = np.inf
    why: str = ""

    def holds(self, sizes: Sizes) -> Number:
        """Whether one setting, or each of many, is inside."""
        value = QUANTITIES[self.quantity][1](sizes)
        return (self.low <= value) & (value <= self.high)

    def reason(self, sizes: Sizes) -> str:
        """Why the number for this setting is unreliable."""
        return self.why.format(value=f"{QUANTITIES[self.quantity][1](sizes):.3g}")

    def __str__(self) -> str:
        if np.isinf(self.high):
            return f"{self.quantity} >= {self.low:g}"
        if np.isinf(self.low):
            return f"{self.quantity} <= {self.high:g}"
        return f"{self.low:g} <= {self.quantity} <= {self.high:g}"


@dataclass(frozen=True)
class Domain:
    """The row of one law."""

    law: str
    measure: Measure | Law
    about: Mapping[str, tuple[str, ...]]
    limits: tuple[Limit, ...] = ()
    validated: str = ""
    doubt: str = ""
    held: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    def is_about(self, choices: Mapping[str, str]) -> bool:
        """Whether the law covers settings with these choices; missing choices may be anything."""
        return all(choices[name] in values for name, values in self.about.items() if name in choices)

    def doubts(self, spec: Sizes) -> Iterator[str]:
        """Why the law's numbers for a setting are unreliable; nothing inside the domain."""
        if self.doubt:
            yield self.doubt
        for limit in self.limits:
            if not np.all(limit.holds(spec)):
                yield limit.reason(spec)

    def holds(self, cells: SpecGrid) -> np.ndarray:
        """Which of many settings are in the domain."""
        held = np.full(np.shape(cells.vocab), not self.doubt)
        for limit in self.limits:
            held &= limit.holds(cells)
        return held

    def was_run(self, spec: Sizes) -> bool:
        """Whether the setting's sizes are within those that were run."""
        return all(low <= QUANTITIES[name][1](spec) <= high for name, (low, high) in self.held.items())

    def as_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON; an open end is None."""

        def end(value: float) -> float | None:
            return None if np.isinf(value) else value

        return {
            "law": self.law,
            "measure": self.measure,
            "about": {name: list(values) for name, values in self.about.items()},
            "limits": [
                {"quantity": limit.quantity, "low": end(limit.low), "high": end(limit.high), "why": limit.why}
                for limit in self.limits
            ],
            "validated": self.validated or None,
            "doubt": self.doubt or None,
            "held": {name: list(ends) for name, ends in self.held.items()},
        }


RANDOM = ("gaussian", "sphere")
BARE, MLP = ("attention-only",), ("attention-MLP",)
TOKENS = Limit("V", low=64, why="fewer than 64 tokens: averages over the vocabulary are rough")
DIMENSIONS = Limit("d", low=12, why="fewer than 12 dimensions: overlaps are far from normal")
SAMPLES = Limit("N", low=200, why="fewer than 200 samples: counts are far from their means")
USUAL = (TOKENS, DIMENSIONS, SAMPLES)
# The ranges of `for_accuracy`, `for_spread` and `for_mlp` in experiments/validation/drawn_settings.py.
RUN = {"V": (128, 1024), "d": (12, 512), "L": (8, 256), "N/V": (0.7, 150)}
FRAME_RUN = {"V": (64, 512), "L": (4, 64), "N/V": (0.7, 60)}
MLP_RUN = {"V": (64, 384), "d": (16, 192), "L": (4, 32), "N/V": (2, 80), "m": (64, 2048)}
MLP_DIMENSIONS = Limit("d", low=16, why="fewer than 16 dimensions with an MLP: overlaps are far from normal")
UNITS = Limit("m", low=64, why="fewer than 64 hidden units: a query hangs on a handful of them")
SHARE = Limit(
    "L/V",
    high=0.2,
    why="L/V = {value} with an MLP: a sequence holds a token twice too often, and attention comes out up to 0.17 low",
)
SPHERE_SHARE = Limit(
    "L/V", high=0.2, why="L/V = {value} on the sphere: attention came out up to 0.23 lower than in simulation"
)

# The ranges of `for_frequencies`.
FREQUENCIES_RUN = {"V": (64, 512), "d": (12, 256), "L": (2, 64), "N": (500, 30_000)}
TRAINED_RUN = {"V": (64, 220), "d": (12, 64), "L": (4, 48), "N/V": (1.5, 25)}
SHOWN = Limit("N/V", low=1.5, why="{value} samples a token: training stores part of them by their noise")
STORED = Limit(
    "N/N_c",
    high=0.9,
    why="{value} times the facts that the values can hold: near 1 and above, attention, too, chooses among them; "
    "accuracy lies between that of values trained alone, which is given, and the interval's upper end",
)

_ACCURACY = partial(Domain, measure="accuracy")
_ATTENTION = partial(_ACCURACY, limits=USUAL, validated="mnemoscope validate accuracy", held=RUN)
_FRAME = partial(_ACCURACY, validated="mnemoscope validate spread", held=FRAME_RUN)
_MLP = partial(_ACCURACY, validated="mnemoscope validate mlp", held=MLP_RUN)
_MATCHED = partial(Domain, measure="first_gradient")
# The end of training, in place of three steps; and three steps where tokens are not equally frequent.
TRAINED: Literal["trained"] = "trained"
FREQUENCIES: Literal["frequencies"] = "frequencies"
TRIGGER_FITS = Limit(
    "d - V", low=1, why="no room for the trigger beside the tokens: their overlaps with it are left out of (B9)"
)
SHORT = Limit(
    "L",
    high=8,
    why="L = {value} with hermite2: attention hangs on the embeddings' "
    "mean and on label counts, which a seed draws once; held up to 8",
)
SMOOTH = ("hermite3", "relu", "gelu", "tanh")

DOMAINS = (
    _ATTENTION("attention-only, keys", about={"model": BARE, "embedding": ("gaussian",), "trigger": ("keys",)}),
    _ATTENTION("attention-only, additive", about={"model": BARE, "embedding": ("gaussian",), "trigger": ("additive",)}),
    _ATTENTION(
        "attention-only, sphere", about={"model": BARE, "embedding": ("sphere",)}, limits=(*USUAL, SPHERE_SHARE)
    ),
    _FRAME(
        "attention-only, orthonormal, keys",
        about={"model": BARE, "embedding": ("orthonormal",), "trigger": ("keys",)},
        limits=(TOKENS, SAMPLES),
    ),
    _FRAME(
        "attention-only, orthonormal, additive",
        about={"model": BARE, "embedding": ("orthonormal",), "trigger": ("additive",)},
        limits=(TOKENS, SAMPLES, TRIGGER_FITS),
    ),
    _MLP(
        "attention-MLP",
        about={"model": MLP, "embedding": RANDOM, "activation": SMOOTH},
        limits=(TOKENS, MLP_DIMENSIONS, SAMPLES, UNITS, SHARE),
    ),
    _MLP(
        "attention-MLP, hermite2",
        about={"model": MLP, "activation": ("hermite2",), "trigger": ("keys",)},
        limits=(TOKENS, MLP_DIMENSIONS, SAMPLES, UNITS, SHORT),
    ),
    _ACCURACY(
        "attention-MLP, hermite2, additive",
        about={"model": MLP, "activation": ("hermite2",), "trigger": ("additive",)},
        doubt="hermite2 with the trigger in the values: the trigger's weight is a difference of "
        "two terms of like size (C4), and accuracy comes out up to 0.14 off",
    ),
    _MLP(
        "attention-MLP, orthonormal",
        about={"model": MLP, "embedding": ("orthonormal",), "activation": SMOOTH},
        limits=(TOKENS, SAMPLES, UNITS),
        held={**MLP_RUN, "d": (64, 576)},
    ),
    _ACCURACY(
        "attention-MLP, linear",
        about={"model": MLP, "activation": ("linear",)},
        doubt="an MLP that is linear: not held against simulation",
    ),
    # (D4). Larger vocabularies are inside, too: what is left out of it falls as 1/V and 1/d.
    _MATCHED(
        "matched filter (D4)",
        about={"model": BARE, "embedding": RANDOM, "trigger": ("keys",)},
        limits=(
            Limit("V", low=32, why="fewer than 32 tokens: sums over labels are not close to their means"),
            Limit("d", low=5, why="fewer than 5 dimensions: overlaps are far from normal"),
            Limit("V/d", 1 / 4, 16.0, "V/d = {value}: (D4) was held against simulation from 1/4 to 16"),
            Limit("L/V", high=2.0, why="L/V = {value}: (D4) was held against simulation up to 2"),
        ),
        validated="mnemoscope validate matched",
        held={"V": (32, 2048)},
    ),
    _MATCHED(
        "matched filter, attention-MLP", about={"model": MLP}, doubt="an MLP changes the scores: (D4) is attention-only"
    ),
    _MATCHED(
        "matched filter, additive",
        about={"model": BARE, "trigger": ("additive",)},
        doubt="a trigger in the values adds to every score: (D4) has it in the keys alone",
    ),
    _MATCHED(
        "matched filter, orthonormal",
        about={"model": BARE, "trigger": ("keys",), "embedding": ("orthonormal",)},
        doubt="orthonormal embeddings are not derived: (D4) is for gaussian and sphere",
    ),
    # (T10).
    Domain(
        "end of training, attention-only",
        TRAINED,
        about={"model": BARE, "trigger": ("keys",)},
        limits=(TOKENS, SHOWN, STORED),
        validated="mnemoscope validate trained",
        held=TRAINED_RUN,
    ),
    Domain(
        "end of training, additive",
        TRAINED,
        about={"model": BARE, "trigger": ("additive",)},
        doubt="a trigger in the values: its training was not held against simulation",
    ),
    Domain(
        "end of training, attention-MLP",
        TRAINED,
        about={"model": MLP},
        doubt="an MLP: N_c was held against exact solutions, but not the whole model's training",
    ),
    # (Z17).
    Domain(
        "frequencies of tokens, attention-only",
        FREQUENCIES,
        about={"model": BARE, "trigger": ("keys",), "embedding": RANDOM},
        limits=USUAL,
        validated="mnemoscope validate frequencies",
        held=FREQUENCIES_RUN,
    ),
    Domain(
        "frequencies of tokens, orthonormal",
        FREQUENCIES,
        about={"model": BARE, "trigger": ("keys",), "embedding": ("orthonormal",)},
        limits=(TOKENS, SAMPLES, TRIGGER_FITS),
        validated="mnemoscope validate frequencies",
        held={**FREQUENCIES_RUN, "d": (65, 768)},
    ),
)


# The spec field behind each choice.
OPTIONS = {"model": "width", **{name: name for name in ("activation", "embedding", "trigger", "attention")}}


def choices_of(sizes: Sizes) -> dict[str, str]:
    """A setting's choices, under the names that rows use."""
    names = ("embedding", "trigger", "attention", *(["activation"] if sizes.hidden else []))
    return {"model": (MLP if sizes.hidden else BARE)[0], **{name: getattr(sizes, name) for name in names}}


def domain_of(sizes: Sizes, measure: Measure | Law = "accuracy") -> Domain | None:
    """The row of the law behind a prediction; None where nothing is derived."""
    # Attention accuracy comes from the same derivation as accuracy.
    kind = "accuracy" if measure == "attention_accuracy" else measure
    choices = choices_of(sizes)
    return next((row for row in DOMAINS if row.measure == kind and row.is_about(choices)), None)


def inside(cells: SpecGrid, measure: Measure | Law = "accuracy") -> np.ndarray:
    """Which of many settings have valid numbers."""
    row = domain_of(cells, measure)
    return np.zeros(np.shape(cells.vocab), bool) if row is None else row.holds(cells)


def doubts(spec: Sizes, measure: Measure | Law = "accuracy") -> list[str]:
    """Why the number for a setting is unreliable; empty inside the law's domain."""
    row = domain_of(spec, measure)
    if row is not None:
        return list(row.doubts(spec))
    return [missing(spec)[1] or "no law is about this setting: it was not held against simulation"]


def domains_with(spec: Retrieval, given: Collection[str]) -> list[Domain]:
    """The laws whose domains contain a setting, judged by the fields in `given` alone.

    Without any, a `SpecError` names the field that no law allows, and says why.
    """
    if not given:
        return list(DOMAINS)
    option, why = underived(spec)
    if option:
        raise _outside(spec, option, why)
    known = {name: value for name, value in choices_of(spec).items() if OPTIONS[name] in given}
    valid: list[Domain] = []
    outside: list[tuple[str, str]] = []
    # Laws of uniform tokens hold for those alone, and the laws of frequencies for all others.
    uneven = spec.tokens != UNIFORM
    fits = (row for row in DOMAINS if "tokens" not in given or (row.measure == FREQUENCIES) == uneven)
    for row in (row for row in fits if row.is_about(known)):
        broken = [
            limit for limit in row.limits if set(QUANTITIES[limit.quantity][0]) <= set(given) and not limit.holds(spec)
        ]
        if row.doubt:
            chosen = [OPTIONS[name] for name in row.about if OPTIONS[name] in given]
            outside.append(([*given, *chosen][-1], row.doubt))
        elif broken:
            outside.append((QUANTITIES[broken[0].quantity][0][0], broken[0].reason(spec)))
        else:
            valid.append(row)
    if not valid:
        raise _outside(spec, *outside[0])
    return valid


def _outside(spec: Retrieval, option: str, why: str) -> SpecError:
    return SpecError(option, f"expected a setting in the domain of a law, got {getattr(spec, option)!r}: {why}")
