"""`mnemoscope phase`: accuracy over two axes, measured and predicted."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from rich.console import Console
from rich.text import Text

from mnemoscope.experiments.axes import grid, read_axis
from mnemoscope.experiments.forecast import jobs_ahead, of_theory
from mnemoscope.experiments.phase import PhaseDiagram, ordered, phase_diagram, predicted_diagram, usual_share
from mnemoscope.spec import Retrieval, SpecError
from mnemoscope.ui.cli.asking import ask_first
from mnemoscope.ui.cli.options import ClusterName, DeviceName, Json, StoreFile, Yes, count, flag, number
from mnemoscope.ui.cli.output import deliver
from mnemoscope.ui.cli.setting import Setting, takes
from mnemoscope.ui.cli.sweeping import open_tools
from mnemoscope.ui.figures.canvas import check_form
from mnemoscope.ui.figures.phase import draw_phase

# As many as `run` takes of one setting.
MOST_TRIALS = 10**6
# Fifths of accuracy.
SHADES = " ░▒▓█"


@takes(Retrieval, file=True)
def phase(
    setting: Setting[Retrieval],
    *,
    x: Annotated[str, Parameter(help="the axis across, such as dim=32:256:8 or dim=32,48,64")],
    y: Annotated[str, Parameter(help="the axis upwards, such as samples=1e3:1e6:8")],
    seeds: Annotated[int, count(1, 10**4, "how many seeds to run at each place")] = 8,
    target: Annotated[float, number(0.001, 0.999, "the accuracy whose contour is drawn")] = 0.5,
    adaptive: Annotated[bool, flag("run only what the contour needs")] = False,
    theory: Annotated[bool, flag("predict only: run nothing, keep nothing")] = False,
    out: Annotated[Path | None, Parameter(help="also draw it into this file (.png, .svg, .pdf or .html)")] = None,
    device: DeviceName = "auto",
    cluster: ClusterName = None,
    store: StoreFile = None,
    yes: Yes = False,
    json: Json = False,
) -> int:
    """Measure a phase diagram over two axes, with theory's contour on it.

    Trials are kept in the store as they finish: stop it at any moment, start it again, and it goes
    on where it was. Example:

    `mnemoscope phase --vocab 256 --length 32 --x dim=32:128:7 --y samples=300:10000:8 --out d.png`
    """
    across, up = ordered("x", read_axis("x", x)), ordered("y", read_axis("y", y))
    base = setting.given()
    # Before the settings are made, of which there may be more than memory holds.
    ask_first(of_theory(len(across.values) * len(up.values)), "cpu", yes, aloud=theory)
    specs = grid(base, [up, across])
    if out is not None:
        check_form(out, (".html",))
    if theory:
        deliver(predicted_diagram(base, across, up, target=target), out, json, draw_phase, show)
        return 0
    if len(specs) * seeds > MOST_TRIALS:
        raise SpecError("seeds", f"expected at most {MOST_TRIALS:,} trials in all, got {len(specs) * seeds:,}")
    jobs = [(spec, seed) for spec in specs for seed in range(seeds)]
    if adaptive:
        few = min(1.0, usual_share(len(up.values), seeds))
        ahead = jobs_ahead(jobs, all_of_them=True, usual=few)
    else:
        ahead = jobs_ahead(jobs)
    with open_tools(cluster, device, store, ahead, agreed=yes) as tools:
        made = phase_diagram(base, across, up, seeds=seeds, target=target, adaptive=adaptive, tools=tools)
    deliver(made, out, json, draw_phase, show)
    return tools.progress.status()


def show(made: PhaseDiagram) -> None:
    """The diagram in letters: shades for accuracy, and theory beside it."""
    console = Console(highlight=False)
    ran = f"{len(made.trials)} trials, {made.failed} failed" if made.trials else "nothing was run"
    console.print(f"measured accuracy, {made.y.field} upwards, {made.x.field} to the right ({ran})", style="bold")
    for r in range(len(made.y.values) - 1, -1, -1):
        line = Text(f"{made.y.values[r]:>12,.6g}  ")
        for value in made.accuracy[r]:
            line.append(_cell(value))
        line.append("    theory  ")
        for value in made.predicted[r]:
            line.append(_cell(value))
        console.print(line)
    ends = f"{made.x.values[0]:,.6g} … {made.x.values[-1]:,.6g}"
    console.print(f"{'':14}{ends}   (a dot: not run, or no theory)")


def _cell(value: float) -> str:
    if value != value:  # NaN
        return " ·"
    return 2 * SHADES[min(len(SHADES) - 1, int(value * len(SHADES)))]
