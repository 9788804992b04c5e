"""What to run: one frozen, validated setting of the token-retrieval model.

The same object goes to the simulator and to the theory, and it is all that the two share.

    >>> spec = Retrieval(vocab=1024, dim=128, length=64, samples=16_384)
    >>> spec.canonical()
    '{"dim":128,"kind":"retrieval","length":64,"samples":16384,"vocab":1024}'
"""

import hashlib
import json
import tomllib
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, get_args

from pydantic import BaseModel, BeforeValidator, Field, ValidationError, model_validator

from mnemoscope.fields import nearest, one_of, positive, step_size, whole

Activation = Literal["relu", "gelu", "tanh", "linear", "hermite2", "hermite3"]
Embedding = Literal["gaussian", "sphere", "orthonormal"]
Trigger = Literal["keys", "additive"]
Attention = Literal["learned", "locked"]
Then = Literal["none", "gd", "adamw"]

# Sample indices are 32-bit counters of the random streams.
MOST_SAMPLES = 2**32 - 1

Size = Annotated[int, BeforeValidator(whole(1, 2**31 - 1))]
Rate = Annotated[float | None, BeforeValidator(lambda v: None if v is None else positive(v))]
StepSize = Annotated[float | Literal["limit"], BeforeValidator(step_size)]


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
    eta: StepSize = Field(default="limit", description="first step's size; limit means towards 0")
    gamma: StepSize = Field(
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
    lr: Annotated[float | None, BeforeValidator(lambda v: None if v is None else positive(v))] = (
        Field(
            default=None, description="their learning rate; by default 1 for gd and 0.01 for adamw"
        )
    )
    test_samples: Annotated[int, BeforeValidator(whole(1, MOST_SAMPLES))] = Field(
        default=4096, description="fresh sequences on which accuracy is measured"
    )

    @model_validator(mode="after")
    def _check_together(self) -> "Retrieval":
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

    @classmethod
    def read(cls, values: dict[str, Any]) -> "Retrieval":
        """A spec from named values; whatever is wrong becomes one `SpecError`."""
        for name in values:
            if name not in cls.model_fields:
                raise SpecError(
                    name, f"expected a known setting, got {name!r}{nearest(name, cls.model_fields)}"
                )
        try:
            return cls(**values)
        except ValidationError as error:
            first = error.errors()[0]
            cause = first.get("ctx", {}).get("error")
            if isinstance(cause, SpecError):
                raise SpecError(cause.field, cause.message) from None
            field = str(first["loc"][0]) if first["loc"] else ""
            if first["type"] == "missing":
                raise SpecError(field, "expected a value, got none") from None
            raise SpecError(field, first["msg"].removeprefix("Value error, ")) from None

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

    @property
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


def read_toml(path: Path) -> dict[str, Any]:
    """The settings in a TOML file, as named values still to be validated."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise SpecError("spec", f"expected a readable TOML file, got {path} ({reason})") from None
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SpecError("spec", f"expected TOML, got {path}: {error}") from None
    values = {name.replace("-", "_"): value for name, value in table.items()}
    for name in values:
        if name not in Retrieval.model_fields:
            raise SpecError(
                "spec",
                f"expected known settings, got {name!r} in {path}"
                f"{nearest(name, Retrieval.model_fields)}",
            )
    return values
