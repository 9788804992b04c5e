"""The stages of paper B's gradient flow: guess, name by the relation alone, recall."""

from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from mnemoscope.engine.record import finite
from mnemoscope.experiments.drawable import Drawable
from mnemoscope.experiments.estimate.plateaus import Stage, find_stages
from mnemoscope.experiments.tabular import Tabular
from mnemoscope.experiments.tools import ShowSteps, watch_steps
from mnemoscope.spec import Flow
from mnemoscope.spec.summary import Summary, brief, number
from mnemoscope.training.flow import SEEN, Course, run_flow

NAMES = ("guess", "relation only", "recall")
# A stochastic loss is smoothed over this many steps before its stages are found.
SMOOTH = 33


@dataclass(frozen=True, repr=False)
class Dynamics(Drawable, Tabular):
    """A run and its stages. `relation_only` is how often the answer's relation was right."""

    figure: ClassVar[str] = "dynamics"
    axes: ClassVar[tuple[str, ...]] = ("step",)
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

    def records(self) -> list[dict[str, Any]]:
        """A row for each step."""
        course = self.course
        columns = {name: getattr(course, name).tolist() for name in SEEN}
        return [
            {"step": step, **dict(zip(columns, row, strict=True))}
            for step, row in enumerate(zip(*columns.values(), strict=True))
        ]

    def summary(self) -> Summary:
        """How long each stage lasts."""
        rows = tuple((stage.name, number(stage.level), f"{stage.steps:,}") for stage in self.stages)
        return Summary(
            brief(self.course.spec) or "paper B's Fig. 5",
            {"status": self.status, **{name: f"{steps} steps" for name, _, steps in rows}},
            ("stage", "loss at its level", "steps"),
            rows,
        )

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


def dynamics(spec: Flow | None = None, seed: int = 0, *, progress: ShowSteps = None) -> Dynamics:
    """Run gradient descent, paper B's Fig. 5 by default, and find its stages."""
    spec = spec or Flow()
    with watch_steps("steps", spec.steps, progress) as report:
        course = run_flow(spec, seed, report)
    stages = find_stages(course.loss, NAMES, spec.levels, SMOOTH if spec.batch else 1)
    return Dynamics(course, stages)
