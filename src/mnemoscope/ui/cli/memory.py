"""`mnemoscope memory`: the capacity of paper B's associative memories."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from rich import box
from rich.console import Console
from rich.table import Table

from mnemoscope.experiments.axes import read_axis
from mnemoscope.experiments.capacity import Capacities, Capacity, capacity_many, criterion_name, memory_questions
from mnemoscope.experiments.forecast import Forecast, of_limits
from mnemoscope.spec import Memory, SpecError, read_option
from mnemoscope.spec.validators import between, one_of
from mnemoscope.ui.cli.asking import YES
from mnemoscope.ui.cli.output import deliver, number
from mnemoscope.ui.cli.setting import DEVICE, FIRST_SEED, JSON, field_option, read_device, read_given, read_whole
from mnemoscope.ui.cli.sweeping import CLUSTER, STORE, open_tools, read_ends
from mnemoscope.ui.figures.canvas import check_form
from mnemoscope.ui.figures.capacity import draw_capacity

WORDS = {
    "found": "the interval is as narrow as asked for",
    "below-range": "not in the range: the capacity lies below it",
    "above-range": "not in the range: the capacity lies above it",
    "unresolved": "the interval is wider than asked for; allow more --seeds",
}


def memory(
    *,
    kind: Annotated[str | None, Parameter(help="linear or mlp [default: mlp where a --width is given]")] = None,
    method: Annotated[str | None, field_option(Memory, "method")] = None,
    criterion: Annotated[
        str, Parameter(help="what counts as stored: all (every item right), or a share of them")
    ] = "0.99",
    dim: Annotated[str, Parameter(help="d: dimension of items and answers; several as 32,64,128 or 32:256:7")],
    width: Annotated[str | None, field_option(Memory, "width")] = None,
    rank: Annotated[str | None, field_option(Memory, "rank")] = None,
    outputs: Annotated[str | None, field_option(Memory, "outputs")] = None,
    embedding: Annotated[str | None, field_option(Memory, "embedding")] = None,
    activation: Annotated[str | None, field_option(Memory, "activation")] = None,
    order: Annotated[str | None, field_option(Memory, "order")] = None,
    lr: Annotated[str | None, field_option(Memory, "lr")] = None,
    max_steps: Annotated[str | None, field_option(Memory, "max_steps")] = None,
    range_: Annotated[
        str | None, Parameter(name="--range", help="LOW:HIGH items [default: wherever the search leads]")
    ] = None,
    tolerance: Annotated[str, Parameter(help="stop when the 95 % interval is +- this share")] = "0.1",
    seeds: Annotated[str, Parameter(help="the most seeds, each with a limit of its own")] = "16",
    seed: Annotated[str, FIRST_SEED] = "0",
    device: Annotated[str, DEVICE] = "auto",
    cluster: Annotated[str | None, CLUSTER] = None,
    store: Annotated[Path | None, STORE] = None,
    yes: Annotated[bool, YES] = False,
    out: Annotated[Path | None, Parameter(help="draw items against weights into this .png, .svg or .pdf")] = None,
    json: Annotated[bool, JSON] = False,
) -> int:
    """Find how many items an associative memory holds, with an interval over seeds.

    Linear memories are one d x d matrix, MLPs have m hidden units. `hebbian` writes the weights
    down, `trained` learns them by full-batch AdamW. Example:

    `mnemoscope memory --dim 128 --method hebbian --criterion all`
    """
    if kind is not None and read_option("kind", one_of("linear", "mlp"), kind) == "mlp":
        if width in (None, "0"):
            raise SpecError("width", "expected hidden units for an mlp, got none")
    elif kind == "linear" and width not in (None, "0"):
        raise SpecError("width", f"expected none for a linear memory, got {width}")
    given = {k: v for k, v in locals().items() if k != "kind"}
    dims = read_axis("dim", f"dim={dim}").values
    specs = [read_given(Memory, {**given, "items": 2, "dim": one}) for one in dims]
    share = 1.0 if criterion == "all" else read_option("criterion", between(0.01, 1.0, "'all' or "), criterion)
    wide = read_option("tolerance", between(0.001, 10), tolerance)
    ends = None if range_ is None else read_ends(range_)
    most, first = read_whole("seeds", seeds, 2, 10**4), read_whole("seed", seed, 0, 2**62)
    if out is not None:
        check_form(out)
    how = {"tolerance": wide, "resolution": min(0.03, wide / 2), "most_seeds": most, "seeds": min(4, most)}

    def ahead(left: object, platform: str) -> Forecast:
        questions = [question for _, question in memory_questions(specs, share, ends)]
        return of_limits(questions, **how, platform=platform)

    with open_tools(cluster, read_device(device), store, ahead, agreed=yes) as tools:
        found = capacity_many(specs, share, ends=ends, first_seed=first, **how, **tools)
    deliver(found, out, json, draw_capacity, show)
    return tools["progress"].status()


def show(made: Capacities) -> None:
    """The capacities for people."""
    if len(made.points) == 1:
        show_one(made.points[0])
        return
    spec, criterion = made.points[0].spec, made.points[0].criterion
    console = Console(highlight=False)
    console.print(f"{spec.form} memory, {spec.method}, {right_words(criterion)}", style="bold")
    table = Table(box=box.SIMPLE)
    for name in ("d", "parameters", "items", "95 % interval", "per parameter", "status"):
        table.add_column(name, justify="left" if name == "status" else "right")
    for one in made.points:
        found = one.limits
        table.add_row(
            f"{one.spec.dim:,}",
            f"{one.spec.parameters:,}",
            number(found.estimate, 1),
            f"{number(found.low, 1)} to {number(found.high, 1)}",
            number(found.estimate and found.estimate / one.spec.parameters, 4),
            one.status,
        )
    console.print(table)


def right_words(criterion: float) -> str:
    """The criterion in words."""
    name = criterion_name(criterion)
    return "all items right" if name == "all" else f"a share of {name} right"


def show_one(found: Capacity) -> None:
    """One capacity, with what it is to be compared with."""
    console = Console(highlight=False)
    spec, limits = found.spec, found.limits
    size = f" m={spec.width:,} {spec.activation}" if spec.width else ""
    size += f" rank {spec.rank:,}" if spec.rank else ""
    size += f", {spec.outputs:,} answers" if spec.outputs else ", an answer for each item"
    console.print(f"{spec.form} memory, {spec.method}, d={spec.dim:,}{size}", style="bold")
    console.print(f"criterion   {right_words(found.criterion)}")
    console.print(f"status      {found.status}: {WORDS[found.status]}")
    if limits.estimate is not None:
        ends = " to ".join(number(end, 1) for end in (limits.low, limits.high))
        each = [limit for limit in limits.each if limit is not None]
        console.print(
            f"capacity    [bold]{limits.estimate:,.1f}[/bold] items  95 % interval {ends}, "
            f"{len(each)} seeds from {min(each):,.0f} to {max(each):,.0f}"
        )
        console.print(f"parameters  {spec.parameters:,}, {limits.estimate / spec.parameters:.4f} items each")
    else:
        console.print(f"parameters  {spec.parameters:,}")
    if spec.method == "hebbian" and spec.full_rank and not spec.outputs:
        console.print(f"predicted   {found.expected:,.0f}, (H2) for this criterion")
    for law, items in found.laws.items():
        console.print(f"law         {items:,.0f}, {law}")
    console.print(f"trials      {len(found.trials)}")
