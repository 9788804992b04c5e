"""`predict`: what a setting will do, and why, without running it.

>>> prediction = predict(Retrieval(vocab=512, dim=128, length=16, samples=16_000))
>>> prediction.regime
'interference'
"""

import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib import import_module
from typing import Any, cast

import numpy as np

from mnemoscope.spec import Retrieval, Spec
from mnemoscope.spec.summary import Shown, Summary, brief, number
from mnemoscope.spec.token_laws import UNIFORM
from mnemoscope.theory.attention import Attention, attention_terms, lift_over_seeds
from mnemoscope.theory.domain import doubts
from mnemoscope.theory.kernel import Kernel, kernel
from mnemoscope.theory.recall import Recall
from mnemoscope.theory.registry import derived_laws, embedding_law, kind_not_derived, not_derived
from mnemoscope.theory.seeds import interval
from mnemoscope.theory.spec_grid import Number, Sizes
from mnemoscope.theory.stated import note_on, stand_in

# What each regime means. The first seven are noises of attention, the next three of the map.
REGIMES = {
    "overlap": "the trigger's overlap with the tokens hides it",
    "mean_bias": "the embeddings' common mean, through uneven label counts, draws attention",
    "label_noise": "uneven label counts and chance meetings of tokens draw attention",
    "gradient_noise": "chance meetings of tokens and labels, through overlaps, draw attention",
    "count_noise": "tokens that were seen more often draw attention",
    "label_and_count": "tokens of more frequent labels draw attention",
    "frequent_tokens": "tokens that occur often score higher than the informative one",
    "interference": "stored pairs disturb each other in d dimensions",
    "mlp_noise": "too few hidden units: their random features disturb each other",
    "unseen": "many tokens were never the informative one",
    "recall": "attention finds the token, and the map names it",
    "none": "not derived for this setting",
}
RECALLED = 0.9


@dataclass(frozen=True, repr=False)
class Prediction(Shown):
    """What theory predicts for one setting.

    95 % of seeds lie between `low` and `high`, which are computed when they are first asked for:
    they take most of the time. `terms` gives each noise's standard deviation over
    the signal. `valid` is False outside the domain in which the law was checked against simulation
    (`theory/domain.py`); `notes` says why. The numbers are then None, or less reliable.
    """

    spec: Any
    accuracy: float | None
    attention_accuracy: float | None
    regime: str
    terms: dict[str, float]
    valid: bool
    notes: tuple[str, ...]
    solved: tuple[Attention, Recall] | None = field(default=None, repr=False, compare=False)
    # The setting that the numbers are for, if the law of `spec` only states its moments.
    stand_in: Retrieval | None = field(default=None, repr=False, compare=False)

    @cached_property
    def _interval(self) -> tuple[float, float] | tuple[None, None]:
        return (None, None) if self.solved is None else interval(self.stand_in or self.spec, *self.solved)

    @property
    def low(self) -> float | None:
        """The accuracy that 2.5 % of seeds stay below."""
        return self._interval[0]

    @property
    def high(self) -> float | None:
        """The accuracy that 2.5 % of seeds are above."""
        return self._interval[1]

    def summary(self) -> Summary:
        """Accuracy and what limits it, then each noise over the signal."""
        rows = sorted(self.terms.items(), key=lambda term: -term[1])
        return Summary(
            f"{brief(self.spec)}, theory",
            {
                "accuracy": number(self.accuracy),
                "attention": number(self.attention_accuracy),
                "regime": self.regime.replace("_", " "),
                "valid": "yes" if self.valid else "no",
            },
            ("noise", "over the signal"),
            tuple((name.replace("_", " "), number(size)) for name, size in rows),
            "; ".join(self.notes),
        )

    def as_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        return {
            "spec": self.spec.model_dump(),
            "accuracy": self.accuracy,
            "interval": {"low": self.low, "high": self.high},
            "attention_accuracy": self.attention_accuracy,
            "regime": self.regime,
            "terms": self.terms,
            "valid": self.valid,
            "notes": list(self.notes),
        }


