"""`mnemoscope run --model transformer` and `mnemoscope capacity --model transformer`."""

import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from rich.table import Table

from mnemoscope.experiments.attention_maps import attention_maps
from mnemoscope.experiments.forecast import Forecast, jobs_ahead, of_own_limits
from mnemoscope.experiments.run import Run, kept_run
from mnemoscope.experiments.transformer_capacity import TransformerCapacity, transformer_capacity, transformer_question
from mnemoscope.spec import Transformer, read_option
from mnemoscope.spec.validators import between
from mnemoscope.training.transformer import TRANSFORMER
from mnemoscope.ui.cli import options
from mnemoscope.ui.cli.output import bar, deliver, echo, number, search_status, table
from mnemoscope.ui.cli.setting import Setting, takes
from mnemoscope.ui.cli.sweeping import open_tools
from mnemoscope.ui.figures.attention_maps import draw_attention_maps
from mnemoscope.ui.figures.canvas import check_form
from mnemoscope.ui.figures.training import draw_training, head_weights

# The most heads of a layer that a table has room for.
MOST_HEADS = 12


@takes(Transformer, file=True)
def run(
    setting: Setting[Transformer],
    *,
    seeds: options.Seeds = 4,
    seed: options.AnySeed = 0,
    maps: Annotated[
        Path | None,
        Parameter(help="also draw where each head looks, token by token, into this file; trains the first seed again"),
    ] = None,
    work: options.WorkOptions = options.DEFAULT_WORK,
    out: options.Picture = None,
    json: options.Json = False,
) -> int:
    """Train a transformer of any depth on a task of recall, over several seeds.

    Say what is to be recalled (--task), with which model (--layers, --dim, --heads, --width, ...), and how it is
    trained. Without options, two layers learn 128 facts in some seconds. Each seed's training is kept in the store and
    not run twice. Examples:

    `mnemoscope run --model transformer`

    `mnemoscope run --model transformer --task mqar --pairs 16 --layers 2 --positions rotary --out curves.png`

    `mnemoscope run --model transformer --task random-strings --strings 512 --stop settled --max-steps 1e5`

    `mnemoscope run --model transformer --subjects 64 --new-subjects 16 --first-steps 500 --maps maps.png`
    """
    check_form(out)
    check_form(maps, option="maps")
    spec = setting.read()
    numbers = options.read_seeds(seeds, seed)
    # A model that does not fit is refused before a store is created or a forecast made.
    if work.cluster is None:
        TRANSFORMER.check_fits(spec, work.device)
    stopped = False
    with open_tools(work, jobs_ahead([(spec, one) for one in numbers])) as tools:
        known = len(tools.store.finished([(spec, one) for one in numbers]))
        try:
            result = Run(spec, tuple(tools.run([(spec, one) for one in numbers], "seeds").values()))
        except KeyboardInterrupt:
            stopped = True
            result = kept_run(spec, numbers, tools.store)
    if maps is not None and not stopped:
        draw_attention_maps(attention_maps(spec, seed, device=work.device), maps)
    deliver(result, json, show, out, draw_training)
    if maps is not None and not json:
        echo(f"drawn: {maps}")
    if known and not json:
        print(f"{known} of {len(numbers)} seeds were in the store")
    if stopped:
        print(f"stopped: {len(result.trials)} of {len(numbers)} seeds are done", file=sys.stderr)
    for trial in result.trials:
        if trial.status != "ok":
            print(f"seed {trial.seed} {trial.status}: {trial.message}", file=sys.stderr)
    return 1 if stopped or any(trial.status == "crashed" for trial in result.trials) else 0


@takes(Transformer, without=("target", "stop"), file=True)
def capacity(
    setting: Setting[Transformer],
    *,
    along: Annotated[
        str,
        Parameter(help="facts: the most that is recalled; dim, layers, heads, width or steps: the least that it takes"),
    ] = "facts",
    target: Annotated[float, options.number(0.001, 1.0, "the accuracy that a training has to reach")] = 0.99,
    rates: Annotated[
        str | None, Parameter(metavar="VALUES", help="learning rates to try, the best one counts [default: --lr]")
    ] = None,
    range_: Annotated[
        options.Ends,
        options.range_option("values to search [default: wherever the search leads from the setting's own]"),
    ] = None,
    tolerance: options.Tolerance = 0.1,
    seeds: Annotated[int, options.count(2, 10**4, "the most seeds; each has its own limit")] = 8,
    seed: options.FirstSeed = 0,
    work: options.WorkOptions = options.DEFAULT_WORK,
    json: options.Json = False,
) -> int:
    """Find how much a transformer recalls, or how large it has to be, with an interval over seeds.

    Along `facts` grows what the task has to recall: subjects at fixed relations, tokens with a label, pairs, or
    strings. Examples:

    `mnemoscope capacity --model transformer --layers 1 --dim 16 --heads 2 --max-steps 2000 --along facts`

    `mnemoscope capacity --model transformer --task mqar --along dim --rates 1e-2,3e-3,1e-3`
    """
    spec = setting.read()
    tried = [read_option("rates", between(1e-8, 1e3), rate) for rate in rates.split(",")] if rates else [spec.lr]
    transformer_question(spec, along, target, tried, range_)  # refuses an axis that is none, before a store is created
    if work.cluster is None:
        TRANSFORMER.check_fits(spec, work.device)
    first = min(4, seeds)
    how = {"tolerance": tolerance, "resolution": min(0.05, tolerance / 2), "most_seeds": seeds, "seeds": first}

    def ahead(left: object, platform: str) -> Forecast:
        return of_own_limits(spec, first, seeds, platform)

    with open_tools(work, ahead) as tools:
        found = transformer_capacity(
            spec, along, target=target, rates=tried, ends=range_, first_seed=seed, **how, tools=tools
        )
    deliver(found, json, show_capacity)
    return tools.progress.status()


