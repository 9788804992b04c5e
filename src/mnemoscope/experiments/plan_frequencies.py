"""What a budget recalls of facts that are not equally frequent: those rarer than some frequency are lost.

Three steps recall frequent facts and lose rare ones: a rare pair was stored a few times, and drowns among pairs that
were stored often. The whole budget is spent, parameters on 2 d^2 and tokens on N L.
"""

import math
from dataclasses import dataclass
from typing import Any

from mnemoscope.experiments.plan_laws import Training
from mnemoscope.spec import Retrieval, SpecError
from mnemoscope.spec.token_laws import UNIFORM
from mnemoscope.theory.frequencies.predict import FrequencyPrediction, Rank, predict_frequencies


@dataclass(frozen=True)
class FrequencyPlan:
    """What a budget keeps: facts are kept as far as all more frequent ones have a recall of at least `target`."""

    target: float
    prediction: FrequencyPrediction

    @property
    def kept(self) -> tuple[Rank, ...]:
        """Facts that are kept, by rank."""
        kept = []
        for rank in self.prediction.ranks:
            if rank.recall < self.target:
                break
            kept.append(rank)
        return tuple(kept)

    @property
    def facts(self) -> int:
        """How many are kept."""
        return self.kept[-1].last if self.kept else 0

    @property
    def asked(self) -> float:
        """The share of sequences that ask for one of them."""
        return sum(rank.probability * (rank.last - rank.first + 1) for rank in self.kept)

    def as_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        spec, kept = self.prediction.spec, self.kept
        rarest = kept[-1].probability if kept else None
        return {
            **self.prediction.as_dict(),
            "target": self.target,
            "facts": spec.vocab,
            "kept": self.facts,
            "lost": spec.vocab - self.facts,
            "rarest_kept": rarest,
            "samples_of_rarest": None if rarest is None else spec.samples * rarest,
            "asked": self.asked,
        }


def plan_frequencies(
    frequencies: str,
    length: int,
    target: float,
    *,
    facts: int | None,
    parameters: float | None,
    tokens: float | None,
    training: Training,
) -> FrequencyPlan:
    """What these parameters and training tokens keep of facts with these frequencies."""
    if training != "three-steps":
        raise SpecError("training", f"expected three-steps with --frequencies, the only one derived, got {training!r}")
    for name, value in {"parameters": parameters, "tokens": tokens}.items():
        if value is None:
            raise SpecError(name, "expected a budget with --frequencies, got none")
    assert parameters is not None
    assert tokens is not None
    dim, samples = math.isqrt(int(parameters / 2)), int(tokens / length)
    if dim < 2:
        raise SpecError("parameters", f"expected at least 8, which make d = 2, got {parameters:g}")
    if samples < 1:
        raise SpecError("tokens", f"expected at least one sequence of {length:,}, got {tokens:g}")
    setting = {"dim": dim, "length": length, "samples": samples, "tokens": frequencies}
    if facts is not None:
        setting["vocab"] = facts
    elif not frequencies.startswith("file:"):
        raise SpecError("facts", f"expected how many facts have frequencies by {frequencies}, got none")
    try:
        spec = Retrieval.read(setting)
    except SpecError as error:
        raise SpecError("frequencies" if error.field == "tokens" else error.field, error.message) from None
    if spec.tokens == UNIFORM:
        raise SpecError("frequencies", f"expected zipf:A above 0 or file:PATH, got {frequencies!r}")
    return FrequencyPlan(target, predict_frequencies(spec))
