"""`mnemoscope memory`: the capacity of paper B's associative memories."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from mnemoscope.experiments.axes import read_axis
from mnemoscope.experiments.capacity import Capacities, Capacity, capacity_many, criterion_name, memory_questions
from mnemoscope.experiments.forecast import Forecast, jobs_ahead, of_limits
from mnemoscope.experiments.recalled import Growth, Recalled, count_recalled, usual_items
from mnemoscope.spec import Memory, SpecError, read_option
from mnemoscope.spec.memory import BY_GRADIENT, MOST
from mnemoscope.spec.token_laws import UNIFORM, probabilities, read_tokens
from mnemoscope.spec.validators import between, is_name
from mnemoscope.tasks.token_files import take_frequencies as keep_frequencies
from mnemoscope.ui.cli import options
from mnemoscope.ui.cli.output import deliver, echo, number, search_status, table
from mnemoscope.ui.cli.setting import Setting, takes
from mnemoscope.ui.cli.sweeping import open_tools
from mnemoscope.ui.figures.canvas import check_form
from mnemoscope.ui.figures.capacity import draw_capacity
from mnemoscope.ui.figures.recalled import draw_recalled

Form = Literal["linear", "mlp"]
OF_A_SEARCH = "expected none with --items, which counts the items that are recalled, got one"


def read_criterion(text: str) -> float:
    """A share of the items; `all` is 1."""
    return 1.0 if text == "all" else between(0.01, 1.0, "'all' or ")(text)


@takes(Memory, without=("items", "dim", "target", "frequencies"))
def memory(
    setting: Setting[Memory],
    *,
    kind: Annotated[Form | None, options.choice(Form, "the form of memory [default: mlp if --width is given]")] = None,
    criterion: Annotated[
        float | None,
        options.option(
            read_criterion,
            "what counts as stored: all (every item right), or a share of them [default: 0.99]",
            metavar="all|FLOAT",
        ),
    ] = None,
    dim: Annotated[
        str, Parameter(metavar="VALUES", help="d: dimension of items and answers; several as 32,64,128 or 32:256:7")
    ],
    range_: Annotated[
        options.Ends, options.range_option("numbers of items to search [default: wherever the search leads]")
    ] = None,
    items: Annotated[
        str | None,
        Parameter(
            metavar="LAW",
            help="how often each item occurs: uniform; zipf:A, item i with probability proportional to (i + 1)^-A; or "
            "file:PATH. Unless uniform, the items that are recalled are counted, out of --number [default: uniform]",
        ),
    ] = None,
    number: Annotated[
        int | None,
        options.count(2, MOST, "with --items: how many items occur [default: so many that they do not bind]"),
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
    them by full-batch AdamW or another optimiser, `one-step` takes one step from zero. Examples:

    `mnemoscope memory --dim 128 --method hebbian --criterion all`

    `mnemoscope memory --dim 64,128,256 --method one-step --optimiser muon --items zipf:1.5`
    """
    width = setting.given().get("width")
    if kind == "mlp" and not width:
        raise SpecError("width", "expected hidden units for an mlp, got none")
    if kind == "linear" and width:
        raise SpecError("width", f"expected none for a linear memory, got {width}")
    dims = read_axis("dim", f"dim={dim}").values
    check_form(out)
    frequencies = UNIFORM if items is None else take_frequencies(items, number)
    if frequencies != UNIFORM:
        if criterion is not None or range_ is not None:
            raise SpecError("criterion" if criterion is not None else "range", OF_A_SEARCH)
        specs = [with_items(setting, int(dim), frequencies, number) for dim in dims]
        return recall(specs, options.read_seeds(seeds, seed), work, out, json)
    if number is not None:
        raise SpecError("number", f"expected --items with a law that is not uniform for it, got {number:,}")
    criterion = 0.99 if criterion is None else criterion
    specs = [setting.read({"items": 2, "dim": value}) for value in dims]
    how = {"tolerance": tolerance, "resolution": min(0.03, tolerance / 2), "most_seeds": seeds, "seeds": min(4, seeds)}

    def ahead(left: object, platform: str) -> Forecast:
        questions = [question for _, question in memory_questions(specs, criterion, range_)]
        return of_limits(questions, **how, platform=platform)

    with open_tools(work, ahead) as tools:
        capacities = capacity_many(specs, criterion, ends=range_, first_seed=seed, **how, tools=tools)
    deliver(capacities, json, show, out, draw_capacity)
    return tools.progress.status()


def take_frequencies(text: str, number: int | None) -> str:
    """The law's name; a user's own probabilities are kept, and named after their content."""
    return read_option("items", read_tokens, text if is_name(text) else keep_frequencies(text, number, "items"))


def with_items(setting: Setting[Memory], dim: int, frequencies: str, number: int | None) -> Memory:
    """The memory of that dimension, with as many items as were asked for, or as do not bind."""
    count = len(probabilities(frequencies, 2)) if frequencies.startswith("file:") else 2
    spec = setting.read({"items": count, "dim": dim, "frequencies": frequencies, "target": 1.0})
    if number is None:
        return spec.replace(items=usual_items(spec))
    if frequencies.startswith("file:") and number != count:
        raise SpecError("number", f"expected {count:,}, as many as the file has, got {number:,}")
    return spec.replace(items=number)


def recall(specs: list[Memory], seeds: range, work: options.Work, out: Path | None, json: bool) -> int:
    """Count the items that memories recall, and print the numbers."""
    with open_tools(work, jobs_ahead([(spec, seed) for spec in specs for seed in seeds])) as tools:
        growth = count_recalled(specs, seeds, tools=tools)
    deliver(growth, json, show_recalled, out, draw_recalled)
    return tools.progress.status()


def show_recalled(growth: Growth) -> None:
    """The counts for people."""
    spec = growth.points[0].spec
    by = f" by {spec.optimiser}" if spec.method in BY_GRADIENT else ""
    batch = f", {spec.batch:,} samples a step" if spec.batch else ""
    echo(f"{spec.form} memory, {spec.method}{by}{batch}, items {spec.frequencies}", style="bold")
    columns = ("d", "parameters", "items", "recalled", "95 % interval", "by sequence", "status")
    rows = [
        (
            f"{point.spec.dim:,}",
            f"{point.spec.parameters:,}",
            f"{point.spec.items:,}",
            number(point.estimate, 1),
            f"{number(point.low, 1)} to {number(point.high, 1)}",
            number(point.as_dict()["accuracy_by_sequence"]),
            point.status,
        )
        for point in growth.points
    ]
    echo(table(columns, rows, left=("status",)))
    echo("recalled: items whose own answer has the largest logit; by sequence: the same, weighted by frequency")
    if any(point.status == "above-range" for point in growth.points):
        echo("above-range: more than half of the items are recalled, so their number binds; raise --number")
    show_bits(growth.points)
    if growth.power is not None:
        power, law = growth.power, growth.predicted
        beside = "" if law is None else f", beside {law:.3f}"
        echo(f"slope     d^[bold]{power.value:.3f}[/bold]  95 % interval {power.low:.3f} to {power.high:.3f}{beside}")


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
    show_bits(points)


def show_bits(points: Sequence[Capacity | Recalled]) -> None:
    """What rounded weights store, one line for each dimension."""
    for point in points:
        if point.stored_bits is not None:
            echo(f"bits      d={point.spec.dim:,}: {point.stored_bits.words()}")


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
    if capacity.stored_bits is not None:
        echo(f"bits        {capacity.stored_bits.words()}")
    echo(f"trials      {len(capacity.trials)}")
