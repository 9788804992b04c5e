"""What to run: one frozen, validated setting of the token-retrieval model.

The same object goes to the simulator and to the theory, and it is all that the two share.

    >>> spec = Retrieval(vocab=1024, dim=128, length=64, samples=16_384)
    >>> spec.canonical()
    '{"dim":128,"kind":"retrieval","length":64,"samples":16384,"vocab":1024}'
"""

import hashlib
import json
import tomllib
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, get_args

from pydantic import BaseModel, BeforeValidator, Field, ValidationError, model_validator

from mnemoscope.fields import between, nearest, one_of, step_size, whole

Activation = Literal["relu", "gelu", "tanh", "linear", "hermite2", "hermite3"]
Embedding = Literal["gaussian", "sphere", "orthonormal"]
Trigger = Literal["keys", "additive"]
Attention = Literal["learned", "locked"]
Then = Literal["none", "gd", "adamw"]

# Sample indices are 32-bit counters of the random streams.
MOST_SAMPLES = 2**32 - 1

Size = Annotated[int, BeforeValidator(whole(1, 2**31 - 1))]
# Step sizes within which float32 neither overflows nor loses the signal, whatever the setting.
RATE = between(1e-30, 1e38)
Rate = Annotated[float | None, BeforeValidator(lambda v: None if v is None else RATE(v))]
Eta = Annotated[float | Literal["limit"], BeforeValidator(step_size(1e-12, 1e12))]
Gamma = Annotated[float | Literal["limit"], BeforeValidator(step_size(1e-12, 1e24))]


# The sizes as the formulas write them.
LETTERS = {"vocab": "V", "dim": "d", "length": "L", "samples": "N", "width": "m"}


