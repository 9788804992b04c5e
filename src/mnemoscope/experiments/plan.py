r"""What a job needs, and what a budget buys.

A job is V facts (as many tokens, each with its label), hidden among L tokens, recalled with a
target accuracy, by a model that is trained to the end or by three steps. What three steps take is a trade-off:
a larger d, or an MLP, needs fewer samples. A trained model needs weights that hold V facts, and samples that show them.

    parameters   d^2 of attention, d^2 of the values, or d m with an MLP
    tokens       N L
    bits         log2 V!, what the map holds

Which option to prefer is our choice: the least parameters x tokens, to which the cost of training
is proportional. `plan_search` finds the options, `plan_laws` says what theory knows of each training.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal

from mnemoscope.engine.record import Trial
from mnemoscope.experiments.drawable import Drawable
from mnemoscope.experiments.estimate.estimate import Estimate
from mnemoscope.experiments.estimate.intervals import mean_interval
from mnemoscope.experiments.plan_laws import LAWS, Training
from mnemoscope.experiments.plan_search import MOST_FACTS, NEARLY, Budget, all_ways, most_facts, nearly_as_many
from mnemoscope.experiments.tabular import Tabular
from mnemoscope.spec import LETTERS, Retrieval, SpecError
from mnemoscope.spec.summary import Summary, brief, sizes
from mnemoscope.store.trials import Store
from mnemoscope.theory.bound import coverage_samples, first_gradient_samples
from mnemoscope.theory.domain import domain_of
from mnemoscope.theory.limits import TRAINED
from mnemoscope.theory.predict import REGIMES, Prediction, predict, regime_of
from mnemoscope.theory.trained.attention import first_attention
from mnemoscope.theory.trained.predict import BINDINGS, TrainedPrediction

Basis = Literal["theory", "measured", "extrapolated"]
# What the words for a binding mean, after either training.
MEANINGS = REGIMES | BINDINGS
# Steps of the training that is over after three.
THREE = 3


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
    def shown(self) -> int:
        """The tokens that training goes through: a trained model's again in every step, if it is known how many."""
        return self.tokens * ((self.steps or 1) if self.trained else 1)

    @property
    def cost(self) -> float:
        """What training costs, up to a factor."""
        return float(self.parameters) * self.tokens

    @property
    def trained(self) -> bool:
        """Whether the model is trained to the end."""
        return isinstance(self.prediction, TrainedPrediction)

    @property
    def steps(self) -> int | None:
        """The steps of its training, each over all samples; None where that is not derived."""
        return self.prediction.steps if isinstance(self.prediction, TrainedPrediction) else THREE

    @property
    def capacity(self) -> float | None:
        """The facts that a trained model's weights hold."""
        return self.prediction.capacity if isinstance(self.prediction, TrainedPrediction) else None

    @cached_property
    def attention_at_start(self) -> float | None:
        """Where attention of a trained model starts: how often it is right after the three steps."""
        return first_attention(self.spec) if self.trained else None

    def misses(self, target: float) -> bool:
        """Whether it was measured below the target, by more than its interval."""
        return self.measured.high is not None and self.measured.high < target

    @property
    def basis(self) -> Basis:
        """Where its accuracy comes from."""
        if self.measured.status == "found":
            return "measured"
        row = domain_of(self.spec, TRAINED if self.trained else "accuracy")
        # Without sizes that were run, a law has only been derived.
        inside = self.prediction.valid and row is not None and bool(row.held) and row.was_run(self.spec)
        return "theory" if inside else "extrapolated"

    @cached_property
    def binding(self) -> str:
        """What would give way first with fewer samples; of a trained model, what takes most of the rest away."""
        spec = self.spec
        if isinstance(self.prediction, TrainedPrediction):
            return self.prediction.binding or "none"
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
            "facts_per_parameter": spec.vocab / self.parameters,
            "steps": self.steps,
            "capacity": self.capacity,
            "attention_at_start": self.attention_at_start,
            "accuracy": prediction.accuracy,
            "low": prediction.low,
            "high": prediction.high,
            "measured": self.measured.ends("mean") if self.measured.status == "found" else None,
            "basis": self.basis,
            "binding": self.binding,
            "law": MEANINGS[self.binding],
            # Further training sees more than the first gradient.
            "first_gradient_bound": None if self.trained else first_gradient_samples(spec, prediction.accuracy or 0.0),
            "coverage_bound": coverage_samples(spec, prediction.accuracy or 0.0),
        }


