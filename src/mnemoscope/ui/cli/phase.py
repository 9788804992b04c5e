"""`mnemoscope phase`: accuracy over two axes, measured and predicted."""

from pathlib import Path
from typing import Annotated

import numpy as np
from cyclopts import Parameter

from mnemoscope.experiments.axes import grid, read_axis
from mnemoscope.experiments.forecast import jobs_ahead, of_theory
from mnemoscope.experiments.phase import PhaseDiagram, ordered, phase_diagram, predicted_diagram, usual_share
from mnemoscope.spec import Retrieval, SpecError
from mnemoscope.ui.cli.asking import ask_first
from mnemoscope.ui.cli.options import DEFAULT_WORK, Json, MeasureName, WorkOptions, count, flag, number
from mnemoscope.ui.cli.output import deliver, echo
from mnemoscope.ui.cli.own import NO_WORDS, OwnOptions
from mnemoscope.ui.cli.setting import Setting, takes
from mnemoscope.ui.cli.sweeping import open_tools
from mnemoscope.ui.figures.canvas import check_form
from mnemoscope.ui.figures.phase import draw_phase

# As many as `run` takes for one setting.
MOST_TRIALS = 10**6
# One shade for each fifth of accuracy.
SHADES = " ░▒▓█"


@takes(Retrieval, file=True)
def phase(
    setting: Setting[Retrieval],
    *,
    own: OwnOptions = NO_WORDS,
    x: Annotated[str, Parameter(metavar="FIELD=VALUES", help="the axis across, such as dim=32:256:8 or dim=32,48,64")],
    y: Annotated[str, Parameter(metavar="FIELD=VALUES", help="the axis upwards, such as samples=1e3:1e6:8")],
    seeds: Annotated[int, count(1, 10**4, "how many seeds to run at each point")] = 8,
    target: Annotated[float, number(0.001, 0.999, "the accuracy whose contour is drawn")] = 0.5,
    measure: MeasureName = "accuracy",
    adaptive: Annotated[bool, flag("run only the trials that the contour needs")] = False,
    theory: Annotated[bool, flag("predict only: run nothing, keep nothing")] = False,
    out: Annotated[Path | None, Parameter(help="also draw it into this file (.png, .svg, .pdf or .html)")] = None,
    work: WorkOptions = DEFAULT_WORK,
    json: Json = False,
) -> int:
    """Measure a phase diagram over two axes, with theory's contour on it.

    Trials are kept in the store as they finish: stop at any time, and a new start continues where it left off. Example:

    `mnemoscope phase --vocab 256 --length 32 --x dim=32:128:7 --y samples=300:10000:8 --out d.png`

    With `--model` and `--task`, axes are sizes of a model or a task of your own:

    `mnemoscope phase --model mymodel:model --task mytask:Facts --x dim=4,8,16 --y facts=16:256:5`
    """
    own_spec = own.in_place_of(setting)
    across, up = (ordered(name, read_axis(name, text, own_spec)) for name, text in (("x", x), ("y", y)))
    base = own_spec or setting.given()
    # Before the specs exist: there may be more of them than memory holds.
    ask_first(of_theory(len(across.values) * len(up.values)), "cpu", work.yes, aloud=theory)
    specs = grid(base, [up, across])
    check_form(out, (".html",))
    if theory:
        return deliver(predicted_diagram(base, across, up, target=target, measure=measure), json, show, out, draw_phase)
    if len(specs) * seeds > MOST_TRIALS:
        raise SpecError("seeds", f"expected at most {MOST_TRIALS:,} trials in all, got {len(specs) * seeds:,}")
    jobs = [(spec, seed) for spec in specs for seed in range(seeds)]
    share = min(1.0, usual_share(len(up.values), seeds)) if adaptive else 1.0
    with open_tools(work, jobs_ahead(jobs, all_of_them=adaptive, usual=share)) as tools:
        diagram = phase_diagram(
            base, across, up, seeds=seeds, target=target, measure=measure, adaptive=adaptive, tools=tools
        )
    deliver(diagram, json, show, out, draw_phase)
    return tools.progress.status()


def show(diagram: PhaseDiagram) -> None:
    """The diagram in characters: shades for accuracy, with theory next to it."""
    ran = f"{len(diagram.trials)} trials, {diagram.failed} failed" if diagram.trials else "nothing was run"
    if diagram.unreached:
        ran += f", {diagram.unreached} had not settled"
    what = f"{'measured' if diagram.trials else 'predicted'} {diagram.measure.replace('_', ' ')}"
    echo(f"{what}, {diagram.y.field} upwards, {diagram.x.field} to the right ({ran})", style="bold")
    foreseen = bool(diagram.trials) and not np.isnan(diagram.predicted).all()  # a model of one's own has no theory
    shown = diagram.accuracy if diagram.trials else diagram.predicted
    for y, row, predicted in [*zip(diagram.y.values, shown, diagram.predicted, strict=True)][::-1]:
        beside = f"    theory  {''.join(map(_cell, predicted))}" if foreseen else ""
        echo(f"{y:>12,.6g}  {''.join(map(_cell, row))}{beside}")
    ends = f"{diagram.x.values[0]:,.6g} … {diagram.x.values[-1]:,.6g}"
    echo(f"{'':14}{ends}   (a dot: not run, or no theory)")


def _cell(value: float) -> str:
    if value != value:  # NaN
        return " ·"
    return 2 * SHADES[min(len(SHADES) - 1, int(value * len(SHADES)))]