def show(run: Run) -> None:
    """The trainings as tables."""
    spec = run.spec
    echo(headline(spec), style="bold")
    columns = ["seed", "status", "accuracy", "", "confident", "steps", "loss"]
    more = [(name, key) for name, key in MEASURED.items() if run.mean(key) is not None]
    rows = [
        (
            str(trial.seed),
            trial.status,
            number(trial.accuracy),
            bar(trial.accuracy or 0.0, 8),
            number(trial.metrics.get("confidence"), 2),
            number(trial.metrics.get("steps"), 0),
            number(trial.metrics.get("loss")),
        )
        for trial in run.trials
    ]
    echo(table(columns, rows, left=("status", "")))
    heads = _head_table(run)
    if heads is not None:
        echo(heads)
    over = f"95 % interval over {len(run.finished)} seeds" if len(run.finished) > 1 else "one seed"
    echo(f"{'accuracy':22}[bold]{run.interval()}[/bold]  {over}")
    for name, key in more:
        echo(f"{name:22}{number(run.mean(key), 3)}")
    stored = run.mean("bits_stored")
    if stored is not None:
        each = run.mean("bits_per_parameter")
        echo(f"{'bits stored':22}{stored:,.0f} of {spec.entropy:,.0f}, {number(each, 3)} for each parameter")
    ranks = {name: run.mean(name) for trial in run.finished[:1] for name in trial.metrics if name.startswith(RANK)}
    for name, share in sorted(ranks.items(), key=lambda item: int(item[0].removeprefix(RANK))):
        echo(f"{'recalled from rank ' + name.removeprefix(RANK):22}{number(share)}")


# What is shown beside accuracy where it is measured.
MEASURED = {
    "attention": "attention_accuracy",
    "items recalled": "recalled",
    "on the first facts": "old_accuracy",
    "hallucinated": "hallucination",
    "confident when wrong": "confidence_when_wrong",
}
RANK = "recall_rank_"


def _head_table(run: Run) -> Table | None:
    weights = head_weights(run)
    if weights is None or weights.shape[1] > MOST_HEADS:
        return None
    columns = ["layer", *(f"head {head + 1}" for head in range(weights.shape[1]))]
    rows = [(str(layer + 1), *(number(float(weight), 2) for weight in line)) for layer, line in enumerate(weights)]
    grid = table(columns, rows, left=(), title="Attention on what decides, where an answer is read")
    return grid


def headline(spec: Transformer) -> str:
    """The task, and the model with its parameters."""
    sizes = spec.sizes
    task = f"{spec.task}: {sizes.tokens:,} tokens, {sizes.outputs:,} answers, sequences of {sizes.positions:,}"
    if sizes.items:
        task += f", {sizes.items:,} to recall, {spec.entropy:,.0f} bits"
    layers = f"{spec.layers} layer{'s' * (spec.layers > 1)}, d={spec.dim} H={spec.heads} d_h={spec.head_size}"
    layers += f" m={spec.width}"
    return f"{task}\n{layers}, embeddings {spec.embeddings}: {spec.parameters:,} parameters"


def show_capacity(found: TransformerCapacity) -> None:
    """A capacity for people."""
    spec, limits = found.spec, found.limits
    echo(headline(spec), style="bold")
    echo(f"criterion   accuracy {found.target:g}, learning rates {', '.join(f'{rate:g}' for rate in found.rates)}")
    echo(f"status      {found.status}: {search_status(found.status, 'limit')}")
    if limits.estimate is not None:
        each = [limit for limit in limits.each if limit is not None]
        ends = " to ".join(number(end, 1) for end in (limits.low, limits.high))
        word = "least" if found.needed else "most"
        echo(
            f"{word:12}[bold]{limits.estimate:,.1f}[/bold] {found.along}  95 % interval {ends}, "
            f"{len(each)} seeds from {min(each):,.1f} to {max(each):,.1f}"
        )
    echo(f"trainings   {len(found.trials)}")
