"""Paper B's associative memories: items, answers, and the matrix or MLP between them.

>>> Memory(items=300, dim=128).parameters
16384
"""

from typing import Annotated, ClassVar, Literal, get_args

from pydantic import BeforeValidator, Field, PlainValidator, model_validator

from mnemoscope.spec.base import Spec, SpecError
from mnemoscope.spec.names import ACTIVATIONS, LAWS, Activation, Embedding
from mnemoscope.spec.validators import between, one_of, one_of_names, whole

Method = Literal["hebbian", "least-squares", "trained"]
MOST = 2**22
Count = Annotated[int, BeforeValidator(whole(1, MOST))]
CountOrZero = Annotated[int, BeforeValidator(whole(0, MOST))]


class Memory(Spec, frozen=True, extra="forbid"):
    """One memory: N items, each with one of M answers, in dimension d.

    The answer to item x is x mod M; with `outputs` 0 every item has its own. A linear memory
    answers argmax_y u_y^T W e_x, an MLP of `width` m argmax_y u_y^T V^T phi(F e_x).
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
    embedding: Annotated[Embedding, PlainValidator(one_of_names(LAWS))] = Field(
        default="sphere", description="law of items and answers"
    )
    activation: Annotated[Activation, PlainValidator(one_of_names(ACTIVATIONS))] = Field(
        default="relu", description="activation of the hidden units"
    )
    order: Annotated[int, BeforeValidator(whole(0, 8))] = Field(
        default=0, description="Hermite order of the constructed MLP; 0 takes the activation's own"
    )
    lr: Annotated[float, BeforeValidator(between(0, 1e6))] = Field(
        default=0.0, description="AdamW's learning rate; 0 is 1000 for a full matrix, else 0.03"
    )
    max_steps: Annotated[int, BeforeValidator(whole(0, 2**22))] = Field(
        default=0, description="most steps of training; 0 is 4,096 for a full matrix, else 32,768"
    )
    target: Annotated[float, BeforeValidator(between(0.001, 1.0))] = Field(
        default=0.99, description="accuracy at which training stops"
    )

    @model_validator(mode="after")
    def _check_together(self) -> "Memory":
        if self.width and self.rank:
            raise SpecError("rank", f"expected a linear memory (width 0) for it, got {self.width}")
        if self.rank > self.dim:
            raise SpecError("rank", f"expected at most dim = {self.dim}, got {self.rank}")
        if self.method == "least-squares" and (self.width or self.rank):
            sizes = f"width {self.width}, rank {self.rank}"
            raise SpecError("method", f"expected a linear memory of full rank for least-squares, got {sizes}")
        if self.order and not (self.width and self.method == "hebbian"):
            raise SpecError("order", f"expected a constructed MLP (width, hebbian) for it, got {self.order}")
        most = max(self.items, self.labels)
        if self.embedding == "orthonormal" and most > self.dim:
            raise SpecError(
                "embedding", f"expected at most dim = {self.dim} orthonormal items and answers, got {most:,}"
            )
        return self

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
        """The learning rate in use; by default that of the authors' experiments."""
        return self.lr or (1000.0 if self.full_rank else 0.03)

    @property
    def most_steps(self) -> int:
        """The step limit in use; by default that of the authors' experiments."""
        return self.max_steps or (2**12 if self.full_rank else 2**15)
