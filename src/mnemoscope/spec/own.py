"""Training a model of the user's own on a task of their own.

The setting names both, and the optimiser, by place and content (`objects`). A model or a task that is a dataclass, or a
function that makes one, has sizes: its plain fields or parameters stand in the setting, and `vary` changes them.

>>> spec = Own(model=model, task=Parity(length=8))          # doctest: +SKIP
>>> spec.vary(length=16, width=64, batch=512)               # doctest: +SKIP
"""

import dataclasses
import inspect
from collections.abc import Mapping
from functools import lru_cache
from importlib import import_module
from typing import Annotated, Any, ClassVar, get_args

from pydantic import BeforeValidator, Field, model_validator

from mnemoscope.spec.base import SpecError
from mnemoscope.spec.carrying import Carrying
from mnemoscope.spec.installed import place_of
from mnemoscope.spec.names import NameOrObject
from mnemoscope.spec.objects import find_object, import_object, name_object, place_in
from mnemoscope.spec.optimisers import Optimiser
from mnemoscope.spec.validators import between, is_kept_name, is_place, nearest, one_line, whole

# A size, and a name with it: what a dataclass field or a parameter may hold to stand in a setting.
Value = bool | int | float | str
Values = tuple[tuple[str, Value], ...]
# What makes an object one: the attributes that it must have.
PARTS = {"model": ("init", "logits"), "task": ("vocab", "labels", "length", "sample")}
# The default optimiser. The learning rate of optimisers by name is `lr`.
ADAMW = "adamw"
NAMED: tuple[str, ...] = get_args(Optimiser)
# Samples of training have the indices below this; tests have those above.
MOST_SAMPLES = 2**31

Count = Annotated[int, BeforeValidator(whole(1, 2**20))]


def _pairs(values: Any) -> Any:
    return tuple(sorted(values.items())) if isinstance(values, Mapping) else values


class Own(Carrying, frozen=True, extra="forbid"):
    """One model, one task, and their training on fresh samples."""

    kind: ClassVar[str] = "own"

    model: NameOrObject = Field(description="the model: MODULE:OBJECT, or a name that a package adds")
    task: NameOrObject = Field(description="the task: MODULE:OBJECT, or a name that a package adds")
    model_values: Annotated[Values, BeforeValidator(_pairs)] = Field(default=(), description="sizes of the model")
    task_values: Annotated[Values, BeforeValidator(_pairs)] = Field(default=(), description="sizes of the task")
    optimiser: NameOrObject = Field(
        default=ADAMW, description=f"{', '.join(NAMED)}, or MODULE:OBJECT, any transformation of optax"
    )
    lr: Annotated[float, BeforeValidator(between(1e-8, 1e3))] = Field(default=0.01, description="learning rate")
    batch: Count = Field(default=256, description="fresh samples in a step")
    max_steps: Annotated[int, BeforeValidator(whole(1, 2**22))] = Field(default=2**13, description="most steps")
    target: Annotated[float, BeforeValidator(between(0.001, 1.0))] = Field(
        default=0.99, description="accuracy at which training stops"
    )
    test_samples: Annotated[int, BeforeValidator(whole(1, 2**20))] = Field(
        default=1024, description="fresh samples on which accuracy is measured"
    )

    @model_validator(mode="before")
    @classmethod
    def _take_objects(cls, values: Any) -> Any:
        """Name the objects, and take their sizes."""
        if not isinstance(values, dict):
            return values
        taken = dict(values)
        for option in PARTS:
            if option in taken and not is_kept_name(taken[option]):
                base, sizes = _taken_apart(option, taken[option])
                given = dict(_pairs(taken.get(f"{option}_values", ())))
                taken[option] = name_object(option, base)
                taken[f"{option}_values"] = _pairs({**sizes, **given})
                _built(option, taken[option], taken[f"{option}_values"])  # refuses what makes none
        optimiser = taken.get("optimiser", ADAMW)
        if optimiser is None:
            taken.pop("optimiser")
        elif not (isinstance(optimiser, str) and (optimiser in NAMED or is_kept_name(optimiser))):
            taken["optimiser"] = name_object("optimiser", _optimiser(optimiser))
        return taken

    @model_validator(mode="after")
    def _check_together(self) -> "Own":
        if self.max_steps * self.batch > MOST_SAMPLES:
            steps = f"{self.max_steps:,} steps of {self.batch:,}"
            raise SpecError("max_steps", f"expected at most 2^31 samples in all, got {steps}")
        return self

    def canonical_values(self) -> dict[str, Any]:
        """The values that differ from their defaults and have an effect."""
        values = super().canonical_values()
        if self.optimiser not in NAMED:
            values.pop("lr", None)  # the transformation has its own
        return values

    def told_values(self) -> dict[str, Any]:
        """Where the objects are, without their hashes, and every size by its own name."""
        values = self.canonical_values()
        places = {name: place_in(values.pop(name)) for name in ("model", "task")}
        sizes = {**dict(values.pop("task_values", ())), **dict(values.pop("model_values", ()))}
        if self.optimiser not in NAMED:
            values["optimiser"] = place_in(self.optimiser)
        return {**places, **sizes, **values}

    @property
    def axes(self) -> dict[str, Value]:
        """What can be varied: the sizes of the task and of the model, and the numbers of training."""
        own = {name: getattr(self, name) for name in ("lr", "batch", "max_steps", "target", "test_samples")}
        return {**dict(self.model_values), **dict(self.task_values), **own}

    def value_of(self, axis: str) -> Any:
        """The value on an axis."""
        return self.axes[axis]

    def rises_along(self, axis: str) -> bool:
        """Whether accuracy is expected to grow along an axis: not along the sizes of the task."""
        return axis not in dict(self.task_values)

    def tokens_seen(self, steps: float | None) -> int:
        """The tokens of all training samples."""
        return int(steps or 0) * self.batch * int(self.build("task").length)

    def vary(self, **changes: Any) -> "Own":
        """This setting with sizes of the model or the task, or numbers of training, changed."""
        known = self.axes
        parts: dict[str, Any] = {"task_values": dict(self.task_values), "model_values": dict(self.model_values)}
        for name, value in changes.items():
            if name not in known:
                raise SpecError("along", f"expected one of {', '.join(known)}, got {name!r}{nearest(name, known)}")
            owners = [part for part in ("task_values", "model_values") if name in parts[part]]
            (parts[owners[0]] if owners else parts)[name] = _like(name, known[name], value)
        return self.replace(**parts)

    @property
    def rate(self) -> float:
        """The learning rate in use."""
        return self.lr

    @property
    def most_steps(self) -> int:
        """The step limit in use."""
        return self.max_steps

    @property
    def method(self) -> str:
        """How the weights are made."""
        return "trained"

    @property
    def parameters(self) -> int:
        """The number of trained weights."""
        # Imported late: `training` comes after `spec`, which needs no simulator.
        return import_module("mnemoscope.training.own").weight_count(self)

    def build(self, option: str) -> Any:
        """The model or the task, with its sizes."""
        return _built(option, getattr(self, option), getattr(self, f"{option}_values"))