class SpecError(ValueError):
    """A setting that cannot be run: `field`, and one line that says what was expected."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(f"{field}: {message}" if field else message)
        self.field = field
        self.message = message


class Retrieval(BaseModel, frozen=True, extra="forbid"):
    """One setting of the retrieval task, its model and its training.

    A sequence of `length` tokens out of `vocab` has one informative position; the label is a
    fixed permutation of the token there. `samples` sequences train a one-layer transformer of
    embedding dimension `dim` in three gradient steps.

    The defaults are part of every spec's identity and never change: a spec's id leaves out what
    equals its default, so an option added later does not rename an earlier experiment.
    """

    kind: ClassVar[str] = "retrieval"

    vocab: Annotated[int, BeforeValidator(whole(2, 2**31 - 1))] = Field(
        description="V: number of tokens, and of labels"
    )
    dim: Size = Field(description="d: embedding dimension")
    length: Size = Field(description="L: tokens in a sequence, one of them informative")
    samples: Annotated[int, BeforeValidator(whole(1, MOST_SAMPLES))] = Field(
        description="N: training sequences, the same in all steps"
    )
    width: Annotated[int, BeforeValidator(whole(0, 2**31 - 1))] = Field(
        default=0, description="m: hidden units of the fixed random MLP; 0 leaves the MLP out"
    )
    activation: Annotated[Activation, BeforeValidator(one_of(*get_args(Activation)))] = Field(
        default="relu", description="the MLP's activation"
    )
    embedding: Annotated[Embedding, BeforeValidator(one_of(*get_args(Embedding)))] = Field(
        default="gaussian", description="law of the embeddings; orthonormal needs dim >= vocab"
    )
    trigger: Annotated[Trigger, BeforeValidator(one_of(*get_args(Trigger)))] = Field(
        default="keys",
        description="where the trigger vector enters: the keys alone, or keys and values",
    )
    eta: Eta = Field(default="limit", description="first step's size; limit means towards 0")
    gamma: Gamma = Field(
        default="limit",
        description="size of the second and third step; limit means towards infinity",
    )
    attention: Annotated[Attention, BeforeValidator(one_of(*get_args(Attention)))] = Field(
        default="learned",
        description="learned by the second step, or locked on the informative token throughout",
    )
    then: Annotated[Then, BeforeValidator(one_of(*get_args(Then)))] = Field(
        default="none", description="full-batch training that goes on after the three steps"
    )
    steps: Annotated[int, BeforeValidator(whole(0, 10**9))] = Field(
        default=0, description="how many such steps"
    )
    lr: Rate = Field(
        default=None, description="their learning rate; by default 1 for gd and 0.01 for adamw"
    )
    test_samples: Annotated[int, BeforeValidator(whole(1, MOST_SAMPLES))] = Field(
        default=4096, description="fresh sequences on which accuracy is measured"
    )

    @model_validator(mode="after")
    def _check_together(self) -> "Retrieval":
        most_in_a_cell = self.samples * self.length / self.vocab**2 + self.samples / self.vocab
        if most_in_a_cell > 2**30:
            raise SpecError(
                "samples",
                f"expected few enough for 32-bit counts, about {2**30 / most_in_a_cell:.0%} of "
                f"this at vocab = {self.vocab} and length = {self.length}, got {self.samples:,}",
            )
        if self.embedding == "orthonormal" and self.dim < self.vocab:
            raise SpecError(
                "dim",
                f"expected at least vocab = {self.vocab} for orthonormal embeddings, "
                f"got {self.dim}",
            )
        if self.eta == "limit" and self.gamma != "limit":
            raise SpecError(
                "gamma",
                "expected 'limit' while eta is 'limit' (attention moves by gamma * eta, which "
                f"would vanish), got {self.gamma:g}; give eta a number too",
            )
        if self.attention == "locked" and (self.eta, self.gamma) != ("limit", "limit"):
            field = "eta" if self.eta != "limit" else "gamma"
            raise SpecError(
                field,
                f"expected 'limit' with locked attention (one step is taken), "
                f"got {getattr(self, field):g}",
            )
        if self.attention == "locked" and self.then != "none":
            raise SpecError("then", f"expected none with locked attention, got {self.then!r}")
        if (self.then == "none") != (self.steps == 0):
            raise SpecError(
                "steps",
                "expected 0 unless `then` names an optimiser, and at least 1 when it does, "
                f"got {self.steps} with then={self.then!r}",
            )
        if self.then == "none" and self.lr is not None:
            raise SpecError("lr", f"expected none unless `then` names an optimiser, got {self.lr}")
        return self

    if not TYPE_CHECKING:  # type checkers see pydantic's own, with a keyword for every field

        def __init__(self, **values: Any) -> None:
            """A spec from named values; whatever is wrong becomes one `SpecError`."""
            _check_names(values, type(self).model_fields)
            try:
                super().__init__(**values)
            except ValidationError as error:
                raise _as_spec_error(error) from None

    @classmethod
    def read(cls, values: dict[str, Any]) -> "Retrieval":
        """A spec from values that still have to be looked at, such as text."""
        return cls(**values)

    @property
    def learning_rate(self) -> float:
        """The rate of the training that goes on after the three steps (our choice by default)."""
        if self.lr is not None:
            return self.lr
        return 0.01 if self.then == "adamw" else 1.0

    def canonical(self) -> str:
        """Canonical JSON: sorted keys, no spaces, nothing that equals its default."""
        told = self.model_dump(exclude_defaults=True)
        if self.width == 0:
            told.pop("activation", None)  # there is no MLP for it to act in
        return json.dumps({"kind": self.kind, **told}, sort_keys=True, separators=(",", ":"))

    @cached_property
    def id(self) -> str:
        """Sixteen hexadecimal digits of the canonical JSON's SHA-256."""
        return hashlib.sha256(self.canonical().encode()).hexdigest()[:16]

    def program(self) -> "Retrieval":
        """The part that decides which training code is compiled.

        A setting that stands for all those that differ from it only in what a compiled program
        takes as arguments: counts, rates, and the embeddings themselves.
        """
        return self.replace(
            samples=1,
            test_samples=1,
            activation=self.activation if self.width else "relu",
            embedding="gaussian",
            eta="limit" if self.eta == "limit" else 1.0,
            gamma="limit" if self.gamma == "limit" else 1.0,
            then="none",
            steps=0,
            lr=None,
        )

    def replace(self, **changes: Any) -> "Retrieval":
        """The same setting with some values changed, validated anew."""
        return Retrieval.read({**self.model_dump(), **changes})


def _check_names(values: dict[str, Any], known: Mapping[str, Any], where: str = "") -> None:
    for name in values:
        if name not in known:
            raise SpecError(
                where and "spec",
                f"expected known settings, got {name!r}{where}{nearest(name, known)}",
            )


def _as_spec_error(error: ValidationError) -> SpecError:
    """The first thing that is wrong, in one line."""
    first = error.errors()[0]
    cause = first.get("ctx", {}).get("error")
    if isinstance(cause, SpecError):
        return SpecError(cause.field, cause.message)
    field = str(first["loc"][0]) if first["loc"] else ""
    if first["type"] == "missing":
        return SpecError(field, "expected a value, got none")
    return SpecError(field, first["msg"].removeprefix("Value error, "))


def read_toml(path: Path) -> dict[str, Any]:
    """The settings in a TOML file, as named values still to be validated."""
    shown = repr(str(path))
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SpecError(
            "spec", f"expected a readable TOML file, got {shown} ({error.strerror})"
        ) from None
    except (ValueError, RecursionError) as error:  # not UTF-8, not TOML, or past Python's limits
        reason = str(error).splitlines()[0]
        raise SpecError("spec", f"expected TOML, got {shown}: {reason}") from None
    values = {name.replace("-", "_"): value for name, value in table.items()}
    _check_names(values, Retrieval.model_fields, f" in {shown}")
    return values
