"""Paper B's gradient flow: linear attention on orthogonal embeddings, from a small start.

>>> Flow().levels
(3.4657359027997265, 2.0794415416798357, 0.0)
"""

import math
from typing import Annotated, ClassVar

from pydantic import BeforeValidator, Field, model_validator

from mnemoscope.spec.base import Spec, SpecError
from mnemoscope.spec.validators import between, whole


class Flow(Spec, frozen=True, extra="forbid"):
    """One run of gradient descent on the factual-recall task with one-hot embeddings.

    The defaults are those of the paper's Fig. 5, but for `batch`: 0 takes the exact gradient of the
    population.
    """

    kind: ClassVar[str] = "flow"

    subjects: Annotated[int, BeforeValidator(whole(1, 2**14))] = Field(default=16, description="S: number of subjects")
    relations: Annotated[int, BeforeValidator(whole(1, 2**14))] = Field(default=4, description="R: number of relations")
    answers: Annotated[int, BeforeValidator(whole(1, 2**14))] = Field(
        default=8, description="D: answers that belong to each relation; divides S"
    )
    noise: Annotated[int, BeforeValidator(whole(1, 2**14))] = Field(default=20, description="noise tokens")
    length: Annotated[int, BeforeValidator(whole(3, 2**14))] = Field(
        default=32, description="T: tokens in a sequence, with subject, relation and end"
    )
    lr: Annotated[float, BeforeValidator(between(1e-8, 1e3))] = Field(default=0.1, description="the step's size")
    steps: Annotated[int, BeforeValidator(whole(1, 10**7))] = Field(
        default=8192, description="steps of gradient descent"
    )
    start: Annotated[float, BeforeValidator(between(1e-30, 1.0))] = Field(
        default=1e-5, description="size of the weights at the start"
    )
    batch: Annotated[int, BeforeValidator(whole(0, 2**20))] = Field(
        default=0, description="fresh sequences in a step; 0: the exact gradient of the population"
    )

    @model_validator(mode="after")
    def _check_together(self) -> "Flow":
        if self.subjects % self.answers:
            raise SpecError("answers", f"expected a divisor of subjects = {self.subjects}, got {self.answers}")
        if self.steps * max(1, self.batch) > 2**32 - 1:
            raise SpecError(
                "steps", f"expected at most 2^32 sequences in all, got {self.steps:,} steps of {self.batch:,}"
            )
        return self

    @property
    def noise_tokens(self) -> int:
        """Noise tokens, by the name they have in `Facts`."""
        return self.noise

    @property
    def tokens(self) -> int:
        """Subjects, relations, noise tokens, and the end token."""
        return self.subjects + self.relations + self.noise + 1

    @property
    def levels(self) -> tuple[float, float, float]:
        """ln(RD) for a guess among all answers, ln D among the relation's own, 0 when right."""
        return math.log(self.relations * self.answers), math.log(self.answers), 0.0
