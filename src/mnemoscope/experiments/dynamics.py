"""The stages of paper B's gradient flow: guess, name by the relation alone, recall."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from mnemoscope.engine.record import finite
from mnemoscope.experiments.drawable import Drawable
from mnemoscope.experiments.estimate.plateaus import Stage, find_stages
from mnemoscope.spec import Flow
from mnemoscope.training.flow import Course, run_flow

NAMES = ("guess", "relation only", "recall")
# A stochastic loss is smoothed over this many steps before its stages are found.
SMOOTH = 33


@dataclass(frozen=True)
class Dynamics(Drawable):
    """A run and its stages. `relation_only` is how often the answer's relation was right."""

    figure: ClassVar[str] = "dynamics"
    course: Course
    stages: list[Stage]

    @property
    def status(self) -> Literal["ok", "diverged"]:
        """Whether the loss stayed finite."""
        return "ok" if np.isfinite(self.course.loss).all() else "diverged"

    @property
    def plateau_relation_accuracy(self) -> float | None:
        """The least share of right relations on the plateau; None where there is none."""
        rest = self.stages[1]
        if rest.first is None or rest.last is None:
            return None
        return float(self.course.relation_only[rest.first : rest.last + 1].min())

    def as_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        course = self.course
        return finite(
            {
                "status": self.status,
                "spec": course.spec.model_dump(),
                "levels": list(course.spec.levels),
                "loss": course.loss.tolist(),
                "accuracy": course.accuracy.tolist(),
                "relation_only": course.relation_only.tolist(),
                "answer_mass": course.answer_mass.tolist(),
                "relation_mass": course.relation_mass.tolist(),
                "stages": [{**asdict(stage), "steps": stage.steps} for stage in self.stages],
                "plateau_relation_accuracy": self.plateau_relation_accuracy,
            }
        )


def dynamics(spec: Flow | None = None, seed: int = 0, report: Callable[[int], None] | None = None) -> Dynamics:
    """Run gradient descent, paper B's Fig. 5 by default, and find its stages."""
    spec = spec or Flow()
    course = run_flow(spec, seed, report)
    stages = find_stages(course.loss, NAMES, spec.levels, SMOOTH if spec.batch else 1)
    return Dynamics(course, stages)