@dataclass(frozen=True, repr=False)
class PredictionWithEnds(Prediction):
    """A prediction whose interval over seeds is known with it, not computed when it is asked for."""

    ends: tuple[float, float] | tuple[None, None] = (None, None)

    @property
    def low(self) -> float | None:
        """The accuracy that 2.5 % of seeds stay below."""
        return self.ends[0]

    @property
    def high(self) -> float | None:
        """The accuracy that 2.5 % of seeds are above."""
        return self.ends[1]


def predict(spec: Spec, *, trained: bool = False) -> Prediction:
    """Accuracy, attention accuracy, and what limits them, from the spec alone.

    After the three steps; with `trained`, once training has come to its end (`theory/trained`).
    """
    if not derived_laws(spec.kind):
        return Prediction(spec, None, None, "none", {}, False, (kind_not_derived(spec.kind),))
    spec = cast(Retrieval, spec)
    if trained:
        # Imported late: it builds on this module.
        return import_module("mnemoscope.theory.trained.predict").predict_trained(spec)
    stated, other = note_on(spec), stand_in(spec)
    if other != spec:
        told = predict(other)
        return replace(told, spec=spec, valid=False, notes=(stated, *told.notes), stand_in=other)
    unknown = stated or not_derived(spec)
    if unknown:
        return Prediction(spec, None, None, "none", {}, False, (unknown,))
    if spec.tokens != UNIFORM:
        return import_module("mnemoscope.theory.frequencies.predict").predict_frequencies(spec)
    attention, recall = solve(spec)
    # A covariance may be negative; its root keeps the sign.
    terms = {name: math.copysign(math.sqrt(abs(value)), float(value)) for name, value in attention.terms.items()}
    terms |= {name: float(value) for name, value in map_noise(spec).items()}
    notes = tuple(doubts(spec))
    return Prediction(
        spec=spec,
        accuracy=recall.accuracy,
        attention_accuracy=recall.attention_accuracy,
        regime=_regime(spec, attention, recall),
        terms=terms,
        valid=not notes,
        notes=notes,
        solved=(attention, recall),
    )


def solve(spec: Retrieval) -> tuple[Attention, Recall]:
    """Attention, and recall given that attention, where tokens are uniform."""
    attention = Attention(0.0, {}) if spec.attention == "locked" else attention_terms(spec)
    return attention, Recall(spec, lift_over_seeds(spec, attention))


def map_noise(spec: Sizes, overlaps: Kernel | None = None) -> dict[str, Number]:
    """Standard deviation of a wrong logit over the right one, under perfect attention (B4).

    Without an MLP it is all interference; with one, the noise of finite width is counted apart.
    `overlaps` spares computing the kernel again.
    """
    if not (embedding_law(spec.embedding).overlapping or spec.hidden):
        return {"interference": 0.0}
    V, d, n = spec.vocab, spec.dim, spec.samples / spec.vocab
    pairs = 1 + 1 / n  # E n^2 / (E n)^2
    overlaps = overlaps or kernel(spec)
    own, mean, variance = overlaps.averages()
    through = (V / d + 1) / own**2
    leak = mean**2 / n * through
    noises: dict[str, Number] = {"interference": np.sqrt(overlaps.interference * pairs * through + leak + 1 / d)}
    if spec.hidden:
        noises["mlp_noise"] = np.sqrt(np.maximum(variance - overlaps.interference, 0.0) * pairs * through)
    return noises


def regime_of(spec: Retrieval) -> str:
    """What limits a setting that theory covers; cheaper than all of `predict`."""
    if spec.tokens != UNIFORM:
        frequencies = import_module("mnemoscope.theory.frequencies.predict")
        return frequencies.regime(spec, frequencies.solve(spec))
    return _regime(spec, *solve(spec))


def _regime(spec: Retrieval, attention: Attention, recall: Recall) -> str:
    if recall.accuracy >= RECALLED:
        return "recall"
    attended = recall.attention_accuracy
    named = recall.accuracy / attended if attended else 0.0
    if attended > named and math.exp(-spec.samples / spec.vocab) > (1 - named) / 2:
        return "unseen"
    noises = attention.terms if attended <= named else map_noise(spec)
    return max(noises, key=lambda name: noises[name])
