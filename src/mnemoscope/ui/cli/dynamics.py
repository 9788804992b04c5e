"""`mnemoscope dynamics`: paper B's gradient-flow stages."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from rich import box
from rich.console import Console
from rich.table import Table

from mnemoscope.engine.device import find_device, numerics
from mnemoscope.experiments.dynamics import Dynamics
from mnemoscope.experiments.dynamics import dynamics as run
from mnemoscope.experiments.forecast import of_flow
from mnemoscope.spec import Flow
from mnemoscope.training.flow import check_memory
from mnemoscope.ui.cli.asking import YES, ask_first
from mnemoscope.ui.cli.output import Watch, deliver, number
from mnemoscope.ui.cli.setting import DEVICE, field_option, read_device, read_given, read_whole
from mnemoscope.ui.figures.canvas import check_form
from mnemoscope.ui.figures.dynamics import draw_dynamics


def dynamics(
    *,
    subjects: Annotated[str | None, field_option(Flow, "subjects")] = None,
    relations: Annotated[str | None, field_option(Flow, "relations")] = None,
    answers: Annotated[str | None, field_option(Flow, "answers")] = None,
    noise: Annotated[str | None, field_option(Flow, "noise")] = None,
    length: Annotated[str | None, field_option(Flow, "length")] = None,
    lr: Annotated[str | None, field_option(Flow, "lr")] = None,
    steps: Annotated[str | None, field_option(Flow, "steps")] = None,
    start: Annotated[str | None, field_option(Flow, "start")] = None,
    batch: Annotated[str | None, field_option(Flow, "batch")] = None,
    seed: Annotated[str, Parameter(help="the seed of the stochastic mode")] = "0",
    device: Annotated[str, DEVICE] = "auto",
    yes: Annotated[bool, YES] = False,
    out: Annotated[Path | None, Parameter(help="also draw it into this file (.png, .svg or .pdf)")] = None,
    json: Annotated[bool, Parameter(negative="", help="print one JSON object instead of a table")] = False,
) -> int:
    """Follow paper B's gradient flow through its stages, hallucination among them.

    Linear attention with orthogonal embeddings learns facts from a small start: first it guesses,
    then it names an answer of the right relation whatever the subject, then it recalls. Without
    options, the setting of the paper's Fig. 5 with the exact gradient. Example:

    `mnemoscope dynamics --batch 1024 --out stages.png`
    """
    spec = read_given(Flow, locals())
    number_of_seed = read_whole("seed", seed, 0, 2**62)
    if out is not None:
        check_form(out)
    place = find_device(read_device(device))
    check_memory(spec)
    ask_first(of_flow(spec, place.platform), place.platform, yes)
    with Watch("steps", spec.steps) as watch, numerics("float32", place):
        made = run(spec, number_of_seed, watch.advance)
    deliver(made, out, json, draw_dynamics, show)
    return 0


def show(made: Dynamics) -> None:
    """The stages as a table."""
    console = Console(highlight=False)
    course = made.course
    spec = course.spec
    how = f"{spec.batch:,} fresh sequences a step" if spec.batch else "the population's gradient"
    console.print(f"S={spec.subjects} R={spec.relations} D={spec.answers}, {how}, lr {spec.lr:g}", style="bold")
    table = Table(box=box.SIMPLE)
    for name in ("stage", "level", "from step", "to step", "steps"):
        table.add_column(name, justify="left" if name == "stage" else "right")
    for stage in made.stages:
        ends = ["–" if end is None else f"{end:,}" for end in (stage.first, stage.last)]
        table.add_row(stage.name, number(stage.level), *ends, f"{stage.steps:,}")
    console.print(table)
    if made.status == "diverged":
        console.print("diverged: the numbers overflowed; take a smaller --lr")
    console.print(
        f"relation right on the plateau  {number(made.plateau_relation_accuracy)}\n"
        f"at the end                     loss {course.loss[-1]:.4f}, "
        f"accuracy {course.accuracy[-1]:.3f}"
    )
