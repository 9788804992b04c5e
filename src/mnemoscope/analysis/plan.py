r"""What a job needs, and what a budget buys.

A job is V facts (as many tokens, each with its label), hidden among L tokens, recalled with a
target accuracy. What it takes is a trade-off: a larger d, or an MLP, needs fewer samples.

    parameters   d^2 of attention, d^2 of the values, or d m with an MLP
    tokens       N L
    bits         log2 V!, what the map holds

Which of the ways to prefer is our choice: the least parameters x tokens, to which the cost of
training is proportional.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from mnemoscope.analysis.intervals import Interval, mean_interval
from mnemoscope.spec import Retrieval, SpecError
from mnemoscope.store.trials import Store
from mnemoscope.theory.bound import bound_samples, coverage_samples
from mnemoscope.theory.critical import first_that, last_that
from mnemoscope.theory.predict import REGIMES, Prediction, predict, solve

Basis = Literal["theory", "measured", "extrapolated"]
MOST = 2**31 - 1
# What theory was held against simulation on: see `validate`.
HELD = {"vocab": (64, 2048), "dim": (12, 1024), "length": (2, 1024), "width": (128, 2048)}
# Dimensions that are looked at, in units of the least that will do.
STEPS = (1.05, 1.2, 1.4, 1.7, 2.2, 3.0, 4.5)
# With an MLP smaller ones do: in the same units, with the activation that gains most
# (docs/claims.md).
NARROW, ACTIVATION = 0.5, "hermite3"
# Of a given number of parameters: the bare model's d, and narrower ones with an MLP.
SHARES = (1.0, 0.5, 0.25)
# How close the least d and m are found, beyond which sizes are chosen anyway.
ROUGH = 0.04
# The largest vocabulary that is looked at.
MOST_FACTS = 2**24
# The share of the facts of endless samples that is recommended where tokens are free.
NEARLY = 0.95
# Hidden units beyond the least that would do with ever so many samples.
SPARE = 1.5


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
        told = self.measured
        return told is not None and told.high is not None and told.high < target

    @property
    def basis(self) -> Basis:
        """Where its accuracy comes from."""
        if self.measured is not None:
            return "measured"
        ratio = self.spec.samples / self.spec.vocab
        inside = all(
            low <= getattr(self.spec, name) <= high
            for name, (low, high) in HELD.items()
            if getattr(self.spec, name)
        )
        return "theory" if inside and self.told.valid and 0.7 <= ratio <= 150 else "extrapolated"

    @cached_property
    def binding(self) -> str:
        """What would give way first with fewer samples."""
        spec = self.spec
        while spec.samples > 1:
            spec = spec.replace(samples=max(1, round(spec.samples * 0.6)))
            regime = predict(spec).regime
            if regime != "recall":
                return regime
        return "unseen"

    def as_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        spec, told = self.spec, self.told
        bits = map_bits(spec.vocab)
        bound = bound_samples(spec, min(told.accuracy or 0.0, 1 - 1e-9))
        return {
            "facts": spec.vocab, "dim": spec.dim, "width": spec.width,
            "activation": spec.activation if spec.width else None,
            "samples": spec.samples, "length": spec.length, "parameters": self.parameters,
            "tokens": self.tokens, "bits": bits, "bits_per_parameter": bits / self.parameters,
            "accuracy": told.accuracy, "low": told.low, "high": told.high,
            "measured": None if self.measured is None else self.measured.as_dict(),
            "basis": self.basis, "binding": self.binding, "law": REGIMES[self.binding],
            "first_gradient_bound": bound if math.isfinite(bound) else None,
            "coverage_bound": coverage_samples(spec, told.accuracy or 0.0),
        }  # fmt: skip


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
            "alternatives": [one.as_dict() for one in self.alternatives],
            "basis": None if best is None else best.basis,
            "notes": list(self.notes),
        }


def map_bits(vocab: int) -> float:
    """log2 V!: what a permutation of V labels holds."""
    return math.lgamma(vocab + 1) / math.log(2)


def plan_job(
    facts: int, length: int, target: float, *, parameters: float | None = None,
    tokens: float | None = None, store: Store | None = None,
) -> Plan:  # fmt: skip
    """What it takes to recall so many facts, within a budget of parameters and tokens if given."""
    _check(length, target, parameters, tokens)
    base = Retrieval.read({"vocab": facts, "dim": 2, "length": length, "samples": 1})
    most = countable(facts, length)
    if tokens is not None:
        most = min(most, int(tokens // length))
    ways = [*_options(base, target, max(1, most))]
    if parameters is not None:  # those that use it to the full
        full = (_spend(base, parameters, share) for share in SHARES)
        ways += [one for spec in full if (one := _fewest(spec, target, max(1, most)))]
    made = [_look_up(one, store) for one in dict.fromkeys(ways)]
    within = [
        one
        for one in made
        if not one.misses(target)
        and one.parameters <= (parameters or math.inf)
        and one.tokens <= (tokens or math.inf)
    ]
    if not within:
        return Plan(None, tuple(_by_size(made)), tuple(_why_none(made, parameters, tokens)))
    best = min(within, key=lambda one: one.cost)
    others = [one for one in within if one is not best]
    why = "the least parameters x tokens, which training cost goes with (our choice)"
    return Plan(best, tuple(_by_size(others)), tuple(_notes(best, why)))


def plan_budget(
    length: int, target: float, *, parameters: float | None = None, tokens: float | None = None,
    store: Store | None = None,
) -> Plan:  # fmt: skip
    """The most facts that so many parameters can recall after so many tokens."""
    _check(length, target, parameters, tokens)
    if parameters is None and tokens is None:
        raise SpecError("facts", "expected facts, or a budget of parameters or tokens, got none")
    if tokens is not None and tokens < length:
        return Plan(None, (), (f"fewer tokens than one sequence of {length:,} has",))
    samples = MOST if tokens is None else min(MOST, int(tokens // length))
    base = Retrieval.read({"vocab": 2**16, "dim": 2, "length": length, "samples": samples})
    made = []
    for share in SHARES if parameters is not None else SHARES[:1]:
        found = _most_facts(base, target, parameters, share)
        if found is not None and tokens is None:
            # The last facts would take samples without end.
            found = _fewest(found.replace(vocab=max(2, int(NEARLY * found.vocab))), target,
                            found.samples)  # fmt: skip
        if found is not None:
            made.append(_look_up(found, store))
    if not made:
        said = f"even two facts are not recalled with accuracy {target:g} (N = {samples:,})"
        return Plan(None, (), (said,))
    best = max(made, key=lambda one: one.spec.vocab)
    others = tuple(one for one in made if one is not best)
    why = "the most facts for this budget"
    if best.spec.vocab >= int(NEARLY * MOST_FACTS):
        why = f"more facts than {MOST_FACTS:,} are not looked at; the budget may hold them"
    return Plan(best, others, tuple(_notes(best, why)))


def countable(vocab: int, length: int) -> int:
    """The most samples that a spec may have: no pair of tokens is counted beyond 2^30."""
    return max(1, min(MOST, int(2**30 / (length / vocab**2 + 1 / vocab))))


def _spend(base: Retrieval, parameters: float, share: float) -> Retrieval:
    """A model of so many parameters: bare, or with an MLP and a share of the bare one's d."""
    d = max(1, int(math.isqrt(int(parameters) // 2) * share))
    if share == 1:
        return base.replace(dim=d)
    return base.replace(dim=d, width=max(1, int(parameters) // d - d), activation=ACTIVATION)


def _most_facts(
    base: Retrieval, target: float, parameters: float | None, share: float
) -> Retrieval | None:
    """The setting with the largest V that reaches the target."""

    def setting(vocab: int) -> Retrieval:
        # What a spec may count to, where tokens are without a limit.
        most = countable(vocab, base.length)
        many = base.replace(vocab=vocab, samples=max(1, min(base.samples, most)))
        if parameters is not None:
            return _spend(many, parameters, share)
        # Without a limit: more than a few dimensions for a fact change nothing but the cost.
        return many.replace(dim=4 * vocab + 256)

    most = min(4 * base.samples, MOST_FACTS)
    # A single dimension stores nothing that theory could speak of.
    found = last_that(
        lambda vocab: setting(vocab).dim > 1 and _reaches(setting(vocab), target), 2, most
    )
    return None if found is None else setting(found)


def _options(base: Retrieval, target: float, most: int) -> Iterator[Retrieval]:
    """Settings that reach the target with as few samples as theory allows."""
    many = base.replace(samples=most)
    least = first_that(lambda d: _reaches(many.replace(dim=d), target), 2, 4 * base.vocab, ROUGH)
    if least is None:
        return
    dims = dict.fromkeys(max(2, round(least * step)) for step in STEPS)
    seen = most
    for d in dims:
        made = _fewest(base.replace(dim=d), target, seen)
        # Once more dimensions save no samples, the rest would only cost.
        if made is None or (made.samples > 0.98 * seen and seen < most):
            break
        seen = made.samples
        yield made
    narrow = base.replace(dim=max(2, round(least * NARROW)), activation=ACTIVATION)
    # The map alone first: attention that is given makes it cheap to predict.
    locked = narrow.replace(samples=most, attention="locked")
    width = first_that(
        lambda m: _reaches(locked.replace(width=m), target), 8, 64 * base.vocab, ROUGH
    )
    made = width and _fewest(narrow.replace(width=round(width * SPARE)), target, most)
    if made:
        yield made


def _fewest(spec: Retrieval, target: float, most: int) -> Retrieval | None:
    """The setting with the least N that will do, and at most so many."""
    given = spec.replace(attention="locked") if spec.width else spec
    least = min(most, max(1, spec.vocab // 8))
    low = first_that(lambda n: _reaches(given.replace(samples=n), target), least, most)
    if low is None or not spec.width:
        return None if low is None else spec.replace(samples=low)
    # An MLP beside attention that errs is slow to predict. What the map needs with attention given
    # is a start from which few steps lead to what both need.
    high = low
    while high < most and not _reaches(spec.replace(samples=high), target):
        low, high = high, min(most, math.ceil(high * 1.3))
    found = first_that(lambda n: _reaches(spec.replace(samples=n), target), low, high)
    return None if found is None else spec.replace(samples=found)


def _reaches(spec: Retrieval, target: float) -> bool:
    return solve(spec)[1].accuracy >= target


def _look_up(spec: Retrieval, store: Store | None) -> Option:
    """Theory's word, and the store's where it has one."""
    told = [] if store is None else [one.accuracy for one in store.find("id = ?", (spec.id,))]
    known = [one for one in told if one is not None]
    measured = mean_interval(known, float(spec.test_samples)) if len(known) > 1 else None
    return Option(spec, predict(spec), measured)


def _by_size(options: Sequence[Option]) -> list[Option]:
    return sorted(options, key=lambda one: one.parameters)


def _notes(best: Option, why: str) -> Iterator[str]:
    yield f"recommended: {why}"
    if best.basis == "extrapolated":
        yield "extrapolated: sizes beyond those that theory was held against simulation on"
    yield from best.told.notes


def _why_none(
    made: Sequence[Option], parameters: float | None, tokens: float | None
) -> Iterator[str]:
    if not made:
        yield (
            "no size reaches the target within these tokens"
            if tokens
            else ("no size that was looked at reaches the target")
        )
        return
    yield "nothing within the budget; the alternatives are what it would take"
    if parameters is not None:
        yield f"the fewest parameters among them: {min(one.parameters for one in made):,}"


def _check(length: int, target: float, parameters: float | None, tokens: float | None) -> None:
    if not 0 < target < 1:
        raise SpecError("target", f"expected a number between 0 and 1, got {target:g}")
    if length < 1:
        raise SpecError("length", f"expected at least 1, got {length}")
    for name, value in (("parameters", parameters), ("tokens", tokens)):
        if value is not None and not 1 <= value <= 1e15:
            raise SpecError(name, f"expected a number from 1 to 1e15, got {value:g}")
