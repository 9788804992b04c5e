"""`mnemoscope facts`: paper B's factual-recall transformer."""

from typing import Annotated

from cyclopts import Parameter
from rich import box
from rich.console import Console
from rich.table import Table

from mnemoscope.experiments.axes import read_axis
from mnemoscope.experiments.facts import (
    FactsCapacity,
    FactsRun,
    Scaling,
    facts_capacity_many,
    facts_questions,
    learn_facts,
)
from mnemoscope.experiments.forecast import Forecast, jobs_ahead, of_limits
from mnemoscope.spec import Facts, read_option
from mnemoscope.spec.validators import between
from mnemoscope.theory.associative import GUIDE_FACTS
from mnemoscope.ui.cli.memory import WORDS
from mnemoscope.ui.cli.options import ClusterName, DeviceName, FirstSeed, Json, StoreFile, Yes, choice, count
from mnemoscope.ui.cli.options import number as number_option
from mnemoscope.ui.cli.output import bar, number, print_json
from mnemoscope.ui.cli.setting import Setting, takes
from mnemoscope.ui.cli.sweeping import open_tools


@takes(Facts)
def facts(
    setting: Setting[Facts],
    *,
    capacity: Annotated[
        Scaling | None,
        choice(Scaling, "find how many facts fit instead, growing S = R (equal), R = sqrt(S) (sqrt), S = R = D (own)"),
    ] = None,
    rates: Annotated[
        str, Parameter(help="with --capacity: learning rates, largest first; the best counts")
    ] = "1e-3,3e-3,1e-2",
    tolerance: Annotated[
        float, number_option(0.001, 10, "with --capacity: stop when the 95 % interval of S is +- this share")
    ] = 0.1,
    seeds: Annotated[int, count(1, 10**6, "how many seeds to train; with --capacity, at most")] = 4,
    seed: FirstSeed = 0,
    device: DeviceName = "auto",
    cluster: ClusterName = None,
    store: StoreFile = None,
    yes: Yes = False,
    json: Json = False,
) -> int:
    """Train paper B's transformer to recall facts, until it reaches the target.

    S subjects and R relations make S R facts; attention and MLP store them in 4 H d_h d + 2 m d
    parameters. Seeds train side by side and are kept in the store. Example:

    `mnemoscope facts --subjects 8 --relations 8 --answers 4 --dim 32 --heads 4 --head-dim 8`

    `--method constructed` writes the weights down instead. `--capacity` asks how many facts a
    model of this size can learn: each seed's own limit, then their mean.
    """
    spec = setting.read(**({"subjects": 2, "relations": 2, "answers": 2} if capacity else {}))
    asked = read_axis("rates", f"lr={rates}").values
    several = [read_option("rates", between(1e-8, 1e3), rate) for rate in asked]
    if capacity is not None:
        how = {"seeds": seeds, "most_seeds": seeds, "resolution": min(0.05, tolerance / 2), "tolerance": tolerance}

        def ahead(left: object, platform: str) -> Forecast:
            return of_limits(facts_questions([spec], capacity, several), **how, platform=platform)

        with open_tools(cluster, device, store, ahead, agreed=yes) as tools:
            (found,) = facts_capacity_many([spec], capacity, rates=several, first_seed=seed, **how, tools=tools)
        if json:
            print_json(found.as_dict())
        else:
            show_capacity(found)
        return tools.progress.status()
    numbers = range(seed, seed + seeds)
    jobs = jobs_ahead([(spec, number) for number in numbers])
    with open_tools(cluster, device, store, jobs, agreed=yes) as tools:
        done = learn_facts(spec, numbers, tools=tools)
    if json:
        print_json(done.as_dict())
    else:
        show(done)
    return tools.progress.status()


def show(done: FactsRun) -> None:
    """The trainings as a table."""
    console = Console(highlight=False)
    spec = done.spec
    console.print(
        f"S={spec.subjects:,} R={spec.relations:,} D={spec.answers:,}: {spec.facts:,} facts, "
        f"{done.bits:,.0f} bits\n"
        f"d={spec.dim} H={spec.heads} d_h={spec.head_dim} m={spec.width}: {spec.parameters:,} "
        f"parameters, {spec.facts / spec.parameters:.3f} facts and "
        f"{done.bits / spec.parameters:.3f} bits each",
        style="bold",
    )
    table = Table(box=box.SIMPLE)
    for name in ("seed", "status", "accuracy", "", "relation", "steps", "loss"):
        table.add_column(name, justify="left" if name in ("status", "") else "right")
    for one in done.outcomes:
        told = one.metrics
        table.add_row(
            str(one.seed),
            one.status,
            number(one.accuracy),
            bar(one.accuracy or 0.0),
            number(told.get("relation_accuracy")),
            number(told.get("steps"), 0),
            number(told.get("loss")),
        )
    console.print(table)
    console.print(f"accuracy  [bold]{done.interval}[/bold]  95 % interval over seeds")
    for one in done.outcomes:
        if one.message:
            console.print(f"seed {one.seed} {one.status}: {one.message}")


def show_capacity(found: FactsCapacity) -> None:
    """A capacity for people."""
    console = Console(highlight=False)
    spec, limits = found.spec, found.limits
    grow = {"equal": "S = R", "sqrt": "R = sqrt(S)", "own": "S = R = D"}[found.scaling]
    console.print(
        f"d={spec.dim} H={spec.heads} d_h={spec.head_dim} m={spec.width}: {spec.parameters:,} "
        f"parameters, {grow}, accuracy {spec.target:g}",
        style="bold",
    )
    console.print(f"status      {found.limits.status}: {WORDS[found.limits.status]}")
    facts = found.facts(limits.estimate)
    if facts is not None:
        ends = " to ".join(number(found.facts(end), 0) for end in (limits.low, limits.high))
        console.print(
            f"capacity    [bold]{facts:,.0f}[/bold] facts  95 % interval {ends}\n"
            f"            {facts / spec.parameters:.3f} facts a parameter; the authors' guide line "
            f"is {GUIDE_FACTS:g}"
        )
    console.print(f"trials      {len(found.trials)}")
