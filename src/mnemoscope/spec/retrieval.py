"""The token-retrieval model of paper A: one frozen, validated setting.

Simulator and theory both take this object, and share nothing else.

    >>> spec = Retrieval(vocab=1024, dim=128, length=64, samples=16_384)
    >>> spec.canonical()
    '{"dim":128,"kind":"retrieval","length":64,"samples":16384,"vocab":1024}'
"""

from importlib import import_module
from typing import Annotated, Any, ClassVar, Literal, get_args

import numpy as np
from pydantic import BeforeValidator, Field, PlainValidator, model_validator

from mnemoscope.spec.base import SpecError
from mnemoscope.spec.carrying import Carrying
from mnemoscope.spec.installed import free_names, place_of
from mnemoscope.spec.names import ACTIVATIONS, LAWS, Activation, NameOrObject
from mnemoscope.spec.objects import name_object
from mnemoscope.spec.optimisers import (
    BITS_TEXT,
    DECAY_TEXT,
    NOISE_TEXT,
    SCHEDULE_TEXT,
    Batch,
    Bits,
    LabelNoise,
    ScheduleName,
    WeightDecay,
)
from mnemoscope.spec.token_laws import MOST_UNEVEN, UNIFORM, Band, bands, probabilities, read_tokens
from mnemoscope.spec.validators import (
    FROM_FILE,
    between,
    is_name,
    is_place,
    law_or_file,
    one_of,
    one_of_names,
    step_size,
    whole,
)

Trigger = Literal["keys", "additive"]
Attention = Literal["learned", "locked"]
Then = Literal["none", "gd", "sgd", "adam", "adamw", "muon", "sign"]
Stop = Literal["steps", "settled"]

# Sample indices are 32-bit counters of the random streams.
MOST_SAMPLES = 2**32 - 1

Size = Annotated[int, BeforeValidator(whole(1, 2**31 - 1))]
Samples = Annotated[int, BeforeValidator(whole(1, MOST_SAMPLES))]
# Step sizes for which float32 neither overflows nor loses the signal, whatever the setting.
RATE = between(1e-30, 1e38)
Rate = Annotated[float | None, BeforeValidator(lambda v: None if v is None else RATE(v))]
Eta = Annotated[float | Literal["limit"], BeforeValidator(step_size(1e-12, 1e12))]
Gamma = Annotated[float | Literal["limit"], BeforeValidator(step_size(1e-12, 1e24))]

# Learning rates of further training; 1 for others.
USUAL_RATES = {"adam": 0.01, "adamw": 0.01, "muon": 0.1, "sign": 0.001}

# The sizes as formulas write them.
LETTERS = {"vocab": "V", "dim": "d", "length": "L", "samples": "N", "width": "m"}


NO_FURTHER_TRAINING: dict[str, Any] = {
    "then": "none",
    "steps": 0,
    "stop": "steps",
    "lr": None,
    "batch": 0,
    "weight_decay": 0.0,
    "schedule": "constant",
    "label_noise": 0.0,
}


