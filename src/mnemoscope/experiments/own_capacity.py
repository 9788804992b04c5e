"""Capacity of anything: up to where a user's model learns a user's task, or how much a memory holds."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Unpack, overload

from mnemoscope.engine.record import Trial
from mnemoscope.experiments.capacity import BEYOND, Capacity, LimitOptions, Question, find_limits
from mnemoscope.experiments.capacity import capacity as memory_capacity
from mnemoscope.experiments.estimate.estimate import Estimated
from mnemoscope.experiments.estimate.limits import Limits
from mnemoscope.experiments.signatures import spells_out
from mnemoscope.experiments.tabular import Tabular
from mnemoscope.experiments.transformer_capacity import TransformerCapacity, transformer_capacity
from mnemoscope.spec import Memory, Own, SpecError, Transformer
from mnemoscope.spec.objects import place_in
from mnemoscope.spec.summary import Shown, Summary, number, span


@dataclass(frozen=True, repr=False)
class OwnCapacity(Shown, Tabular, Estimated):
    """Up to which size of the task a model learns it to the target."""

    axes: ClassVar[tuple[str, ...]] = ("seed",)
    spec: Own
    along: str
    limits: Limits
    trials: tuple[Trial, ...] = field(default=(), repr=False)

    def as_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        spec = self.spec
        return {
            "spec": spec.model_dump(),
            "model": place_in(spec.model),
            "task": place_in(spec.task),
            "along": self.along,
            "target": spec.target,
            "path": spec.path,
            **self.answer.as_dict("capacity"),
            "each_seed": list(self.limits.each),
            "parameters": spec.parameters,
            "trials": [
                {self.along: trial.spec.value_of(self.along), **trial.as_dict(), "curve": []} for trial in self.trials
            ],
        }

    def labels(self) -> tuple[str, ...]:
        """The size that was searched along, and the seed."""
        return (self.along, "seed")

    def records(self) -> list[dict[str, Any]]:
        """A row for each training."""
        return [
            {
                self.along: trial.spec.value_of(self.along),
                "seed": trial.seed,
                "status": trial.status,
                "accuracy": trial.accuracy,
            }
            for trial in self.trials
        ]

    def summary(self) -> Summary:
        """The capacity, and each seed's own."""
        spec = self.spec
        return Summary(
            f"{place_in(spec.model)} on {place_in(spec.task)}",
            {
                "status": self.status,
                self.along: f"{number(self.estimate, 1)} {span(self.low, self.high, 1)}",
                "target": f"{spec.target:g}",
                "parameters": f"{spec.parameters:,}",
                "trainings": str(len(self.trials)),
            },
            ("seed", self.along),
            tuple((str(seed), number(limit, 1)) for seed, limit in enumerate(self.limits.each)),
        )


def own_question(spec: Own, along: str, ends: tuple[int, int] | None = None) -> Question:
    """The search along a size of the task, from where the setting stands."""
    known = spec.axes.get(along)
    if isinstance(known, bool) or not isinstance(known, int):
        whole = [name for name, value in spec.axes.items() if type(value) is int]
        raise SpecError("along", f"expected a whole number out of {', '.join(whole)}, got {along!r}")
    return Question(lambda n: [spec.vary(**{along: n})], spec.target, known, known, BEYOND * known, ends)


@spells_out(find_limits)
def capacity_of(
    spec: Own, along: str, *, ends: tuple[int, int] | None = None, **options: Unpack[LimitOptions]
) -> OwnCapacity:
    """The largest size at which trainings reach the target: each seed's limit, then their mean."""
    (result,) = find_limits([own_question(spec, along, ends)], along, **options)
    return OwnCapacity(result.end.answer, spec, along, result.end, result.records)


@overload
def capacity(
    model: Memory, criterion: float = 0.99, *, ends: tuple[int, int] | None = None, **options: Unpack[LimitOptions]
) -> Capacity: ...


@overload
def capacity(
    model: Transformer,
    *,
    along: str = "facts",
    target: float = 0.99,
    rates: Sequence[float] = (),
    ends: tuple[int, int] | None = None,
    **options: Unpack[LimitOptions],
) -> TransformerCapacity: ...


@overload
def capacity(
    model: Any,
    task: Any,
    *,
    along: str,
    target: float = 0.99,
    optimiser: Any = None,
    ends: tuple[int, int] | None = None,
    training: dict[str, Any] | None = None,
    **options: Unpack[LimitOptions],
) -> OwnCapacity: ...


@spells_out(capacity_of)
def capacity(
    model: Any, *task: Any, along: str | None = None, **more: Any
) -> Capacity | TransformerCapacity | OwnCapacity:
    """How much a memory holds, or up to which size `along` an axis of the task a model learns it.

    A memory is given as `Memory`, with a criterion. A `Transformer` is asked for the most facts, or for the least dim,
    layers, heads or steps, with which it reaches the target at one of the `rates`. A model of your own comes with its
    task, the axis, the target accuracy and an optimiser of optax (AdamW by default); `training` has further numbers,
    such as `batch` and `max_steps`. `ends` is the range to search; the options are those of `find_limits`.
    """
    if isinstance(model, Memory):
        return memory_capacity(model, *task, **more)
    if isinstance(model, Transformer):
        return transformer_capacity(model, along or "facts", **more)
    given = task[0] if task else more.pop("task", None)
    if along is None:
        raise SpecError("along", "expected a size of the task, got none")
    numbers = {**(more.pop("training", None) or {}), "target": more.pop("target", 0.99)}
    spec = Own.read({"model": model, "task": given, "optimiser": more.pop("optimiser", None), **numbers})
    return capacity_of(spec, along, **more)
