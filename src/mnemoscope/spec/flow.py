"""Paper B's gradient flow: linear attention on orthogonal embeddings, from a small start.

>>> Flow().levels
(3.4657359027997265, 2.0794415416798357, 0.0)
"""

import math
from typing import Annotated, ClassVar

from pydantic import BeforeValidator, Field, model_validator

from mnemoscope.spec.base import Spec, SpecError
from mnemoscope.spec.validators import between, whole

Size = Annotated[int, BeforeValidator(whole(1, 2**14))]


class Flow(Spec, frozen=True, extra="forbid"):
    """One run of gradient descent on the factual-recall task with one-hot embeddings.

    The defaults are those of the paper's Fig. 5, except that `batch` 0 takes the exact gradient.
    """

    kind: ClassVar[str] = "flow"

    subjects: Size = Field(default=16, description="S: number of subjects")
    relations: Size = Field(default=4, description="R: number of relations")
    answers: Size = Field(default=8, description="D: answers that belong to each relation; divides S")
    noise: Size = Field(default=20, description="noise tokens")
    length: Annotated[int, BeforeValidator(whole(3, 2**14))] = Field(
        default=32, description="T: tokens in a sequence, with subject, relation and end"
    )
    lr: Annotated[float, BeforeValidator(between(1e-8, 1e3))] = Field(default=0.1, description="learning rate")
    steps: Annotated[int, BeforeValidator(whole(1, 10**7))] = Field(
        default=8192, description="steps of gradient descent"
    )
    start: Annotated[float, BeforeValidator(between(1e-30, 1.0))] = Field(
        default=1e-5, description="size of the initial weights"
    )
    batch: Annotated[int, BeforeValidator(whole(0, 2**20))] = Field(
        default=0, description="fresh sequences in a step; 0: the exact gradient of the population"
    )

    @model_validator(mode="after")
    def _check_together(self) -> "Flow":
        if self.subjects % self.answers:
            raise SpecError("answers", f"expected a divisor of subjects = {self.subjects}, got {self.answers}")
        if self.steps * max(1, self.batch) > 2**32 - 1:
            steps = f"{self.steps:,} steps of {self.batch:,}"
            raise SpecError("steps", f"expected at most 2^32 sequences in all, got {steps}")
        return self

    @property
    def noise_tokens(self) -> int:
        """The number of noise tokens, under the name it has in `Facts`."""
        return self.noise

    @property
    def tokens(self) -> int:
        """Subjects, relations, noise tokens, and the end token."""
        return self.subjects + self.relations + self.noise + 1

    @property
    def levels(self) -> tuple[float, float, float]:
        """The loss of a guess among all answers, ln(R D), among the relation's, ln D, and of the right one."""
        return math.log(self.relations * self.answers), math.log(self.answers), 0.0
