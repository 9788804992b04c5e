"""`mnemoscope facts`: paper B's factual-recall transformer."""

from pathlib import Path
from typing import Annotated, cast, get_args

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
from mnemoscope.spec.validators import between, one_of
from mnemoscope.theory.associative import GUIDE_FACTS
from mnemoscope.ui.cli.asking import YES
from mnemoscope.ui.cli.memory import WORDS
from mnemoscope.ui.cli.output import bar, number, print_json
from mnemoscope.ui.cli.setting import DEVICE, FIRST_SEED, JSON, field_option, read_device, read_given, read_whole
from mnemoscope.ui.cli.sweeping import CLUSTER, STORE, open_tools


def facts(
    *,
    subjects: Annotated[str | None, field_option(Facts, "subjects")] = None,
    relations: Annotated[str | None, field_option(Facts, "relations")] = None,
    answers: Annotated[str | None, field_option(Facts, "answers")] = None,
    dim: Annotated[str | None, field_option(Facts, "dim")] = None,
    heads: Annotated[str | None, field_option(Facts, "heads")] = None,
    head_dim: Annotated[str | None, field_option(Facts, "head_dim")] = None,
    width: Annotated[str | None, field_option(Facts, "width")] = None,
    length: Annotated[str | None, field_option(Facts, "length")] = None,
    noise: Annotated[str | None, field_option(Facts, "noise")] = None,
    mixing: Annotated[str | None, field_option(Facts, "mixing")] = None,
    method: Annotated[str | None, field_option(Facts, "method")] = None,
    lr: Annotated[str | None, field_option(Facts, "lr")] = None,
    batch: Annotated[str | None, field_option(Facts, "batch")] = None,
    max_steps: Annotated[str | None, field_option(Facts, "max_steps")] = None,
    target: Annotated[str | None, field_option(Facts, "target")] = None,
    test_samples: Annotated[str | None, field_option(Facts, "test_samples")] = None,
    capacity: Annotated[
        str | None,
        Parameter(help="find how many facts fit instead, growing S = R (equal), R = sqrt(S) (sqrt) or S = R = D (own)"),
    ] = None,
    rates: Annotated[
        str, Parameter(help="with --capacity: learning rates, largest first; the best counts")
    ] = "1e-3,3e-3,1e-2",
    tolerance: Annotated[
        str, Parameter(help="with --capacity: stop when the 95 % interval of S is +- this share")
    ] = "0.1",
    seeds: Annotated[str, Parameter(help="how many seeds to train; with --capacity, at most")] = "4",
    seed: Annotated[str, FIRST_SEED] = "0",
    device: Annotated[str, DEVICE] = "auto",
    cluster: Annotated[str | None, CLUSTER] = None,
    store: Annotated[Path | None, STORE] = None,
    yes: Annotated[bool, YES] = False,
    json: Annotated[bool, JSON] = False,
) -> int:
    """Train paper B's transformer to recall facts, until it reaches the target.

    S subjects and R relations make S R facts; attention and MLP store them in 4 H d_h d + 2 m d
    parameters. Seeds train side by side and are kept in the store. Example:

    `mnemoscope facts --subjects 8 --relations 8 --answers 4 --dim 32 --heads 4 --head-dim 8`

    `--method constructed` writes the weights down instead. `--capacity` asks how many facts a
    model of this size can learn: each seed's own limit, then their mean.
    """
    given = {**locals(), **({"subjects": 2, "relations": 2, "answers": 2} if capacity else {})}
    spec = read_given(Facts, given)
    count, first = read_whole("seeds", seeds, 1, 10**6), read_whole("seed", seed, 0, 2**62)
    asked = read_axis("rates", f"lr={rates}").values
    several = [read_option("rates", between(1e-8, 1e3), one) for one in asked]
    wide = read_option("tolerance", between(0.001, 10), tolerance)
    if capacity is not None:
        scaling = cast(Scaling, read_option("capacity", one_of(*get_args(Scaling)), capacity))
        how = {"seeds": count, "most_seeds": count, "resolution": min(0.05, wide / 2), "tolerance": wide}

        def ahead(left: object, platform: str) -> Forecast:
            return of_limits(facts_questions([spec], scaling, several), **how, platform=platform)

        with open_tools(cluster, read_device(device), store, ahead, agreed=yes) as tools:
            (found,) = facts_capacity_many([spec], scaling, rates=several, first_seed=first, **how, **tools)
        if json:
            print_json(found.as_dict())
        else:
            show_capacity(found)
        return tools["progress"].status()
    numbers = range(first, first + count)
    jobs = jobs_ahead([(spec, number) for number in numbers])
    with open_tools(cluster, read_device(device), store, jobs, agreed=yes) as tools:
        done = learn_facts(spec, numbers, **tools)
    if json:
        print_json(done.as_dict())
    else:
        show(done)
    return tools["progress"].status()


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
