"""A transformer of any depth on a task of recall: embeddings learned or frozen, positions, heads, layers, an optimiser.

>>> Transformer(task="facts", layers=2, dim=64, heads=4, width=256).parameters
74176
"""

from typing import Annotated, Any, ClassVar, Literal, get_args

from pydantic import BeforeValidator, Field, model_validator

from mnemoscope.spec.base import Spec, SpecError
from mnemoscope.spec.facts import Mixing
from mnemoscope.spec.names import ACTIVATIONS, Activation
from mnemoscope.spec.optimisers import (
    DECAY_TEXT,
    NOISE_TEXT,
    SCHEDULE_TEXT,
    LabelNoise,
    OptimiserName,
    ScheduleName,
    WeightDecay,
)
from mnemoscope.spec.sequence_tasks import GROWS, TaskName, TaskSizes, check_task, sizes_of
from mnemoscope.spec.token_laws import UNIFORM, read_frequencies
from mnemoscope.spec.validators import between, one_of, one_of_names, whole

Query = Literal["end", "relation"]
Cue = Literal["mark", "query"]
Mlp = Literal["trained", "fixed"]
Mask = Literal["none", "causal"]
Positions = Literal["none", "learned", "rotary"]
Embeddings = Literal["frozen", "learned", "tied"]
Norm = Literal["none", "layer"]
Residual = Literal["all", "mlp"]
Stop = Literal["target", "settled", "steps"]
Numbers = Literal["float32", "float64", "bfloat16"]
# Sequences of training have the counters below this.
MOST_SEQUENCES = 2**32 - 1


# The groups of its fields in help, by the first field of each.
GROUPS = {"task": "The task", "layers": "The model", "optimiser": "Its training"}


def _named(names: Any) -> BeforeValidator:
    return BeforeValidator(one_of(*get_args(names)))


Count = Annotated[int, BeforeValidator(whole(1, 2**20))]
CountOrZero = Annotated[int, BeforeValidator(whole(0, 2**20))]
Steps = Annotated[int, BeforeValidator(whole(1, 2**24))]


