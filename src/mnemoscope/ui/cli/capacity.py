"""`mnemoscope capacity`: up to which size of a task a model of the user's own learns it."""

from typing import Annotated

from cyclopts import Parameter

from mnemoscope.experiments.forecast import Forecast, of_own_limits
from mnemoscope.experiments.own_capacity import OwnCapacity, capacity_of, own_question
from mnemoscope.ui.cli import options
from mnemoscope.ui.cli.output import deliver, echo, number, search_status
from mnemoscope.ui.cli.own import NO_WORDS, OwnOptions, headline
from mnemoscope.ui.cli.sweeping import open_tools


def capacity(
    *,
    own: OwnOptions = NO_WORDS,
    along: Annotated[str, Parameter(help="the size of the task that grows, such as facts")],
    target: Annotated[float, options.number(0.001, 1.0, "the accuracy that a training has to reach")] = 0.99,
    range_: Annotated[
        options.Ends, options.range_option("sizes to search [default: wherever the search leads from the task's own]")
    ] = None,
    tolerance: options.Tolerance = 0.1,
    seeds: Annotated[int, options.count(2, 10**4, "the most seeds; each has its own limit")] = 8,
    seed: options.FirstSeed = 0,
    work: options.WorkOptions = options.DEFAULT_WORK,
    json: options.Json = False,
) -> int:
    """Find the largest size of a task that a model learns, with an interval over seeds.

    The model and the task are plain functions, described in docs/own.md. Trainings are kept in the store under the
    hash of their source, so that a search which was stopped goes on. Example:

    `mnemoscope capacity --model mymodel:model --task mytask:Facts --along facts --target 0.99`

    `--model transformer` is one of ours, with options of its own: `mnemoscope capacity --model transformer --help`.
    """
    spec = own.read(target=target)
    own_question(spec, along, range_)  # refuses an axis that is none, before a store is created
    how = {"tolerance": tolerance, "resolution": min(0.05, tolerance / 2), "most_seeds": seeds, "seeds": min(4, seeds)}

    def ahead(left: object, platform: str) -> Forecast:
        return of_own_limits(spec, min(4, seeds), seeds, platform)

    with open_tools(work, ahead) as tools:
        found = capacity_of(spec, along, ends=range_, first_seed=seed, **how, tools=tools)
    deliver(found, json, show)
    return tools.progress.status()


def show(found: OwnCapacity) -> None:
    """A capacity for people."""
    spec, limits = found.spec, found.limits
    echo(headline(spec), style="bold")
    echo(f"criterion   accuracy {spec.target:g}, by {spec.path}")
    echo(f"status      {found.status}: {search_status(found.status, 'capacity')}")
    if limits.estimate is not None:
        each = [limit for limit in limits.each if limit is not None]
        ends = " to ".join(number(end, 1) for end in (limits.low, limits.high))
        echo(
            f"capacity    [bold]{limits.estimate:,.1f}[/bold] {found.along}  95 % interval {ends}, "
            f"{len(each)} seeds from {min(each):,.0f} to {max(each):,.0f}"
        )
    echo(f"trials      {len(found.trials)}")
