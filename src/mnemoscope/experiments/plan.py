r"""What a job needs, and what a budget buys.

A job is V facts (as many tokens, each with its label), hidden among L tokens, recalled with a
target accuracy. What it takes is a trade-off: a larger d, or an MLP, needs fewer samples.

    parameters   d^2 of attention, d^2 of the values, or d m with an MLP
    tokens       N L
    bits         log2 V!, what the map holds

Which option to prefer is our choice: the least parameters x tokens, to which the cost of training
is proportional. `plan_search` finds the options.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from mnemoscope.experiments.estimate.estimate import Estimate
from mnemoscope.experiments.estimate.intervals import mean_interval
from mnemoscope.experiments.plan_search import MOST_FACTS, NEARLY, SHAPES, Budget, all_ways, most_facts, nearly_as_many
from mnemoscope.spec import Retrieval, SpecError
from mnemoscope.store.trials import Store
from mnemoscope.theory.bound import coverage_samples, first_gradient_samples
from mnemoscope.theory.domain import domain_of
from mnemoscope.theory.predict import REGIMES, Prediction, predict, regime_of

Basis = Literal["theory", "measured", "extrapolated"]


@dataclass(frozen=True)
class Option:
    """One way to do a job: a setting, theory's prediction, and the mean over the store's trials of it."""

    spec: Retrieval
    prediction: Prediction
    measured: Estimate

    @property
    def parameters(self) -> int:
        """d^2 + d^2, or d^2 + d m with an MLP. Embeddings are not trained."""
        d = self.spec.dim
        return d**2 + d * (self.spec.width or d)

    @property
    def tokens(self) -> int:
        """N L."""
        return self.spec.samples * self.spec.length

    @property
    def cost(self) -> float:
        """What training costs, up to a factor."""
        return float(self.parameters) * self.tokens

    def misses(self, target: float) -> bool:
        """Whether it was measured below the target, by more than its interval."""
        return self.measured.high is not None and self.measured.high < target

    @property
    def basis(self) -> Basis:
        """Where its accuracy comes from."""
        if self.measured.status == "found":
            return "measured"
        row = domain_of(self.spec)
        inside = self.prediction.valid and row is not None and row.was_run(self.spec)
        return "theory" if inside else "extrapolated"

    @cached_property
    def binding(self) -> str:
        """What would give way first with fewer samples."""
        spec = self.spec
        while spec.samples > 1:
            spec = spec.replace(samples=max(1, round(spec.samples * 0.6)))
            regime = regime_of(spec)
            if regime != "recall":
                return regime
        return "unseen"

    def as_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        spec, prediction = self.spec, self.prediction
        bits = map_bits(spec.vocab)
        return {
            "facts": spec.vocab,
            "dim": spec.dim,
            "width": spec.width,
            "activation": spec.activation if spec.width else None,
            "samples": spec.samples,
            "length": spec.length,
            "parameters": self.parameters,
            "tokens": self.tokens,
            "bits": bits,
            "bits_per_parameter": bits / self.parameters,
            "accuracy": prediction.accuracy,
            "low": prediction.low,
            "high": prediction.high,
            "measured": self.measured.ends("mean") if self.measured.status == "found" else None,
            "basis": self.basis,
            "binding": self.binding,
            "law": REGIMES[self.binding],
            "first_gradient_bound": first_gradient_samples(spec, prediction.accuracy or 0.0),
            "coverage_bound": coverage_samples(spec, prediction.accuracy or 0.0),
        }


@dataclass(frozen=True)
class Plan:
    """The option we would take, and the others. If nothing will do, the notes say why."""

    recommended: Option | None
    alternatives: tuple[Option, ...]
    notes: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        best = self.recommended
        return {
            "recommended": None if best is None else best.as_dict(),
            "alternatives": [option.as_dict() for option in self.alternatives],
            "basis": None if best is None else best.basis,
            "notes": list(self.notes),
        }


def map_bits(vocab: int) -> float:
    """log2 V!: what a permutation of V labels holds."""
    return math.lgamma(vocab + 1) / math.log(2)


def plan_job(
    facts: int,
    length: int,
    target: float,
    *,
    parameters: float | None = None,
    tokens: float | None = None,
    store: Store | None = None,
) -> Plan:
    """What it takes to recall so many facts, within a budget of parameters and tokens if given."""
    budget = _read_budget(length, target, parameters, tokens)
    options = _options(all_ways(facts, length, target, budget), store)
    enough = [option for option in options if not option.misses(target)]
    if not enough:
        unlimited = budget._replace(parameters=None)
        beyond = [] if unlimited == budget else _options(all_ways(facts, length, target, unlimited), store)
        return Plan(None, tuple(_by_size(beyond)), tuple(_why_none(beyond, budget)))
    best = min(enough, key=lambda option: option.cost)
    others = [option for option in enough if option is not best]
    why = "the least parameters x tokens, which training cost goes with (our choice)"
    return Plan(best, tuple(_by_size(others)), tuple(_notes(best, why)))


def plan_budget(
    length: int,
    target: float,
    *,
    parameters: float | None = None,
    tokens: float | None = None,
    store: Store | None = None,
) -> Plan:
    """The most facts that so many parameters can recall after so many tokens."""
    budget = _read_budget(length, target, parameters, tokens)
    if budget == Budget():
        raise SpecError("facts", "expected facts, or a budget of parameters or tokens, got none")
    if tokens is not None and tokens < length:
        return Plan(None, (), (f"fewer tokens than one sequence of {length:,} has",))
    options = _options((spec for shape in SHAPES if (spec := most_facts(length, shape, target, budget))), store)
    enough = [option for option in options if not option.misses(target)]
    if not enough:
        text = f"no number of facts from 2 to {MOST_FACTS:,} is recalled with accuracy {target:g}"
        if options:
            text = f"theory finds a way, but what the store has of it misses accuracy {target:g}"
        return Plan(None, (), (text,))
    best = max(enough, key=lambda option: option.spec.vocab)
    why = "the most facts for this budget"
    if parameters is None:
        # Any d is within the budget: of those that hold as many facts, the one that costs least.
        as_many = _options(all_ways(best.spec.vocab, length, target, budget), store)
        best = min([best, *(option for option in as_many if not option.misses(target))], key=lambda option: option.cost)
    if tokens is None:
        # The last facts would take samples without end: a few less are recommended, the most stay
        # among the alternatives.
        less = nearly_as_many(best.spec, target, budget)
        if less is not None:
            (best,) = _options([less], store)
            why = f"{NEARLY:.0%} of the most facts, since the last ones take samples without end"
    if max(option.spec.vocab for option in enough) >= MOST_FACTS:
        why = f"more facts than {MOST_FACTS:,} are not looked at; the budget may hold them"
    others = tuple(option for option in enough if option is not best)
    return Plan(best, others, tuple(_notes(best, why)))


def _options(specs: Iterable[Retrieval], store: Store | None) -> list[Option]:
    """What theory says of each setting, and what the store has measured."""
    options = []
    for spec in dict.fromkeys(specs):
        trials = [] if store is None else store.find("id = ?", (spec.id,))
        accuracies = [trial.accuracy for trial in trials if trial.accuracy is not None]
        options.append(Option(spec, predict(spec), mean_interval(accuracies, float(spec.test_samples))))
    return options


def _by_size(options: Sequence[Option]) -> list[Option]:
    return sorted(options, key=lambda option: option.parameters)


def _notes(best: Option, why: str) -> Iterator[str]:
    yield f"recommended: {why}"
    if best.basis == "extrapolated":
        yield "extrapolated: sizes beyond those that theory was held against simulation on"
    yield from best.prediction.notes


def _why_none(options: Sequence[Option], budget: Budget) -> Iterator[str]:
    if not options:
        within = " within these tokens" if budget.tokens is not None else " that was looked at"
        yield f"no size{within} reaches the target"
        return
    yield "nothing within the budget; the alternatives are what it would take"
    yield f"the fewest parameters among them: {min(option.parameters for option in options):,}"


def _read_budget(length: int, target: float, parameters: float | None, tokens: float | None) -> Budget:
    """The budget; refuse what cannot be."""
    if not 0 < target < 1:
        raise SpecError("target", f"expected a number between 0 and 1, got {target:g}")
    if length < 1:
        raise SpecError("length", f"expected at least 1, got {length}")
    budget = Budget(parameters, tokens)
    for name, value in budget._asdict().items():
        if value is not None and not 1 <= value <= 1e15:
            raise SpecError(name, f"expected a number from 1 to 1e15, got {value:g}")
    return budget