class Transformer(Spec, frozen=True, extra="forbid"):
    """One task, one transformer, and its training on fresh sequences.

    With one layer, frozen embeddings, no positions, no norm, and a residual round the MLP alone, it is the model of
    `Facts`.
    """

    kind: ClassVar[str] = "transformer"

    # --- the task -------------------------------------------------------------------------------
    task: Annotated[TaskName, _named(TaskName)] = Field(default="facts", description="what is to be recalled")
    length: Annotated[int, BeforeValidator(whole(1, 2**16))] = Field(
        default=16,
        description="tokens in a sequence: for facts with subject, relation and end, for retrieval without the query",
    )
    subjects: Count = Field(default=16, description="facts: S, number of subjects")
    relations: Count = Field(default=8, description="facts: R, number of relations")
    answers: Count = Field(default=4, description="facts: D, answers that belong to each relation")
    noise: CountOrZero = Field(default=0, description="facts: noise tokens; 0 means as many as subjects and relations")
    query: Annotated[Query, _named(Query)] = Field(
        default="end",
        description="facts: the last token, from which the answer is read: the same end token always, or the relation",
    )
    overlap: Annotated[float, BeforeValidator(between(0, 1))] = Field(
        default=0.0, description="facts, with the query relation: share of noise tokens that are relations themselves"
    )
    frequencies: Annotated[str, BeforeValidator(read_frequencies)] = Field(
        default=UNIFORM,
        description="facts: how often sequences ask for each: uniform; or zipf:A, the k-th with probability "
        "proportional to k^-A",
    )
    new_subjects: CountOrZero = Field(
        default=0, description="facts: subjects of a second batch of facts, trained after the first"
    )
    first_steps: CountOrZero = Field(default=0, description="facts: steps on the first batch, before the second")
    vocab: Annotated[int, BeforeValidator(whole(1, 2**20))] = Field(
        default=64, description="retrieval, mqar, induction, random-strings: V, number of tokens"
    )
    cue: Annotated[Cue, _named(Cue)] = Field(
        default="mark",
        description="retrieval: what says which token is asked for: a mark on it, or the query, which names its group",
    )
    groups: Count = Field(default=8, description="retrieval, with the cue query: groups of tokens; divides V")
    pairs: Count = Field(default=8, description="mqar: pairs of a key and a value in a sequence")
    queries: Count = Field(default=4, description="mqar: keys that are asked for in a sequence")
    triggers: Count = Field(default=4, description="induction: tokens whose successor is the sequence's own")
    strings: Count = Field(default=256, description="random-strings: how many strings are to be learned")

    # --- the model ------------------------------------------------------------------------------
    layers: Annotated[int, BeforeValidator(whole(1, 64))] = Field(default=2, description="layers")
    dim: Count = Field(default=64, description="d: width of the residual stream")
    heads: Annotated[int, BeforeValidator(whole(1, 2**12))] = Field(default=4, description="H: heads of each layer")
    head_dim: CountOrZero = Field(default=0, description="d_h: dimension of a head; 0: d / H")
    width: CountOrZero = Field(default=0, description="m: hidden units of each MLP; 0 leaves MLPs out")
    mlp: Annotated[Mlp, _named(Mlp)] = Field(
        default="trained", description="MLPs trained, or with hidden units that are random and stay so"
    )
    activation: Annotated[Activation, BeforeValidator(one_of_names(ACTIVATIONS))] = Field(
        default="gelu", description="activation of the MLPs"
    )
    attention: Annotated[Mixing, _named(Mixing)] = Field(default="softmax", description="how attention weighs tokens")
    mask: Annotated[Mask, _named(Mask)] = Field(
        default="causal", description="causal: a position sees itself and those before it; none: all"
    )
    positions: Annotated[Positions, _named(Positions)] = Field(
        default="learned", description="how positions are told apart: vectors that are learned, rotary, or not at all"
    )
    context: CountOrZero = Field(default=0, description="the most positions the model has; 0: as many as the task")
    embeddings: Annotated[Embeddings, _named(Embeddings)] = Field(
        default="learned",
        description="embeddings of tokens and answers: random and frozen, learned, or learned and tied (one for both)",
    )
    norm: Annotated[Norm, _named(Norm)] = Field(
        default="layer", description="layer: normalise before each part and at the end; none"
    )
    residual: Annotated[Residual, _named(Residual)] = Field(
        default="all", description="what is added to its input: attention and MLP (all), or the MLP alone"
    )

    # --- the training ---------------------------------------------------------------------------
    optimiser: OptimiserName = Field(default="adamw", description="the optimiser of training")
    lr: Annotated[float, BeforeValidator(between(1e-8, 1e3))] = Field(default=0.003, description="learning rate")
    schedule: ScheduleName = Field(default="constant", description=SCHEDULE_TEXT)
    weight_decay: WeightDecay = Field(default=0.0, description=DECAY_TEXT)
    batch: Count = Field(default=256, description="sequences in a step")
    max_steps: Steps = Field(default=2**12, description="most steps of training")
    stop: Annotated[Stop, _named(Stop)] = Field(
        default="target",
        description="when training ends: at the target accuracy, when the loss has stopped falling, or after all steps",
    )
    target: Annotated[float, BeforeValidator(between(0.001, 1.0))] = Field(
        default=0.99, description="accuracy at which training stops, with --stop target"
    )
    label_noise: LabelNoise = Field(default=0.0, description=NOISE_TEXT)
    test_samples: Annotated[int, BeforeValidator(whole(1, 2**20))] = Field(
        default=1024, description="fresh sequences on which accuracy is measured"
    )
    precision: Annotated[Numbers, _named(Numbers)] = Field(
        default="float32", description="numbers: float32, float64, or bfloat16 in matrix products with float32 weights"
    )

    @model_validator(mode="after")
    def _check_together(self) -> "Transformer":
        check_task(self)
        self._check_model()
        if self.max_steps * self.batch > MOST_SEQUENCES:
            steps = f"{self.max_steps:,} steps of {self.batch:,}"
            raise SpecError("max_steps", f"expected at most 2^32 sequences in all, got {steps}")
        return self

    def _check_model(self) -> None:
        if not self.head_dim and self.dim % self.heads:
            raise SpecError("heads", f"expected a divisor of dim = {self.dim}, or a head_dim, got {self.heads}")
        if self.positions == "rotary" and self.head_size % 2:
            raise SpecError("head_dim", f"expected an even number with rotary positions, got {self.head_size}")
        sizes = self.sizes
        if self.context and sizes.positions > self.context:
            field = "length" if self.task != "mqar" else "pairs"
            raise SpecError(
                field, f"expected a sequence of at most context = {self.context:,} positions, got {sizes.positions:,}"
            )
        if self.embeddings == "tied" and not sizes.answers_are_tokens:
            raise SpecError(
                "embeddings", f"expected frozen or learned, since answers of {self.task} are no tokens, got 'tied'"
            )
        if self.mask == "none" and self.task in ("induction", "random-strings"):
            raise SpecError(
                "mask", f"expected causal, since {self.task} asks for the token that comes next, got 'none'"
            )
        if self.mlp == "fixed" and not self.width:
            raise SpecError("mlp", "expected trained without an MLP (width = 0), got 'fixed'")

    @property
    def sizes(self) -> TaskSizes:
        """What the model sees of the task."""
        return sizes_of(self)

    @property
    def head_size(self) -> int:
        """d_h in use."""
        return self.head_dim or self.dim // self.heads

    @property
    def places(self) -> int:
        """The number of positions that the model has."""
        return self.context or self.sizes.positions

    @property
    def noise_tokens(self) -> int:
        """The number of noise tokens of facts, as in `Facts`."""
        return self.noise or self.subjects + self.relations

    @property
    def facts(self) -> int:
        """Facts or strings that are to be learned by heart; 0 for a task that is new in every sequence."""
        return self.sizes.items

    @property
    def entropy(self) -> float:
        """The bits of all facts or strings, whatever the model."""
        sizes = self.sizes
        return sizes.items * sizes.bits_each

    @property
    def parameters(self) -> int:
        """The number of trained weights, every bias and gain among them."""
        d, L, m = self.dim, self.layers, self.width
        attention = 4 * self.heads * self.head_size * d
        mlp = m * d if self.mlp == "fixed" else 2 * m * d + m
        norms = 2 * (2 * L + 1) * d if self.norm == "layer" else 0
        places = self.places * d if self.positions == "learned" else 0
        return L * (attention + mlp) + norms + places + self._embedding_parameters

    @property
    def _embedding_parameters(self) -> int:
        if self.embeddings == "frozen":
            return 0
        rows = self.sizes.tokens + (0 if self.embeddings == "tied" else self.sizes.outputs)
        return (rows + (self.task == "retrieval" and self.cue == "mark")) * self.dim

    @property
    def method(self) -> str:
        """How the weights are made."""
        return "trained"

    @property
    def rate(self) -> float:
        """The learning rate in use."""
        return self.lr

    @property
    def most_steps(self) -> int:
        """The step limit in use."""
        return self.max_steps

    @property
    def axes(self) -> dict[str, Any]:
        """What searches may vary: the model, the steps, and what the task has to recall."""
        grows = GROWS[self.task]
        return {
            "facts": self.value_of("facts"),
            **{name: getattr(self, name) for name in dict.fromkeys((grows, "dim", "layers", "heads", "width"))},
            "steps": self.max_steps,
        }

    def value_of(self, axis: str) -> Any:
        """The value on an axis. `facts` is what the task has to recall: facts, tokens with a label, pairs, strings."""
        if axis == "steps":
            return self.max_steps
        if axis == "facts":
            return self.subjects * self.relations if self.task == "facts" else getattr(self, GROWS[self.task])
        return getattr(self, axis)

    def rises_along(self, axis: str) -> bool:
        """A larger model and more steps help, more to recall does not."""
        return axis not in ("facts", GROWS[self.task])

    def vary(self, **changes: Any) -> "Transformer":
        """This setting at another place on its axes: the nearest that exists, from below not.

        Along `facts` relations stay; along `dim` the number of heads stays, and along `heads` their dimension.
        """
        new: dict[str, Any] = {}
        for axis, value in changes.items():
            if axis == "steps":
                new["max_steps"] = value
            elif axis == "facts" and self.task == "facts":
                new["subjects"] = max(self.answers, -(-int(value) // self.relations))
            elif axis == "facts":
                new[GROWS[self.task]] = value
            elif axis == "dim" and not self.head_dim:
                unit = self.heads * (2 if self.positions == "rotary" else 1)
                new["dim"] = -(-int(value) // unit) * unit
            elif axis == "heads":
                new |= {"heads": value, "head_dim": self.head_size}
            else:
                new[axis] = value
        return self.replace(**new)

    def tokens_seen(self, steps: float | None) -> int:
        """The tokens of all training sequences."""
        return int(steps or 0) * self.batch * self.sizes.positions
