"""`mnemoscope dynamics`: paper B's gradient-flow stages."""

from typing import Annotated

from mnemoscope.engine.device import find_device, numerics
from mnemoscope.experiments.dynamics import Dynamics
from mnemoscope.experiments.dynamics import dynamics as follow
from mnemoscope.experiments.forecast import of_flow
from mnemoscope.spec import Flow
from mnemoscope.training.flow import check_memory
from mnemoscope.ui.cli.asking import ask_first
from mnemoscope.ui.cli.options import DeviceName, Json, Picture, Yes, count
from mnemoscope.ui.cli.output import deliver, echo, number, table
from mnemoscope.ui.cli.progress import Watch
from mnemoscope.ui.cli.setting import Setting, takes
from mnemoscope.ui.figures.canvas import check_form
from mnemoscope.ui.figures.dynamics import draw_dynamics


@takes(Flow)
def dynamics(
    setting: Setting[Flow],
    *,
    seed: Annotated[int, count(0, 2**62, "the seed of the stochastic mode")] = 0,
    device: DeviceName = "auto",
    yes: Yes = False,
    out: Picture = None,
    json: Json = False,
) -> int:
    """Follow paper B's gradient flow through its stages, hallucination among them.

    Linear attention with orthogonal embeddings learns facts from a small initialisation: first it guesses, then it
    names an answer of the right relation whatever the subject, then it recalls. Without options: the setting of the
    paper's Fig. 5 with the exact gradient. Example:

    `mnemoscope dynamics --batch 1024 --out stages.png`
    """
    spec = setting.read()
    check_form(out)
    place = find_device(device)
    check_memory(spec)
    ask_first(of_flow(spec, place.platform), place.platform, yes)
    with Watch("steps", spec.steps) as watch, numerics("float32", place):
        course = follow(spec, seed, progress=watch.advance)
    return deliver(course, json, show, out, draw_dynamics)


def show(dynamics: Dynamics) -> None:
    """The stages as a table."""
    course, spec = dynamics.course, dynamics.course.spec
    how = f"{spec.batch:,} fresh sequences per step" if spec.batch else "the exact population gradient"
    echo(f"S={spec.subjects} R={spec.relations} D={spec.answers}, {how}, lr {spec.lr:g}", style="bold")
    rows = []
    for stage in dynamics.stages:
        ends = ["–" if end is None else f"{end:,}" for end in (stage.first, stage.last)]
        rows.append((stage.name, number(stage.level), *ends, f"{stage.steps:,}"))
    echo(table(("stage", "level", "from step", "to step", "steps"), rows, left=("stage",)))
    if dynamics.status == "diverged":
        echo("diverged: the numbers overflowed; use a smaller --lr")
    echo(
        f"relation right on the plateau  {number(dynamics.plateau_relation_accuracy)}",
        f"at the end                     loss {course.loss[-1]:.4f}, accuracy {course.accuracy[-1]:.3f}",
    )