def _like(name: str, known: Value, value: Any) -> Value:
    """A value of the kind that the size has."""
    if isinstance(known, int) and not isinstance(known, bool):
        try:
            return whole(0, 2**31 - 1)(value)
        except ValueError as error:
            raise SpecError(name, str(error)) from None
    if isinstance(known, float):
        try:
            return between(-1e300, 1e300)(value)
        except ValueError as error:
            raise SpecError(name, str(error)) from None
    return value


def is_whole(option: str, thing: Any) -> bool:
    """Whether an object is a model or a task itself, rather than what makes one."""
    return not isinstance(thing, type) and all(hasattr(thing, name) for name in PARTS[option])


def _taken_apart(option: str, thing: Any) -> tuple[Any, dict[str, Value]]:
    """The object that a setting names, and its sizes."""
    if isinstance(thing, str):
        thing = import_object(option, place_of(option, "models" if option == "model" else "tasks", thing))
    if is_whole(option, thing):
        if not dataclasses.is_dataclass(thing):
            return thing, {}
        fields = {field.name: getattr(thing, field.name) for field in dataclasses.fields(thing) if field.init}
        sizes = {name: value for name, value in fields.items() if isinstance(value, Value)}
        return (type(thing) if len(sizes) == len(fields) else thing), sizes
    if not callable(thing):
        parts = ", ".join(PARTS[option])
        raise SpecError(option, f"expected an object with {parts}, or what makes one, got a {type(thing).__name__}")
    try:
        parameters = inspect.signature(thing).parameters.values()
    except (TypeError, ValueError):
        return thing, {}
    return thing, {one.name: one.default for one in parameters if isinstance(one.default, Value)}


@lru_cache(maxsize=256)
def _built(option: str, name: str, values: Values) -> Any:
    thing, place = find_object(option, name), place_in(name)
    try:
        if not is_whole(option, thing):
            thing = thing(**dict(values))
        elif values:
            thing = dataclasses.replace(thing, **dict(values))
    except SpecError:
        raise
    except Exception as error:  # a user's constructor may raise anything
        raise SpecError(option, f"expected {place} to make a {option}, got {one_line(error)}") from None
    missing = [part for part in PARTS[option] if not hasattr(thing, part)]
    if missing:
        raise SpecError(
            option, f"expected a {option} with {', '.join(PARTS[option])} from {place}, got no {missing[0]}"
        )
    return thing


def _optimiser(thing: Any) -> Any:
    """A transformation as optax has them."""
    if isinstance(thing, str) and not is_place(thing):
        known = f"{', '.join(NAMED)} or MODULE:OBJECT"
        raise SpecError("optimiser", f"expected one of {known}, got {thing!r}{nearest(thing, NAMED)}")
    made = import_object("optimiser", thing) if isinstance(thing, str) else thing
    if not (hasattr(made, "init") and hasattr(made, "update")):
        raise SpecError("optimiser", f"expected a transformation with init and update, got a {type(made).__name__}")
    return thing
