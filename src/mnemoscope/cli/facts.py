"""`mnemoscope facts`: paper B's factual-recall transformer."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from rich import box
from rich.console import Console
from rich.table import Table

from mnemoscope.cli.output import bar, number, print_json
from mnemoscope.cli.setting import field_option, read_device, read_given, read_whole
from mnemoscope.cli.sweeping import CLUSTER, STORE, open_tools
from mnemoscope.experiments.facts import Lessons, learn_facts
from mnemoscope.spec import Facts


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
    lr: Annotated[str | None, field_option(Facts, "lr")] = None,
    batch: Annotated[str | None, field_option(Facts, "batch")] = None,
    max_steps: Annotated[str | None, field_option(Facts, "max_steps")] = None,
    target: Annotated[str | None, field_option(Facts, "target")] = None,
    test_samples: Annotated[str | None, field_option(Facts, "test_samples")] = None,
    seeds: Annotated[str, Parameter(help="how many seeds to train")] = "4",
    seed: Annotated[str, Parameter(help="the first seed")] = "0",
    device: Annotated[str, Parameter(help="auto, cpu or gpu")] = "auto",
    cluster: Annotated[str | None, CLUSTER] = None,
    store: Annotated[Path | None, STORE] = None,
    json: Annotated[
        bool, Parameter(negative="", help="print one JSON object instead of tables")
    ] = False,
) -> int:
    """Train paper B's transformer to recall facts, until it reaches the target.

    S subjects and R relations make S R facts; attention and MLP store them in 4 H d_h d + 2 m d
    parameters. Seeds train side by side and are kept in the store. Example:

    `mnemoscope facts --subjects 8 --relations 8 --answers 4 --dim 32 --heads 4 --head-dim 8`
    """
    spec = read_given(Facts, locals())
    count, first = read_whole("seeds", seeds, 1, 10**6), read_whole("seed", seed, 0, 2**62)
    with open_tools(cluster, read_device(device), store) as tools:
        done = learn_facts(spec, range(first, first + count), **tools)
    if json:
        print_json(done.as_dict())
    else:
        show(done)
    return 1 if any(one.status == "crashed" for one in done.outcomes) else 0


def show(done: Lessons) -> None:
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
            str(one.seed), one.status, number(one.accuracy), bar(one.accuracy or 0.0),
            number(told.get("relation_accuracy")), f"{told.get('steps') or 0:,.0f}",
            number(told.get("loss")),
        )  # fmt: skip
    console.print(table)
    console.print(f"accuracy  [bold]{done.interval}[/bold]  95 % interval over seeds")
    for one in done.outcomes:
        if one.message:
            console.print(f"seed {one.seed} {one.status}: {one.message}")
