r"""`predict --trained`: what the model does once training has come to its end.

    accuracy = coverage * attention * storage                                                      (T10)

Coverage is the share of tokens that were ever informative, 1 - (1 - 1/V)^N (T11). Storage is the share of those that
the values hold: V * coverage items among V labels in m inputs of d outputs (`overload.py`). Attention is that of the
trained model (`attention.py`).

Above N_c attention and values share the shortage: training lowers the scores of some tokens, which then are rarely
learned, and keeps room for the others. (T10) has no such choice and is a lower end. The upper end is a memory that
holds exactly N_c of the items, a share 1/load of them.
"""

import math
from dataclasses import dataclass, replace
from typing import Any, Literal

from mnemoscope.spec import Retrieval, SpecError
from mnemoscope.spec.summary import Summary
from mnemoscope.theory.domain import doubts
from mnemoscope.theory.limits import TRAINED
from mnemoscope.theory.predict import RECALLED, PredictionWithEnds
from mnemoscope.theory.registry import not_derived
from mnemoscope.theory.trained.attention import FOUND, attended_share
from mnemoscope.theory.trained.capacity import critical_items, effective_inputs, load, seen_share
from mnemoscope.theory.trained.overload import stored_share
from mnemoscope.theory.trained.steps import steps_needed

Binding = Literal["unseen", "attention", "storage", "steps"]

BINDINGS: dict[str, str] = {
    "unseen": "many tokens were never the informative one",
    "attention": "attention does not find the informative token",
    "storage": "more facts than the weights can hold",
    "steps": "training stops before its end",
}
# 95 % of a normal law lie within so many standard deviations.
NORMAL_95 = 1.96


@dataclass(frozen=True, repr=False)
class TrainedPrediction(PredictionWithEnds):
    """What theory predicts for the end of training.

    `terms` has what coverage, attention and storage take away, and the load N/N_c. `capacity` is N_c, the facts that
    the weights can hold, and `steps` how many AdamW takes to store them. `binding` is what takes most away, even where
    that is little.
    """

    binding: Binding | None = None
    capacity: float | None = None
    steps: int | None = None

    def summary(self) -> Summary:
        """Accuracy, what binds, what the weights hold, and what each part takes away."""
        summary = super().summary()
        binds = {
            "binding": self.binding or "–",
            "capacity": "–" if self.capacity is None else f"{self.capacity:,.0f} facts",
        }
        title = f"{summary.title} of the end of training"
        return replace(summary, title=title, numbers=summary.numbers | binds, columns=("part", "lost"))

    def as_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        added = {"trained": True, "binding": self.binding, "capacity": self.capacity, "steps_needed": self.steps}
        return super().as_dict() | added


def check_trained(spec: Retrieval) -> None:
    """Refuse options that only the three steps have."""
    for name in ("eta", "gamma"):
        size = getattr(spec, name)
        if size != "limit":
            raise SpecError(name, f"expected 'limit' for a trained model, whose end has no step size, got {size:g}")
    if spec.attention == "locked":
        raise SpecError("attention", "expected learned for a trained model, whose attention is trained, got locked")


def predict_trained(spec: Retrieval) -> TrainedPrediction:
    """The end of training, from the spec alone; where `then` is given, `steps` says whether training gets there."""
    check_trained(spec)
    unknown = not_derived(spec.three_steps(), trained=True)
    if unknown:
        return TrainedPrediction(spec, None, None, "none", {}, False, (unknown,))
    seen, stored, attended, at = coverage(spec), stored_of(spec), attended_share(spec), load_of(spec)
    accuracy, steps = seen * attended * stored, steps_needed(spec)
    lost: dict[Binding, float] = {"unseen": 1 - seen, "attention": 1 - attended, "storage": 1 - stored}
    terms = {**lost, "load": at}
    notes = list(doubts(spec, TRAINED))
    if attended < FOUND:
        notes.append(
            f"after three steps attention is right in only {attended:.2f} of the sequences: what training makes of "
            "that differs from seed to seed, and no law is known"
        )
    if spec.label_noise or spec.weight_decay:
        notes.append("label noise and weight decay are not derived: the law is for right labels, and the loss alone")
    if spec.then != "none" and steps is not None and steps > spec.steps:
        notes.append(f"training takes about {steps:,} steps, and stops after {spec.steps:,}")
        lost["steps"] = 1.0
    binding = max(lost, key=lambda name: lost[name])
    return TrainedPrediction(
        spec=spec,
        accuracy=accuracy,
        attention_accuracy=attended,
        regime="recall" if accuracy >= RECALLED else binding,
        terms=terms,
        valid=not notes,
        notes=tuple(notes),
        binding=binding,
        capacity=critical_items(spec.dim, inputs_of(spec), spec.embedding, spec.vocab),
        steps=steps,
        ends=_interval(spec, seen, attended, at),
    )


def accuracy_of(spec: Retrieval) -> float:
    """The accuracy alone, for searches and maps."""
    return coverage(spec) * attended_share(spec) * stored_of(spec)


def coverage(spec: Retrieval) -> float:
    """(T11): the share of tokens that were ever informative."""
    return seen_share(spec.samples, spec.vocab)


def inputs_of(spec: Retrieval) -> int:
    """The inputs of the values that are linearly independent."""
    return effective_inputs(spec.dim, spec.width, spec.activation)


def load_of(spec: Retrieval) -> float:
    """N/N_c of the tokens seen."""
    return load(spec.vocab * coverage(spec), spec.vocab, spec.dim, inputs_of(spec), spec.embedding)


def stored_of(spec: Retrieval, *, items: float | None = None, top: int = 1, shift: float = 0.0) -> float:
    """The share of the tokens seen whose label the values name when attention is right."""
    items = spec.vocab * coverage(spec) if items is None else items
    rate = spec.samples / spec.vocab
    return stored_share(items, spec.vocab, spec.dim, inputs_of(spec), spec.embedding, rate, top, shift)


def _interval(spec: Retrieval, seen: float, attended: float, at: float) -> tuple[float, float]:
    """95 % of seeds: how many tokens are seen, the load at which items are lost, and which items those are."""
    V, unseen = spec.vocab, math.exp(-spec.samples / spec.vocab)
    # The number of tokens never drawn has variance V e^-r (1 - (1 + r) e^-r), r = N/V, as in an occupancy problem.
    spread = math.sqrt(V * max(0.0, unseen * (1 - (1 + spec.samples / V) * unseen)))
    ends = []
    for side in (-1.0, 1.0):
        items = min(float(V), max(1.0, V * seen + side * NORMAL_95 * spread))
        stored = stored_of(spec, items=items, shift=-side * NORMAL_95)
        if side > 0 and at > 1:
            stored = max(stored, 1 / at)
        scatter = NORMAL_95 * math.sqrt(max(0.0, stored * (1 - stored)) / items)
        ends.append(items / V * attended * min(1.0, max(0.0, stored + side * scatter)))
    low, high = sorted(ends)
    return low, high
