r"""What a job needs, and what a budget buys.

A job is V facts (as many tokens, each with its label), hidden among L tokens, recalled with a
target accuracy. What it takes is a trade-off: a larger d, or an MLP, needs fewer samples.

    parameters   d^2 of attention, d^2 of the values, or d m with an MLP
    tokens       N L
    bits         log2 V!, what the map holds

Which of the ways to prefer is our choice: the least parameters x tokens, to which the cost of
training is proportional.

A job and a budget ask the same question from two ends, so both ask it of the same models: those of
SHAPES, in which a number of parameters fixes d and m. A budget holds V facts if and only if a job
of V facts has a way within that budget.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple

from mnemoscope.experiments.estimate.intervals import Interval, mean_interval
from mnemoscope.spec import Retrieval, SpecError
from mnemoscope.store.trials import Store
from mnemoscope.theory.bound import coverage_samples, first_gradient_samples
from mnemoscope.theory.critical import first_that, last_peak_that
from mnemoscope.theory.domain import domain_of
from mnemoscope.theory.predict import REGIMES, Prediction, predict, regime_of, solve

Basis = Literal["theory", "measured", "extrapolated"]
MOST = 2**31 - 1
# Hidden units for each dimension; 0 is the bare model. An MLP has the activation that gains most
# (docs/claims.md).
SHAPES, ACTIVATION = (0, 7, 31), "hermite3"
# Dimensions that are looked at, in units of the least that will do: of the bare model, and with an
# MLP.
STEPS, MLP_STEPS = (1.05, 1.2, 1.4, 1.7, 2.2, 3.0, 4.5), (1.22,)
# How close the least d is found, beyond which sizes are chosen anyway.
ROUGH = 0.04
# The largest vocabulary that is looked at.
MOST_FACTS = 2**24
# The share of the facts of endless samples that is recommended where tokens are free.
NEARLY = 0.95


@dataclass(frozen=True)
class Option:
    """One way to do a job: a setting, and what theory and the store say of it."""

    spec: Retrieval
    told: Prediction
    measured: Interval | None = None

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
        """Whether it was measured, and found below the target by more than its interval."""
        measured = self.measured
        return measured is not None and measured.high is not None and measured.high < target

    @property
    def basis(self) -> Basis:
        """Where its accuracy comes from."""
        if self.measured is not None:
            return "measured"
        row = domain_of(self.spec)
        inside = self.told.valid and row is not None and row.was_run(self.spec)
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
        spec, told = self.spec, self.told
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
            "accuracy": told.accuracy,
            "low": told.low,
            "high": told.high,
            "measured": None if self.measured is None else self.measured.as_dict(),
            "basis": self.basis,
            "binding": self.binding,
            "law": REGIMES[self.binding],
            "first_gradient_bound": first_gradient_samples(spec, told.accuracy or 0.0),
            "coverage_bound": coverage_samples(spec, told.accuracy or 0.0),
        }


@dataclass(frozen=True)
class Plan:
    """The way we would go, and the others; none where nothing will do, for the reason in notes."""

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


class Budget(NamedTuple):
    """The most parameters and training tokens there are; None is no limit."""

    parameters: float | None = None
    tokens: float | None = None

    def samples(self, vocab: int, length: int) -> int:
        """The most training samples; without a limit, as many as a spec may count."""
        most = countable(vocab, length)
        return most if self.tokens is None else min(most, int(self.tokens // length))

    def dim(self, vocab: int, shape: int) -> int:
        """The largest d of a shape; more than a few for a fact change nothing but the cost."""
        enough = 4 * vocab + 256
        if self.parameters is None:
            return enough
        # parameters = d^2 + d max(d, m) with m = shape * d
        return min(enough, math.isqrt(int(self.parameters) // (1 + max(1, shape))))

    def spent(self, vocab: int, length: int, shape: int) -> Retrieval | None:
        """The model and the training that use it to the full; None where it buys none.

        A single dimension stores nothing that theory could speak of.
        """
        d, samples = self.dim(vocab, shape), self.samples(vocab, length)
        if d < 2 or samples < 1:
            return None
        sizes = {"vocab": vocab, "length": length, "samples": samples}
        return Retrieval.read({**sizes, **_sizes(d, shape)})


def _sizes(dim: int, shape: int) -> dict[str, Any]:
    """A model of one of the shapes."""
    if not shape:
        return {"dim": dim}
    return {"dim": dim, "width": shape * dim, "activation": ACTIVATION}


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
    _check(length, target, parameters, tokens)

    def options(budget: Budget) -> list[Option]:
        specs = (spec for shape in SHAPES for spec in _ways(facts, length, shape, target, budget))
        return [_look_up(spec, store) for spec in dict.fromkeys(specs)]

    ways = [option for option in options(Budget(parameters, tokens)) if not option.misses(target)]
    if not ways:
        beyond = options(Budget(None, tokens)) if parameters is not None else []
        return Plan(None, tuple(_by_size(beyond)), tuple(_why_none(beyond, parameters, tokens)))
    best = min(ways, key=lambda option: option.cost)
    others = [option for option in ways if option is not best]
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
    _check(length, target, parameters, tokens)
    if parameters is None and tokens is None:
        raise SpecError("facts", "expected facts, or a budget of parameters or tokens, got none")
    if tokens is not None and tokens < length:
        return Plan(None, (), (f"fewer tokens than one sequence of {length:,} has",))
    budget = Budget(parameters, tokens)
    specs = [spec for shape in SHAPES if (spec := _most_facts(length, shape, target, budget))]
    ways = [_look_up(spec, store) for spec in specs]
    ways = [option for option in ways if not option.misses(target)]
    if not ways:
        text = f"no number of facts from 2 to {MOST_FACTS:,} is recalled with accuracy {target:g}"
        if specs:
            text = f"theory finds a way, but what the store has of it misses accuracy {target:g}"
        return Plan(None, (), (text,))
    best = max(ways, key=lambda option: option.spec.vocab)
    why = "the most facts for this budget"
    if parameters is None:
        # Any d is within the budget: of those that hold as many facts, the one that costs least.
        enough = [
            _look_up(spec, store) for shape in SHAPES for spec in _ways(best.spec.vocab, length, shape, target, budget)
        ]
        enough = [option for option in enough if not option.misses(target)]
        best = min([best, *enough], key=lambda option: option.cost)
    if tokens is None:
        # The last facts would take samples without end: a few less are recommended, the most stay
        # among the alternatives.
        less = _nearly(best.spec, target, budget)
        if less is not None:
            best = _look_up(less, store)
            why = f"{NEARLY:.0%} of the most facts, since the last ones take samples without end"
    if max(option.spec.vocab for option in ways) >= MOST_FACTS:
        why = f"more facts than {MOST_FACTS:,} are not looked at; the budget may hold them"
    others = tuple(option for option in ways if option is not best)
    return Plan(best, others, tuple(_notes(best, why)))


def countable(vocab: int, length: int) -> int:
    """The most samples that a spec may have: no pair of tokens is counted beyond 2^30."""
    return max(1, min(MOST, int(2**30 / (length / vocab**2 + 1 / vocab))))


def _most_facts(length: int, shape: int, target: float, budget: Budget) -> Retrieval | None:
    """The setting of a shape with the largest V that reaches the target.

    The facts that are recalled need not begin at two: with few tokens in a long sequence each
    stands there many times, and chance meetings draw attention away (label noise).
    """

    def accuracy(vocab: int) -> float:
        spec = budget.spent(vocab, length, shape)
        return 0.0 if spec is None else _accuracy(spec, target)

    # Whoever has seen N samples names at most N of V facts, and one more by chance.
    seen = budget.samples(MOST_FACTS, length)
    most = last_peak_that(accuracy, target, 2, min(MOST_FACTS, int(seen / target) + 2))
    return None if most is None else budget.spent(most, length, shape)


def _nearly(spec: Retrieval, target: float, budget: Budget) -> Retrieval | None:
    """The setting with a few facts less, and the least N that will do for those."""
    shape = spec.width // spec.dim
    less = budget.spent(max(2, int(NEARLY * spec.vocab)), spec.length, shape)
    if less is None or not _reaches(less, target):
        return None
    return _fewest(less, target)


def _ways(facts: int, length: int, shape: int, target: float, budget: Budget) -> Iterator[Retrieval]:
    """Settings of a shape that reach the target with as few samples as theory allows."""
    full = budget.spent(facts, length, shape)
    if full is None or not _reaches(full, target):
        return
    # The map alone first: attention that is given makes an MLP cheap to predict.
    given = full.replace(attention="locked") if shape else full
    least = first_that(lambda d: _named(given.replace(**_sizes(d, shape))) >= target, 2, full.dim, ROUGH)
    steps = MLP_STEPS if shape else STEPS
    dims = dict.fromkeys(max(2, round((least or full.dim) * step)) for step in steps)
    seen, none = full.samples, True
    for d in dims:
        wide = full.replace(**_sizes(min(d, full.dim), shape))
        way = _fewest(wide, target) if _reaches(wide, target) else None
        if way is None:
            continue
        # Once more dimensions save no samples, the rest would only cost.
        if way.samples > 0.98 * seen and seen < full.samples:
            break
        seen, none = way.samples, False
        yield way
    if none or budget.parameters is not None:  # what uses it to the full is there in any case
        yield _fewest(full, target)


def _fewest(spec: Retrieval, target: float) -> Retrieval:
    """The setting with the least N that will do, of one that does."""
    most, least = spec.samples, min(spec.samples, max(1, spec.vocab // 8))
    low, high = least, most
    if spec.width:
        # An MLP beside attention that errs is slow to predict. What the map needs with attention
        # given is a start from which few steps lead to what both need.
        given = spec.replace(attention="locked")
        low = first_that(lambda n: _named(given.replace(samples=n)) >= target, least, most) or most
        high = low
        while high < most and not _reaches(spec.replace(samples=high), target):
            low, high = high, min(most, math.ceil(high * 1.3))
    fewest = first_that(lambda n: _reaches(spec.replace(samples=n), target), low, high)
    return spec.replace(samples=most if fewest is None else fewest)


def _reaches(spec: Retrieval, target: float) -> bool:
    return _accuracy(spec, target) >= target


def _accuracy(spec: Retrieval, target: float) -> float:
    """Theory's accuracy. An MLP whose map misses the target with attention given is not asked for
    more: attention that may err only takes away."""
    if spec.width:
        given = _named(spec.replace(attention="locked"))
        if given < target:
            return given
        return min(given, _named(spec))
    return _named(spec)


def _named(spec: Retrieval) -> float:
    return solve(spec)[1].accuracy


def _look_up(spec: Retrieval, store: Store | None) -> Option:
    """Theory's word, and the store's where it has one."""
    accuracies = [] if store is None else [trial.accuracy for trial in store.find("id = ?", (spec.id,))]
    known = [accuracy for accuracy in accuracies if accuracy is not None]
    measured = mean_interval(known, float(spec.test_samples)) if len(known) > 1 else None
    return Option(spec, predict(spec), measured)


def _by_size(options: Sequence[Option]) -> list[Option]:
    return sorted(options, key=lambda option: option.parameters)


def _notes(best: Option, why: str) -> Iterator[str]:
    yield f"recommended: {why}"
    if best.basis == "extrapolated":
        yield "extrapolated: sizes beyond those that theory was held against simulation on"
    yield from best.told.notes


def _why_none(options: Sequence[Option], parameters: float | None, tokens: float | None) -> Iterator[str]:
    if not options:
        within = " within these tokens" if tokens is not None else " that was looked at"
        yield f"no size{within} reaches the target"
        return
    yield "nothing within the budget; the alternatives are what it would take"
    if parameters is not None:
        yield f"the fewest parameters among them: {min(option.parameters for option in options):,}"


def _check(length: int, target: float, parameters: float | None, tokens: float | None) -> None:
    if not 0 < target < 1:
        raise SpecError("target", f"expected a number between 0 and 1, got {target:g}")
    if length < 1:
        raise SpecError("length", f"expected at least 1, got {length}")
    for name, value in (("parameters", parameters), ("tokens", tokens)):
        if value is not None and not 1 <= value <= 1e15:
            raise SpecError(name, f"expected a number from 1 to 1e15, got {value:g}")
