"""The token-retrieval model of paper A: one frozen, validated setting.

The same object goes to the simulator and to the theory, and it is all that the two share.

    >>> spec = Retrieval(vocab=1024, dim=128, length=64, samples=16_384)
    >>> spec.canonical()
    '{"dim":128,"kind":"retrieval","length":64,"samples":16384,"vocab":1024}'
"""

from importlib import import_module
from typing import Annotated, Any, ClassVar, Literal, get_args

from pydantic import BeforeValidator, Field, PlainValidator, model_validator

from mnemoscope.spec.base import Spec, SpecError
from mnemoscope.spec.names import ACTIVATIONS, LAWS, Activation
from mnemoscope.spec.validators import FROM_FILE, between, is_name, law_or_file, one_of, one_of_names, step_size, whole

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


class Retrieval(Spec, frozen=True, extra="forbid"):
    """One setting of the retrieval task, its model and its training.

    A sequence of `length` tokens out of `vocab` has one informative position; the label is a
    fixed permutation of the token there. `samples` sequences train a one-layer transformer of
    embedding dimension `dim` in three gradient steps.
    """

    kind: ClassVar[str] = "retrieval"
    history: ClassVar[Literal["steps", "curve"]] = "steps"

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
    activation: Annotated[Activation, PlainValidator(one_of_names(ACTIVATIONS))] = Field(
        default="relu", description="the MLP's activation"
    )
    embedding: Annotated[str, BeforeValidator(law_or_file(LAWS))] = Field(
        default="gaussian",
        # Help puts in the laws, of which there may be more by then.
        description="law of the embeddings: {laws}, of which "
        "orthonormal needs dim >= vocab; or file:PATH, a matrix of your own",
    )
    trigger: Annotated[Trigger, BeforeValidator(one_of(*get_args(Trigger)))] = Field(
        default="keys", description="where the trigger vector enters: the keys alone, or keys and values"
    )
    eta: Eta = Field(default="limit", description="first step's size; limit means towards 0")
    gamma: Gamma = Field(default="limit", description="size of the second and third step; limit means towards infinity")
    attention: Annotated[Attention, BeforeValidator(one_of(*get_args(Attention)))] = Field(
        default="learned", description="learned by the second step, or locked on the informative token throughout"
    )
    then: Annotated[Then, BeforeValidator(one_of(*get_args(Then)))] = Field(
        default="none", description="full-batch training that goes on after the three steps"
    )
    steps: Annotated[int, BeforeValidator(whole(0, 10**9))] = Field(default=0, description="how many such steps")
    lr: Rate = Field(default=None, description="their learning rate; by default 1 for gd and 0.01 for adamw")
    test_samples: Annotated[int, BeforeValidator(whole(1, MOST_SAMPLES))] = Field(
        default=4096, description="fresh sequences on which accuracy is measured"
    )

    @model_validator(mode="before")
    @classmethod
    def _take_matrix(cls, values: Any) -> Any:
        """A matrix of the user's own is kept, and named by its content."""
        if not isinstance(values, dict) or is_name(values.get("embedding")):
            return values
        # By name: what keeps matrices stands after settings, which depend on nothing of it.
        return import_module("mnemoscope.models.matrices").take_matrix(values)

    @model_validator(mode="after")
    def _check_together(self) -> "Retrieval":
        most_in_a_cell = self.most_in_a_cell(self.samples)
        if most_in_a_cell > 2**30:
            raise SpecError(
                "samples",
                f"expected few enough for 32-bit counts, about {2**30 / most_in_a_cell:.0%} of "
                f"this at vocab = {self.vocab} and length = {self.length}, got {self.samples:,}",
            )
        if self.embedding == "orthonormal" and self.dim < self.vocab:
            raise SpecError("dim", f"expected at least vocab = {self.vocab} for orthonormal embeddings, got {self.dim}")
        if self.eta == "limit" and self.gamma != "limit":
            raise SpecError(
                "gamma",
                "expected 'limit' while eta is 'limit' (attention moves by gamma * eta, which "
                f"would vanish), got {self.gamma:g}; give eta a number too",
            )
        if self.attention == "locked" and (self.eta, self.gamma) != ("limit", "limit"):
            field = "eta" if self.eta != "limit" else "gamma"
            raise SpecError(
                field, f"expected 'limit' with locked attention (one step is taken), got {getattr(self, field):g}"
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

    @property
    def frozen_embeddings(self) -> bool:
        """Whether training leaves the embeddings as drawn: what a position adds is then a table by token."""
        return True

    @property
    def triggers(self) -> int:
        """How many trigger vectors mark informative tokens."""
        return 1

    @property
    def largest_token_probability(self) -> float:
        """The chance of the most frequent token: tokens are uniform."""
        return 1 / self.vocab

    def most_in_a_cell(self, samples: int) -> float:
        """A bound on how often one token stands in sequences of one label, on average.

        With p the largest token probability: N p as the informative token, N L p^2 as any other.
        """
        p = self.largest_token_probability
        return samples * self.length * p**2 + samples * p

    @property
    def from_file(self) -> bool:
        """Whether the embeddings are a user's own matrix."""
        return FROM_FILE.fullmatch(self.embedding) is not None

    @property
    def hidden(self) -> bool:
        """Whether there is an MLP."""
        return self.width > 0

    @property
    def learning_rate(self) -> float:
        """The rate of the training that goes on after the three steps (our choice by default)."""
        if self.lr is not None:
            return self.lr
        return 0.01 if self.then == "adamw" else 1.0

    def canonical_values(self) -> dict[str, Any]:
        """What differs from its default and matters."""
        values = super().canonical_values()
        if self.width == 0:
            values.pop("activation", None)  # there is no MLP for it to act in
        return values

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
