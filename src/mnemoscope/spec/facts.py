"""Paper B's factual recall: subjects, relations and answers, and the transformer that learns them.

>>> Facts(subjects=16, relations=16, answers=8, dim=32, heads=4, head_dim=8, width=64).outputs
128
"""

from importlib import import_module
from typing import Annotated, Any, ClassVar, Literal, get_args

from pydantic import BeforeValidator, Field, model_validator

from mnemoscope.spec.base import Spec, SpecError, read_option
from mnemoscope.spec.names import NameOrObject
from mnemoscope.spec.optimisers import (
    BITS_TEXT,
    DECAY_TEXT,
    NOISE_TEXT,
    SCHEDULE_TEXT,
    Bits,
    LabelNoise,
    OptimiserName,
    ScheduleName,
    WeightDecay,
)
from mnemoscope.spec.token_laws import UNIFORM, probabilities, read_tokens
from mnemoscope.spec.validators import between, is_name, one_of, whole

Mixing = Literal["softmax", "linear"]
Making = Literal["trained", "constructed"]
# The most facts with frequencies of their own.
MOST_IN_TABLE = 2**22
Count = Annotated[int, BeforeValidator(whole(1, 2**20))]
CountOrZero = Annotated[int, BeforeValidator(whole(0, 2**20))]


class Facts(Spec, frozen=True, extra="forbid"):
    """One setting of the factual-recall task, its transformer and its training.

    A sequence of `length` tokens has one of S subjects, one of R relations, noise, and the end token.
    Every pair (s, r) has one of the D answers that belong to r. A one-layer transformer with frozen
    random embeddings names it from the last token.
    """

    kind: ClassVar[str] = "facts"

    subjects: Count = Field(description="S: number of subjects")
    relations: Count = Field(description="R: number of relations")
    answers: Count = Field(description="D: answers that belong to each relation")
    dim: Count = Field(description="d: embedding dimension")
    heads: Count = Field(description="H: attention heads")
    head_dim: Count = Field(description="d_h: dimension of a head")
    width: CountOrZero = Field(default=0, description="m: hidden units of the MLP; 0 leaves the MLP out")
    length: Annotated[int, BeforeValidator(whole(3, 2**16))] = Field(
        default=32, description="T: tokens in a sequence, with subject, relation and end"
    )
    noise: CountOrZero = Field(default=0, description="noise tokens; 0 means as many as subjects and relations")
    mixing: Annotated[Mixing, BeforeValidator(one_of(*get_args(Mixing)))] = Field(
        default="softmax", description="how attention weighs tokens"
    )
    method: Annotated[Making, BeforeValidator(one_of(*get_args(Making)))] = Field(
        default="trained", description="weights trained, or constructed"
    )
    lr: Annotated[float, BeforeValidator(between(1e-8, 1e3))] = Field(default=0.01, description="learning rate")
    batch: Count = Field(default=1024, description="fresh sequences in a step")
    max_steps: Annotated[int, BeforeValidator(whole(1, 2**22))] = Field(
        default=2**14, description="most steps of training"
    )
    target: Annotated[float, BeforeValidator(between(0.001, 1.0))] = Field(
        default=0.99, description="accuracy at which training stops"
    )
    test_samples: Annotated[int, BeforeValidator(whole(1, 2**24))] = Field(
        default=1024, description="fresh sequences on which accuracy is measured"
    )
    optimiser: OptimiserName = Field(default="adamw", description="the optimiser of training")
    weight_decay: WeightDecay = Field(default=0.0, description=DECAY_TEXT)
    schedule: ScheduleName = Field(default="constant", description=SCHEDULE_TEXT)
    label_noise: LabelNoise = Field(default=0.0, description=NOISE_TEXT)
    bits: Bits = Field(default=0, description=BITS_TEXT)
    frequencies: Annotated[NameOrObject, BeforeValidator(read_tokens)] = Field(
        default=UNIFORM,
        description="how often sequences ask for each fact: uniform; zipf:A, the k-th with probability proportional "
        "to k^-A; file:PATH, probabilities of your own; or MODULE:OBJECT, a function from the number of facts to them",
    )

    @model_validator(mode="before")
    @classmethod
    def _take_frequencies(cls, values: Any) -> Any:
        """Store a user's probabilities, and name them after their content."""
        if not isinstance(values, dict) or is_name(values.get("frequencies", UNIFORM)):
            return values
        count = None
        if {"subjects", "relations"} <= set(values):
            subjects, relations = (read_option(name, whole(1), values[name]) for name in ("subjects", "relations"))
            count = subjects * relations
        # Imported late: `tasks` comes after `spec`, which must not depend on it.
        take = import_module("mnemoscope.tasks.token_files").take_frequencies
        return {**values, "frequencies": take(values["frequencies"], count)}

    @model_validator(mode="after")
    def _check_together(self) -> "Facts":
        if self.max_steps * self.batch > 2**32 - 1:
            steps = f"{self.max_steps:,} steps of {self.batch:,}"
            raise SpecError("max_steps", f"expected at most 2^32 sequences in all, got {steps}")
        for name in ("optimiser", "weight_decay", "schedule", "label_noise"):
            value = getattr(self, name)
            if self.method == "constructed" and value != type(self).model_fields[name].default:
                raise SpecError(name, f"expected the method trained for it, got {value!r}")
        if self.frequencies != UNIFORM and self.facts > MOST_IN_TABLE:
            limit = f"uniform with more than {MOST_IN_TABLE:,} facts, since others take a table of them"
            raise SpecError("frequencies", f"expected {limit}, got {self.frequencies!r} for {self.facts:,}")
        if self.frequencies.startswith("file:") and len(probabilities(self.frequencies, self.facts)) != self.facts:
            own = len(probabilities(self.frequencies, self.facts))
            limit = f"subjects x relations = {self.facts:,} probabilities"
            raise SpecError("frequencies", f"expected {limit}, got {own:,}")
        if self.answers > self.subjects:
            limit = f"at most subjects = {self.subjects}, since a relation has no more facts than that"
            raise SpecError("answers", f"expected {limit}, got {self.answers}")
        return self

    @property
    def facts(self) -> int:
        """S R: the number of facts."""
        return self.subjects * self.relations

    @property
    def outputs(self) -> int:
        """R D: the answers of all relations."""
        return self.relations * self.answers

    @property
    def noise_tokens(self) -> int:
        """The number of noise tokens: S + R by default, as in the paper's experiments."""
        return self.noise or self.subjects + self.relations

    @property
    def tokens(self) -> int:
        """Subjects, relations, noise tokens, and the end token."""
        return self.subjects + self.relations + self.noise_tokens + 1

    @property
    def path(self) -> Literal["exact", "autodiff"]:
        """Constructed weights take no gradient."""
        return "autodiff" if self.method == "trained" else "exact"

    @property
    def parameters(self) -> int:
        """4 H d_h d + 2 m d: the paper's count, without the m biases."""
        return 4 * self.heads * self.head_dim * self.dim + 2 * self.width * self.dim

    @property
    def rate(self) -> float:
        """The learning rate in use."""
        return self.lr

    @property
    def most_steps(self) -> int:
        """The step limit in use."""
        return self.max_steps
