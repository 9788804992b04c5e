"""Paper B's associative memories: items, answers, and the matrix or MLP between them.

>>> Memory(items=300, dim=128).parameters
16384
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
    OneStepName,
    ScheduleName,
    WeightDecay,
)
from mnemoscope.spec.token_laws import UNIFORM, probabilities, read_tokens
from mnemoscope.spec.validators import between, is_name, is_place, law_or_object, one_of, one_of_names, whole

Method = Literal["hebbian", "least-squares", "one-step", "trained"]
# Methods that draw samples or follow a gradient, and so have an optimiser.
BY_GRADIENT = ("one-step", "trained")
MOST = 2**22
Count = Annotated[int, BeforeValidator(whole(1, MOST))]
CountOrZero = Annotated[int, BeforeValidator(whole(0, MOST))]


class Memory(Carrying, frozen=True, extra="forbid"):
    """One memory: N items, each with one of M answers, in dimension d.

    The answer to item x is x mod M; with `outputs` 0 every item has its own. A linear memory
    answers argmax_y u_y^T W e_x, an MLP of `width` m argmax_y u_y^T V^T phi(F e_x). Item x occurs
    with the probability that `frequencies` gives it, item 0 most often.
    """

    kind: ClassVar[str] = "memory"

    items: Count = Field(description="N: items to store")
    dim: Count = Field(description="d: dimension of items and answers")
    width: CountOrZero = Field(default=0, description="m: hidden units; 0 is a linear memory")
    rank: CountOrZero = Field(default=0, description="rank of a linear memory; 0 is full rank")
    outputs: CountOrZero = Field(default=0, description="M: answers; 0 gives every item its own")
    method: Annotated[Method, BeforeValidator(one_of(*get_args(Method)))] = Field(
        default="hebbian", description="how the weights are made"
    )
    embedding: Annotated[NameOrObject, BeforeValidator(law_or_object(LAWS))] = Field(
        default="sphere", description="law of items and answers: {laws}; or MODULE:OBJECT, a law of your own"
    )
    activation: Annotated[Activation, PlainValidator(one_of_names(ACTIVATIONS))] = Field(
        default="relu", description="activation of the hidden units"
    )
    order: Annotated[int, BeforeValidator(whole(0, 8))] = Field(
        default=0, description="Hermite order of the constructed MLP; 0 takes the activation's own"
    )
    lr: Annotated[float, BeforeValidator(between(0, 1e6))] = Field(
        default=0.0,
        description="learning rate; 0 is 1000 for a full matrix under adam, adamw and sign, else 0.03; N under gd "
        "and sgd, 1 under muon",
    )
    max_steps: Annotated[int, BeforeValidator(whole(0, 2**22))] = Field(
        default=0, description="most steps of training; 0 is 4,096 for a full matrix, else 32,768"
    )
    target: Annotated[float, BeforeValidator(between(0.001, 1.0))] = Field(
        default=0.99, description="accuracy at which training stops"
    )
    frequencies: Annotated[NameOrObject, BeforeValidator(read_tokens)] = Field(
        default=UNIFORM, description="how often each item occurs"
    )
    optimiser: OneStepName = Field(default="adamw", description="the optimiser of one-step and trained")
    batch: Batch = Field(
        default=0, description="samples in a step, drawn with replacement; 0 is the expectation over all items"
    )
    weight_decay: WeightDecay = Field(default=0.0, description=DECAY_TEXT)
    schedule: ScheduleName = Field(default="constant", description=SCHEDULE_TEXT)
    label_noise: LabelNoise = Field(default=0.0, description=NOISE_TEXT)
    bits: Bits = Field(default=0, description=BITS_TEXT)

    @model_validator(mode="before")
    @classmethod
    def _take_law(cls, values: Any) -> Any:
        """Name a law of the user's own after its content."""
        law = values.get("embedding") if isinstance(values, dict) else None
        if isinstance(law, str) and law not in LAWS and law in free_names("laws", LAWS):
            law = place_of("embedding", "laws", law)
        return {**values, "embedding": name_object("embedding", law)} if callable(law) or is_place(law) else values

    @model_validator(mode="before")
    @classmethod
    def _take_frequencies(cls, values: Any) -> Any:
        """Store a user's probabilities, and name them after their content."""
        if not isinstance(values, dict) or is_name(values.get("frequencies", UNIFORM)):
            return values
        # Imported late: `tasks` comes after `spec`, which must not depend on it.
        take = import_module("mnemoscope.tasks.token_files").take_frequencies
        kept = take(values["frequencies"], values.get("items"))
        return {"items": len(probabilities(kept, 0)), **values, "frequencies": kept}

    @model_validator(mode="after")
    def _check_together(self) -> "Memory":
        if self.width and self.rank:
            raise SpecError("rank", f"expected a linear memory (width 0) for it, got {self.width}")
        if self.rank > self.dim:
            raise SpecError("rank", f"expected at most dim = {self.dim}, got {self.rank}")
        if self.method in ("least-squares", "one-step") and (self.width or self.rank):
            sizes = f"width {self.width}, rank {self.rank}"
            raise SpecError("method", f"expected a linear memory of full rank for {self.method}, got {sizes}")
        self._check_training()
        if self.frequencies.startswith("file:") and len(self.probabilities) != self.items:
            own = len(self.probabilities)
            raise SpecError("items", f"expected as many items as probabilities, {own:,}, got {self.items:,}")
        if self.order and not (self.width and self.method == "hebbian"):
            raise SpecError("order", f"expected a constructed MLP (width, hebbian) for it, got {self.order}")
        most = max(self.items, self.labels)
        if self.embedding == "orthonormal" and most > self.dim:
            raise SpecError(
                "embedding", f"expected at most dim = {self.dim} orthonormal items and answers, got {most:,}"
            )
        return self

    def _check_training(self) -> None:
        """Refuse options of training where nothing is trained, or not step by step."""
        for name in ("optimiser", "batch", "label_noise"):
            value = getattr(self, name)
            if self.method not in BY_GRADIENT and value != type(self).model_fields[name].default:
                raise SpecError(name, f"expected the method one-step or trained for it, got {value!r}")
        for name in ("weight_decay", "schedule"):
            value = getattr(self, name)
            if self.method != "trained" and value != type(self).model_fields[name].default:
                raise SpecError(name, f"expected the method trained for it, got {value!r}")
        if self.method == "least-squares" and self.frequencies != UNIFORM:
            raise SpecError("frequencies", f"expected uniform for least-squares, got {self.frequencies!r}")
        if self.method == "trained" and self.optimiser == "newton":
            raise SpecError("optimiser", "expected the method one-step for newton, known at zero alone")
        if self.method == "trained" and not (self.lr or self.full_rank or self.optimiser in ("adam", "adamw")):
            raise SpecError("lr", f"expected a number for {self.optimiser} with two layers, got none")
        if self.method == "trained" and self.most_steps * self.batch > 2**32 - 1:
            steps = f"{self.most_steps:,} steps of {self.batch:,}"
            raise SpecError("max_steps", f"expected at most 2^32 samples in all, got {steps}")

    @property
    def probabilities(self) -> np.ndarray:
        """The probability of each item."""
        return probabilities(self.frequencies, self.items)

    @property
    def form(self) -> Literal["linear", "mlp"]:
        """The form of the memory."""
        return "mlp" if self.width else "linear"

    @property
    def labels(self) -> int:
        """M: the number of answers."""
        return self.outputs or self.items

    @property
    def path(self) -> Literal["exact", "autodiff"]:
        """Constructed weights take no gradient."""
        return "autodiff" if self.method == "trained" else "exact"

    @property
    def parameters(self) -> int:
        """d^2, 2 r d at rank r, or 2 m d for both layers."""
        return 2 * (self.width or self.rank) * self.dim or self.dim**2

    @property
    def full_rank(self) -> bool:
        """Whether the memory is one full matrix."""
        return not (self.width or self.rank)

    @property
    def rate(self) -> float:
        """The learning rate in use; by default that of the authors' experiments, or ours for other optimisers.

        In a step of gradient descent with rate N an item's own logit moves by about 1, and in one of Muon with rate 1
        the matrix moves by about 1 in its norm. A step of signs has the size of AdamW's.
        """
        if self.lr:
            return self.lr
        own = {"gd": float(self.items), "sgd": float(self.items), "muon": 1.0}
        return own.get(self.optimiser, 1000.0 if self.full_rank else 0.03)

    @property
    def most_steps(self) -> int:
        """The step limit in use; by default that of the authors' experiments."""
        return self.max_steps or (2**12 if self.full_rank else 2**15)
