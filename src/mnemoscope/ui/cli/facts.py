"""`mnemoscope facts`: paper B's factual-recall transformer."""

from typing import Annotated

from cyclopts import Parameter

from mnemoscope.experiments import facts as experiment
from mnemoscope.experiments.axes import read_axis
from mnemoscope.experiments.facts import FactsCapacity, FactsRun, Scaling
from mnemoscope.experiments.forecast import Forecast, jobs_ahead, of_limits
from mnemoscope.spec import Facts, SpecError, read_option
from mnemoscope.spec.token_laws import UNIFORM
from mnemoscope.spec.validators import between
from mnemoscope.theory.associative import GUIDE_FACTS
from mnemoscope.ui.cli import options
from mnemoscope.ui.cli.output import bar, deliver, echo, number, search_status, table
from mnemoscope.ui.cli.setting import Setting, takes
from mnemoscope.ui.cli.sweeping import open_tools


@takes(Facts)
def facts(
    setting: Setting[Facts],
    *,
    capacity: Annotated[
        Scaling | None,
        options.choice(
            Scaling, "find how many facts fit instead, growing S = R (equal), R = sqrt(S) (sqrt), S = R = D (own)"
        ),
    ] = None,
    rates: Annotated[
        str, Parameter(metavar="VALUES", help="with --capacity: learning rates, largest first; the best one counts")
    ] = "1e-3,3e-3,1e-2",
    tolerance: Annotated[
        float, options.number(0.001, 10, "with --capacity: stop when the 95 % interval of S is within +- this share")
    ] = 0.1,
    seeds: Annotated[int, options.count(1, 10**6, "how many seeds to train; with --capacity, at most")] = 4,
    seed: options.FirstSeed = 0,
    work: options.WorkOptions = options.DEFAULT_WORK,
    json: options.Json = False,
) -> int:
    """Train paper B's transformer to recall facts, until it reaches the target.

    S subjects and R relations make S R facts, which attention and MLP store in 4 H d_h d + 2 m d parameters. Seeds
    train in parallel and are kept in the store. Example:

    `mnemoscope facts --subjects 8 --relations 8 --answers 4 --dim 32 --heads 4 --head-dim 8`

    `--method constructed` sets the weights by the paper's construction instead. `--capacity` finds how many facts a
    model of this size can learn: each seed's limit, then their mean.
    """
    law = setting.given().get("frequencies", UNIFORM)
    if capacity is not None and not law.startswith(("uniform", "zipf:")):
        expected = "uniform or zipf:EXPONENT with --capacity, which tries many numbers of facts"
        raise SpecError("frequencies", f"expected {expected}, got {law!r}")
    spec = setting.read({"subjects": 2, "relations": 2, "answers": 2} if capacity else {})
    rate_values = [read_option("rates", between(1e-8, 1e3), r) for r in read_axis("rates", f"lr={rates}").values]
    if capacity is not None:
        how = {"seeds": seeds, "most_seeds": seeds, "resolution": min(0.05, tolerance / 2), "tolerance": tolerance}

        def ahead(left: object, platform: str) -> Forecast:
            questions = experiment.facts_questions([spec], capacity, rate_values)
            return of_limits(questions, **how, platform=platform)

        with open_tools(work, ahead) as tools:
            (limit,) = experiment.facts_capacity_many(
                [spec], capacity, rates=rate_values, first_seed=seed, **how, tools=tools
            )
        deliver(limit, json, show_capacity)
    else:
        seed_numbers = range(seed, seed + seeds)
        with open_tools(work, jobs_ahead([(spec, number) for number in seed_numbers])) as tools:
            trained = experiment.learn_facts(spec, seed_numbers, tools=tools)
        deliver(trained, json, show)
    return tools.progress.status()


def show(run: FactsRun) -> None:
    """The trainings as a table."""
    spec = run.spec
    echo(
        f"S={spec.subjects:,} R={spec.relations:,} D={spec.answers:,}: {spec.facts:,} facts, {run.bits:,.0f} bits\n"
        f"d={spec.dim} H={spec.heads} d_h={spec.head_dim} m={spec.width}: {spec.parameters:,} parameters, "
        f"{spec.facts / spec.parameters:.3f} facts and {run.bits / spec.parameters:.3f} bits each",
        style="bold",
    )
    columns = ("seed", "status", "accuracy", "", "relation", "steps", "loss")
    rows = [
        (
            str(trial.seed),
            trial.status,
            number(trial.accuracy),
            bar(trial.accuracy or 0.0),
            number(trial.metrics.get("relation_accuracy")),
            number(trial.metrics.get("steps"), 0),
            number(trial.metrics.get("loss")),
        )
        for trial in run.outcomes
    ]
    echo(table(columns, rows, left=("status", "")))
    echo(f"accuracy  [bold]{run.interval}[/bold]  95 % interval over seeds")
    if spec.frequencies != UNIFORM:
        echo(f"by fact   {run.by_fact}  each fact once, instead of {spec.frequencies}")
    if run.stored_bits is not None:
        echo(f"bits      {run.stored_bits.words()}")
    for trial in run.outcomes:
        if trial.message:
            echo(f"seed {trial.seed} {trial.status}: {trial.message}")


def show_capacity(capacity: FactsCapacity) -> None:
    """A capacity for people."""
    spec, limits = capacity.spec, capacity.limits
    grow = {"equal": "S = R", "sqrt": "R = sqrt(S)", "own": "S = R = D"}[capacity.scaling]
    echo(
        f"d={spec.dim} H={spec.heads} d_h={spec.head_dim} m={spec.width}: {spec.parameters:,} parameters, {grow}, "
        f"accuracy {spec.target:g}",
        style="bold",
    )
    echo(f"status      {limits.status}: {search_status(limits.status, 'capacity')}")
    facts = capacity.facts(limits.estimate)
    if facts is not None:
        ends = " to ".join(number(capacity.facts(end), 0) for end in (limits.low, limits.high))
        echo(
            f"capacity    [bold]{facts:,.0f}[/bold] facts  95 % interval {ends}\n"
            f"            {facts / spec.parameters:.3f} facts per parameter; the authors' guide line is {GUIDE_FACTS:g}"
        )
    if capacity.stored_bits is not None:
        echo(f"bits        {capacity.stored_bits.words()}")
    echo(f"trials      {len(capacity.trials)}")