@dataclass(frozen=True, repr=False)
class Plan(Drawable, Tabular):
    """The option we would take, and the others. If nothing will do, the notes say why."""

    figure: ClassVar[str] = "trade_off"
    axes: ClassVar[tuple[str, ...]] = ("dim", "width")
    training: Training
    recommended: Option | None
    alternatives: tuple[Option, ...]
    notes: tuple[str, ...]

    def options(self) -> list[Option]:
        """The recommended option, and then the others."""
        return [*([self.recommended] if self.recommended else []), *self.alternatives]

    def records(self) -> list[dict[str, Any]]:
        """A row for each option."""
        return [{"recommended": option is self.recommended, **option.as_dict()} for option in self.options()]

    def summary(self) -> Summary:
        """The recommended sizes, and every option."""
        best = self.recommended
        title = "no option" if best is None else f"{brief(best.spec)}, {self.training.replace('-', ' ')}"
        sums = {} if best is None else {"parameters": f"{best.parameters:,}", "tokens": f"{best.tokens:,}"}
        rows = tuple((sizes(option.spec), f"{option.parameters:,}", f"{option.tokens:,}") for option in self.options())
        return Summary(title, sums, ("option", "parameters", "tokens"), rows, "; ".join(self.notes))

    def as_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        best = self.recommended
        return {
            "training": self.training,
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
    training: Training = "trained",
) -> Plan:
    """What it takes to recall so many facts, within a budget of parameters and tokens if given."""
    budget = _read_budget(length, target, parameters, tokens, training)
    options = _options(all_ways(facts, length, target, budget, training), store, training)
    enough = [option for option in options if not option.misses(target)]
    if not enough:
        unlimited = budget._replace(parameters=None)
        wider = [] if unlimited == budget else all_ways(facts, length, target, unlimited, training)
        beyond = _options(wider, store, training)
        return Plan(training, None, tuple(_by_size(beyond)), tuple(_why_none(beyond, budget)))
    best = min(enough, key=_preference)
    others = [option for option in enough if option is not best]
    why = "the least parameters x tokens, which training cost goes with (our choice)"
    if training == "trained":
        tested = best.prediction.valid and any(option.cost < best.cost for option in enough)
        of = " of the options whose law was tested" if tested else ""
        why = f"the least parameters x tokens{of} (our choice); more parameters save steps"
    return Plan(training, best, tuple(_by_size(others)), tuple(_notes(best, why)))


def plan_budget(
    length: int,
    target: float,
    *,
    parameters: float | None = None,
    tokens: float | None = None,
    store: Store | None = None,
    training: Training = "trained",
) -> Plan:
    """The most facts that so many parameters can recall after so many tokens."""
    budget = _read_budget(length, target, parameters, tokens, training)
    if budget == Budget():
        raise SpecError("facts", "expected facts, or a budget of parameters or tokens, got none")
    if tokens is not None and tokens < length:
        return Plan(training, None, (), (f"fewer tokens than one sequence of {length:,} has",))
    most = (most_facts(length, shape, target, budget, training) for shape in LAWS[training].shapes)
    options = _options((spec for spec in most if spec is not None), store, training)
    enough = [option for option in options if not option.misses(target)]
    if not enough:
        text = f"no number of facts from 2 to {MOST_FACTS:,} is recalled with accuracy {target:g}"
        if options:
            text = f"theory finds a way, but what the store has of it misses accuracy {target:g}"
        return Plan(training, None, (), (text,))
    best = max(enough, key=lambda option: option.spec.vocab)
    why = "the most facts for this budget"
    if parameters is None:
        # Any d is within the budget: of those that hold as many facts, the one that costs least.
        as_many = _options(all_ways(best.spec.vocab, length, target, budget, training), store, training)
        best = min([best, *(option for option in as_many if not option.misses(target))], key=_preference)
    if tokens is None and LAWS[training].spends_all:
        # The last facts would take samples without end: a few less are recommended, the most stay
        # among the alternatives.
        less = nearly_as_many(best.spec, target, budget, training)
        if less is not None:
            (best,) = _options([less], store, training)
            why = f"{NEARLY:.0%} of the most facts, since the last ones take samples without end"
    if max(option.spec.vocab for option in enough) >= MOST_FACTS:
        why = f"more facts than {MOST_FACTS:,} are not looked at; the budget may hold them"
    others = tuple(option for option in enough if option is not best)
    return Plan(training, best, others, tuple(_notes(best, why)))


def _preference(option: Option) -> tuple[bool, float]:
    """The least cost; of trained models, among those that theory is valid for, if there are any."""
    return option.trained and not option.prediction.valid, option.cost


def _options(specs: Iterable[Retrieval], store: Store | None, training: Training) -> list[Option]:
    """What theory says of each setting, and what the store has measured."""
    options = []
    for spec in dict.fromkeys(specs):
        prediction = predict(spec, trained=training == "trained")
        trials = [] if store is None else _trials(store, spec, prediction)
        accuracies = [trial.accuracy for trial in trials if trial.accuracy is not None]
        options.append(Option(spec, prediction, mean_interval(accuracies, float(spec.test_samples))))
    return options


def _trials(store: Store, spec: Retrieval, prediction: Prediction) -> list[Trial]:
    """The store's trials of a setting; for a trained model, those that trained for as long as theory asks for."""
    if not isinstance(prediction, TrainedPrediction):
        return [*store.find("id = ?", (spec.id,))]
    if prediction.steps is None:
        return []
    sizes = {name: getattr(spec, name) for name in LETTERS}
    where = " AND ".join(f"{name} = ?" for name in (*sizes, "kind"))
    found = store.find(f"{where} AND steps >= ?", (*sizes.values(), spec.kind, prediction.steps))
    same = {"test_samples": spec.test_samples}
    return [trial for trial in found if trial.spec.three_steps().replace(**same).id == spec.id]


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


def _read_budget(
    length: int, target: float, parameters: float | None, tokens: float | None, training: Training
) -> Budget:
    """The budget; refuse what cannot be."""
    if training not in LAWS:
        raise SpecError("training", f"expected one of {', '.join(LAWS)}, got {training!r}")
    if not 0 < target < 1:
        raise SpecError("target", f"expected a number between 0 and 1, got {target:g}")
    if length < 1:
        raise SpecError("length", f"expected at least 1, got {length}")
    budget = Budget(parameters, tokens)
    for name, value in budget._asdict().items():
        if value is not None and not 1 <= value <= 1e15:
            raise SpecError(name, f"expected a number from 1 to 1e15, got {value:g}")
    return budget
