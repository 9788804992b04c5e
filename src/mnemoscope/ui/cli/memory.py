"""`mnemoscope memory`: the capacity of paper B's associative memories."""

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from mnemoscope.experiments.axes import read_axis
from mnemoscope.experiments.capacity import Capacities, Capacity, capacity_many, criterion_name, memory_questions
from mnemoscope.experiments.forecast import Forecast, of_limits
from mnemoscope.spec import Memory, SpecError
from mnemoscope.spec.validators import between
from mnemoscope.ui.cli import options
from mnemoscope.ui.cli.output import deliver, echo, number, search_status, table
from mnemoscope.ui.cli.setting import Setting, takes
from mnemoscope.ui.cli.sweeping import open_tools
from mnemoscope.ui.figures.canvas import check_form
from mnemoscope.ui.figures.capacity import draw_capacity

Form = Literal["linear", "mlp"]


def read_criterion(text: str) -> float:
    """A share of the items; `all` is 1."""
    return 1.0 if text == "all" else between(0.01, 1.0, "'all' or ")(text)


@takes(Memory, without=("items", "dim", "target"))
def memory(
    setting: Setting[Memory],
    *,
    kind: Annotated[Form | None, options.choice(Form, "the form of memory [default: mlp if --width is given]")] = None,
    criterion: Annotated[
        float,
        options.option(
            read_criterion, "what counts as stored: all (every item right), or a share of them", metavar="all|FLOAT"
        ),
    ] = 0.99,
    dim: Annotated[
        str, Parameter(metavar="VALUES", help="d: dimension of items and answers; several as 32,64,128 or 32:256:7")
    ],
    range_: Annotated[
        options.Ends, options.range_option("numbers of items to search [default: wherever the search leads]")
    ] = None,
    tolerance: options.Tolerance = 0.1,
    seeds: Annotated[int, options.count(2, 10**4, "the most seeds; each has its own limit")] = 16,
    seed: options.FirstSeed = 0,
    work: options.WorkOptions = options.DEFAULT_WORK,
    out: Annotated[Path | None, Parameter(help="draw items against weights into this .png, .svg or .pdf")] = None,
    json: options.Json = False,
) -> int:
    """Find how many items an associative memory holds, with an interval over seeds.

    A linear memory is one d x d matrix, an MLP has m hidden units. `hebbian` constructs the weights, `trained` learns
    them by full-batch AdamW. Example:

    `mnemoscope memory --dim 128 --method hebbian --criterion all`
    """
    width = setting.given().get("width")
    if kind == "mlp" and not width:
        raise SpecError("width", "expected hidden units for an mlp, got none")
    if kind == "linear" and width:
        raise SpecError("width", f"expected none for a linear memory, got {width}")
    specs = [setting.read({"items": 2, "dim": value}) for value in read_axis("dim", f"dim={dim}").values]
    check_form(out)
    how = {"tolerance": tolerance, "resolution": min(0.03, tolerance / 2), "most_seeds": seeds, "seeds": min(4, seeds)}

    def ahead(left: object, platform: str) -> Forecast:
        questions = [question for _, question in memory_questions(specs, criterion, range_)]
        return of_limits(questions, **how, platform=platform)

    with open_tools(work, ahead) as tools:
        capacities = capacity_many(specs, criterion, ends=range_, first_seed=seed, **how, tools=tools)
    deliver(capacities, json, show, out, draw_capacity)
    return tools.progress.status()


def show(capacities: Capacities) -> None:
    """The capacities for people."""
    points = capacities.points
    if len(points) == 1:
        show_capacity(points[0])
        return
    spec = points[0].spec
    echo(f"{spec.form} memory, {spec.method}, {right_words(points[0].criterion)}", style="bold")
    columns = ("d", "parameters", "items", "95 % interval", "per parameter", "status")
    rows = [
        (
            f"{point.spec.dim:,}",
            f"{point.spec.parameters:,}",
            number(point.limits.estimate, 1),
            f"{number(point.limits.low, 1)} to {number(point.limits.high, 1)}",
            number(point.limits.estimate and point.limits.estimate / point.spec.parameters, 4),
            point.status,
        )
        for point in points
    ]
    echo(table(columns, rows, left=("status",)))


def right_words(criterion: float) -> str:
    """The criterion in words."""
    name = criterion_name(criterion)
    return "all items right" if name == "all" else f"a share of {name} right"


def show_capacity(capacity: Capacity) -> None:
    """One capacity, with the laws to compare it with."""
    spec, limits = capacity.spec, capacity.limits
    size = f" m={spec.width:,} {spec.activation}" if spec.width else ""
    size += f" rank {spec.rank:,}" if spec.rank else ""
    size += f", {spec.outputs:,} answers" if spec.outputs else ", an answer for each item"
    echo(f"{spec.form} memory, {spec.method}, d={spec.dim:,}{size}", style="bold")
    echo(f"criterion   {right_words(capacity.criterion)}")
    echo(f"status      {capacity.status}: {search_status(capacity.status, 'capacity')}")
    if limits.estimate is not None:
        ends = " to ".join(number(end, 1) for end in (limits.low, limits.high))
        each = [limit for limit in limits.each if limit is not None]
        echo(
            f"capacity    [bold]{limits.estimate:,.1f}[/bold] items  95 % interval {ends}, "
            f"{len(each)} seeds from {min(each):,.0f} to {max(each):,.0f}"
        )
    ratio = "" if limits.estimate is None else f", {limits.estimate / spec.parameters:.4f} items each"
    echo(f"parameters  {spec.parameters:,}{ratio}")
    if spec.method == "hebbian" and spec.full_rank and not spec.outputs:
        echo(f"predicted   {capacity.expected:,.0f}, (H2) for this criterion")
    for law, items in capacity.laws.items():
        echo(f"law         {items:,.0f}, {law}")
    echo(f"trials      {len(capacity.trials)}")