class Retrieval(Carrying, frozen=True, extra="forbid"):
    """One setting of the retrieval task, its model and its training.

    A sequence of `length` tokens out of `vocab` has one informative position; a fixed permutation
    of the token there is the label. `samples` sequences train a one-layer transformer of embedding
    dimension `dim` in three gradient steps.
    """

    kind: ClassVar[str] = "retrieval"
    history: ClassVar[Literal["steps", "curve"]] = "steps"
    alone: ClassVar[bool] = True

    vocab: Annotated[int, BeforeValidator(whole(2, 2**31 - 1))] = Field(
        description="V: number of tokens, and of labels"
    )
    dim: Size = Field(description="d: embedding dimension")
    length: Size = Field(description="L: tokens in a sequence, one of them informative")
    samples: Samples = Field(description="N: training sequences, the same in all steps")
    width: Annotated[int, BeforeValidator(whole(0, 2**31 - 1))] = Field(
        default=0, description="m: hidden units of the fixed random MLP; 0 leaves the MLP out"
    )
    activation: Annotated[Activation, PlainValidator(one_of_names(ACTIVATIONS))] = Field(
        default="relu", description="the MLP's activation"
    )
    embedding: Annotated[NameOrObject, BeforeValidator(law_or_file(LAWS))] = Field(
        default="gaussian",
        # Help fills in the laws, including those registered later.
        description="law of the embeddings: {laws}, of which "
        "orthonormal needs dim >= vocab; file:PATH, a matrix of your own; or MODULE:OBJECT, a law of your own",
    )
    tokens: Annotated[NameOrObject, BeforeValidator(read_tokens)] = Field(
        default=UNIFORM,
        description="how often each token occurs: uniform; zipf:A, token v with probability proportional to "
        "(v + 1)^-A; file:PATH, probabilities of your own; or MODULE:OBJECT, a function from V to them",
    )
    trigger: Annotated[Trigger, BeforeValidator(one_of(*get_args(Trigger)))] = Field(
        default="keys", description="where the trigger vector enters: the keys alone, or keys and values"
    )
    eta: Eta = Field(default="limit", description="size of the first step; limit means towards 0")
    gamma: Gamma = Field(default="limit", description="size of the second and third step; limit means towards infinity")
    attention: Annotated[Attention, BeforeValidator(one_of(*get_args(Attention)))] = Field(
        default="learned", description="learned by the second step, or locked on the informative token throughout"
    )
    then: Annotated[Then, BeforeValidator(one_of(*get_args(Then)))] = Field(
        default="none", description="training after the three steps, by default on all samples in every step"
    )
    steps: Annotated[int, BeforeValidator(whole(0, 10**9))] = Field(
        default=0, description="how many such steps, or the most of them"
    )
    stop: Annotated[Stop, BeforeValidator(one_of(*get_args(Stop)))] = Field(
        default="steps", description="when further training ends: after all its steps, or once it has settled"
    )
    lr: Rate = Field(
        default=None,
        description="their learning rate; by default 1 for gd and sgd, 0.01 for adam and adamw, 0.1 for muon and 0.001 "
        "for sign, ten times that with --stop settled",
    )
    batch: Batch = Field(
        default=0, description="samples in such a step, in the order of their numbers, over and over; 0 means all"
    )
    weight_decay: WeightDecay = Field(default=0.0, description=DECAY_TEXT)
    schedule: ScheduleName = Field(default="constant", description=SCHEDULE_TEXT)
    label_noise: LabelNoise = Field(
        default=0.0, description=f"{NOISE_TEXT}, in training after the three steps, which see the right ones"
    )
    bits: Bits = Field(default=0, description=BITS_TEXT)
    test_samples: Samples = Field(default=4096, description="fresh sequences on which accuracy is measured")

    @model_validator(mode="before")
    @classmethod
    def _take_matrix(cls, values: Any) -> Any:
        """Store a user's matrix and probabilities, and name them and a law of their own after their content."""
        if not isinstance(values, dict):
            return values
        # Imported late: `tasks` and `models` come after `spec`, which must not depend on them.
        if not is_name(values.get("tokens")):
            values = import_module("mnemoscope.tasks.token_files").take_probabilities(values)
        law = values.get("embedding")
        if isinstance(law, str) and law not in LAWS and law in free_names("laws", LAWS):
            law = place_of("embedding", "laws", law)
        if callable(law) or is_place(law):
            return {**values, "embedding": name_object("embedding", law)}
        if not is_name(law):
            values = import_module("mnemoscope.models.matrices").take_matrix(values)
        return values

    @model_validator(mode="after")
    def _check_together(self) -> "Retrieval":
        if self.tokens.startswith("file:") and len(self.probabilities) != self.vocab:
            own = len(self.probabilities)
            raise SpecError("tokens", f"expected vocab = {self.vocab:,} probabilities, got {own:,}")
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
        if self.then == "none" and self.stop != "steps":
            raise SpecError("stop", f"expected steps unless `then` names an optimiser, got {self.stop!r}")
        if self.then == "none" and self.lr is not None:
            raise SpecError("lr", f"expected none unless `then` names an optimiser, got {self.lr}")
        self._check_further()
        return self

    def _check_further(self) -> None:
        """Refuse options of further training without it, and what does not go with them."""
        for name in ("batch", "weight_decay", "schedule", "label_noise"):
            value = getattr(self, name)
            if self.then == "none" and value != type(self).model_fields[name].default:
                raise SpecError(name, f"expected none unless `then` names an optimiser, got {value!r}")
        if self.batch > self.samples:
            raise SpecError("batch", f"expected at most samples = {self.samples:,}, got {self.batch:,}")
        if self.batch * self.steps > MOST_SAMPLES:
            taken = f"{self.steps:,} steps of {self.batch:,}"
            raise SpecError("steps", f"expected at most 2^32 samples in all, got {taken}")
        for name in ("batch", "schedule"):
            value = getattr(self, name)
            if self.settles and value != type(self).model_fields[name].default:
                raise SpecError(
                    name, f"expected none with --stop settled, which watches the loss itself, got {value!r}"
                )

    @property
    def path(self) -> Literal["exact", "autodiff"]:
        """The three steps are exact: sums over tables of tokens, and an MLP's formulas. What follows is not."""
        return "exact" if self.then == "none" else "autodiff"

    @property
    def axes(self) -> dict[str, Any]:
        """The sizes."""
        return {name: getattr(self, name) for name in LETTERS}

    def rises_along(self, axis: str) -> bool:
        """Accuracy rises with dimension, samples and width, and falls with the vocabulary and the length."""
        return axis in ("dim", "samples", "width")

    def tokens_seen(self, steps: float | None) -> int:
        """The tokens of the training samples."""
        return self.samples * self.length

    @property
    def frozen_embeddings(self) -> bool:
        """Whether training leaves the embeddings as drawn, so that scores are tables by token."""
        return True

    @property
    def triggers(self) -> int:
        """The number of trigger vectors that mark informative tokens."""
        return 1

    @property
    def largest_token_probability(self) -> float:
        """The probability of the most frequent token."""
        return 1 / self.vocab if self.tokens == UNIFORM else float(self.probabilities.max())

    @property
    def probabilities(self) -> np.ndarray:
        """The probability of each token."""
        return probabilities(self.tokens, self.vocab)

    @property
    def bands(self) -> tuple[Band, ...]:
        """Tokens by how often they are expected to be informative in training."""
        return bands(self.probabilities, self.samples)

    def most_in_a_cell(self, samples: int) -> float:
        """A bound on the mean count of one token in sequences of one label.

        With p the largest token probability: N p as the informative token, N L p^2 as noise.
        """
        p = self.largest_token_probability
        return samples * self.length * p**2 + samples * p

    @property
    def from_file(self) -> bool:
        """Whether the embeddings are a user's matrix."""
        return FROM_FILE.fullmatch(self.embedding) is not None

    @property
    def hidden(self) -> bool:
        """Whether there is an MLP."""
        return self.width > 0

    @property
    def learning_rate(self) -> float:
        """The learning rate after the three steps (the defaults are our choice).

        Training until it has settled ends with a falling rate, and may begin with a larger one.
        """
        if self.lr is not None:
            return self.lr
        usual = USUAL_RATES.get(self.then, 1.0)
        return 10 * usual if self.settles else usual

    @property
    def settles(self) -> bool:
        """Whether further training ends once it has settled."""
        return self.stop == "settled"

    def canonical_values(self) -> dict[str, Any]:
        """The values that differ from their defaults and have an effect."""
        values = super().canonical_values()
        if self.width == 0:
            values.pop("activation", None)  # no MLP uses it
        return values

    def three_steps(self) -> "Retrieval":
        """The setting without its further training."""
        return self.replace(**NO_FURTHER_TRAINING)

    def program(self) -> "Retrieval":
        """The setting that stands for all that share a compiled training program.

        They differ only in the program's arguments: counts, rates, token probabilities and the embeddings themselves.
        """
        return self.replace(
            samples=1,
            test_samples=1,
            activation=self.activation if self.width else "relu",
            embedding="gaussian",
            tokens=UNIFORM if self.tokens == UNIFORM else MOST_UNEVEN,
            eta="limit" if self.eta == "limit" else 1.0,
            gamma="limit" if self.gamma == "limit" else 1.0,
            # Further training rounds its own weights, at its end.
            bits=self.bits if self.then == "none" else 0,
            **NO_FURTHER_TRAINING,
        )
