"""Capacity of a `Transformer`: how much it recalls, or how large it has to be, or how many steps it takes."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Unpack

from mnemoscope.engine.record import Trial
from mnemoscope.experiments.capacity import BEYOND, LimitOptions, Question, find_limits
from mnemoscope.experiments.estimate.estimate import Estimated
from mnemoscope.experiments.estimate.limits import Limits
from mnemoscope.experiments.estimate.search import LARGEST
from mnemoscope.experiments.signatures import spells_out
from mnemoscope.spec import SpecError, Transformer
from mnemoscope.spec.summary import Shown, Summary, brief, number, span
from mnemoscope.spec.validators import nearest

# Without a range, a model or its training is tried in up to so many times its size, and in no more layers and heads.
MOST_GROWTH = 16
MOST_OF = {"layers": 64, "heads": 1024}


@dataclass(frozen=True, repr=False)
class TransformerCapacity(Shown, Estimated):
    """Where, along an axis, trainings begin or cease to reach the target.

    Along what the task asks for, each seed's limit is the most with which it reaches the target; along the model's size
    or the steps, the least: the middle between the last place that fails and the first that succeeds.
    """

    spec: Transformer
    along: str
    target: float
    rates: tuple[float, ...]
    limits: Limits
    trials: tuple[Trial, ...] = field(default=(), repr=False)

    @property
    def needed(self) -> bool:
        """Whether the answer is what is needed, rather than what fits."""
        return self.spec.rises_along(self.along)

    def summary(self) -> Summary:
        """The limit, and every seed's own."""
        each = [f"{limit:,.4g}" for limit in self.limits.each if limit is not None]
        return Summary(
            f"{brief(self.spec, without=('lr', 'target'))}, accuracy {self.target:g}",
            {
                "status": self.status,
                f"{'least' if self.needed else 'most'} {self.along}": f"{number(self.estimate, 1)} "
                f"{span(self.low, self.high, 1)}",
                "seeds": ", ".join(each),
                "trainings": f"{len(self.trials):,}",
            },
        )

    def as_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        spec = self.spec
        return {
            "spec": spec.model_dump(exclude={"lr", "target"}),
            "along": self.along,
            "bound": "least" if self.needed else "most",
            "target": self.target,
            "rates": list(self.rates),
            **self.answer.as_dict("capacity"),
            "each_seed": list(self.limits.each),
            "parameters": spec.parameters,
            "trials": [
                {self.along: trial.spec.value_of(self.along), "lr": trial.spec.lr, **trial.as_dict(), "curve": []}
                for trial in self.trials
            ],
        }


def transformer_question(
    spec: Transformer, along: str, target: float, rates: Sequence[float], ends: tuple[int, int] | None = None
) -> Question:
    """The search along an axis, from where the setting stands."""
    if along not in spec.axes:
        raise SpecError("along", f"expected one of {', '.join(spec.axes)}, got {along!r}{nearest(along, spec.axes)}")
    until = spec.replace(stop="target", target=target)
    for end in ends or ():
        until.vary(**{along: end})  # refuses a range beyond what there is, before any training
    known = max(1, spec.value_of(along))
    # A model that fails at any size, or in any number of steps, would be tried in ever larger ones.
    rises = spec.rises_along(along)
    largest = min(known * MOST_GROWTH, MOST_OF.get(along, LARGEST)) if rises else LARGEST
    return Question(
        lambda n: [until.vary(**{along: n}).replace(lr=rate) for rate in rates],
        target,
        known,
        known,
        BEYOND * known,
        ends,
        rises=rises,
        largest=largest,
    )


@spells_out(find_limits)
def transformer_capacity(
    spec: Transformer,
    along: str = "facts",
    *,
    target: float = 0.99,
    rates: Sequence[float] = (),
    ends: tuple[int, int] | None = None,
    **options: Unpack[LimitOptions],
) -> TransformerCapacity:
    """The most that is recalled `along` facts, or the least dim, layers, heads or steps that it takes.

    A seed succeeds if it reaches the target accuracy with one of the learning rates, by default the setting's own.
    """
    tried = tuple(rates) or (spec.lr,)
    question = transformer_question(spec, along, target, tried, ends)
    (result,) = find_limits([question], along, **options)
    return TransformerCapacity(result.end.answer, spec, along, target, tried, result.end, result.records)
