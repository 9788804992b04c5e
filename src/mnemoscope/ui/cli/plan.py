"""`mnemoscope plan`: what a job needs, or what a budget buys."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from rich.padding import Padding

from mnemoscope.experiments.plan import MEANINGS, Option, Plan
from mnemoscope.experiments.plan_frequencies import FrequencyPlan, plan_frequencies
from mnemoscope.experiments.plan_laws import Training
from mnemoscope.experiments.plan_question import plan as answer_plan
from mnemoscope.spec import Retrieval, SpecError
from mnemoscope.ui.cli.options import Json, choice, count
from mnemoscope.ui.cli.options import number as number_option
from mnemoscope.ui.cli.output import deliver, echo, number, table
from mnemoscope.ui.cli.predict import rounded
from mnemoscope.ui.figures.canvas import check_form
from mnemoscope.ui.figures.trade_off import draw_trade_off


def plan(
    *,
    facts: Annotated[int | None, count(2, 2**24, "how many facts to recall; omit it to ask what a budget buys")] = None,
    length: Annotated[int, count(1, 2**20, "L: tokens in a sequence, one of which is informative")],
    target: Annotated[float, number_option(0.001, 0.9999, "the accuracy to reach")] = 0.95,
    parameters: Annotated[float | None, number_option(1, 1e15, "at most this many, such as 1e6")] = None,
    tokens: Annotated[float | None, number_option(1, 1e15, "at most this many training tokens")] = None,
    frequencies: Annotated[
        str | None,
        Parameter(metavar="LAW", help="facts are not equally frequent: zipf:A, or file:PATH with their probabilities"),
    ] = None,
    training: Annotated[Training, choice(Training, "trained to the end, or by three gradient steps alone")] = "trained",
    out: Annotated[Path | None, Parameter(help="draw the trade-off into this .png, .svg or .pdf file")] = None,
    store: Annotated[
        Path | None, Parameter(help="the store to look measurements up in [default: the user's own]")
    ] = None,
    json: Json = False,
) -> int:
    """Say what d, m and N a job needs, or how much a budget can recall.

    Theory answers at once. A measurement in the store takes precedence and is marked as such; an option measured below
    the target is left out. The model is trained until its loss stops moving; `--training three-steps` plans for three
    gradient steps alone. With `--frequencies`: which facts a budget keeps, and how rare those are that it loses.
    Examples:

    `mnemoscope plan --facts 10000 --length 64 --target 0.95`

    `mnemoscope plan --parameters 1e6 --tokens 1e7 --length 64`

    `mnemoscope plan --facts 10000 --frequencies zipf:1 --length 4 --parameters 1e6 --tokens 1e7 --training three-steps`
    """
    check_form(out)
    if frequencies is not None:
        if out is not None:
            raise SpecError("out", "expected no file with --frequencies, which leave no trade-off to draw")
        budget = {"facts": facts, "parameters": parameters, "tokens": tokens, "training": training}
        kept = plan_frequencies(frequencies, length, target, **budget)
        return deliver(kept, json, show_frequencies)
    if out is not None and facts is None:
        raise SpecError("out", "expected --facts, since a budget leaves no trade-off to draw")
    budget = {"parameters": parameters, "tokens": tokens, "training": training}
    answer = answer_plan(facts, length=length, target=target, **budget, store=store)
    if answer.recommended is None and not answer.alternatives:
        out = None  # nothing does the job, so there is nothing to draw
    return deliver(answer, json, lambda plan: show(plan, target), out, draw_trade_off)


def show(plan: Plan, aim: float) -> None:
    """The plan for people."""
    best = plan.recommended
    if best is not None:
        data = best.as_dict()
        from_gradient = data["first_gradient_bound"]
        gradient = "" if from_gradient is None else f"; from the first gradient alone N = {from_gradient:,.0f}"
        how = "trained to the end" if best.trained else "three steps"
        echo(
            f"[bold]{data['facts']:,} facts among {data['length']:,} tokens, accuracy {aim:g}, {how}[/bold]",
            f"take       {_sizes(best.spec)}",
            f"that is    {best.parameters:,} parameters; {best.tokens:,} training tokens",
            f"in each    {data['facts_per_parameter']:.3f} facts, {data['bits_per_parameter']:.2f} bits",
        )
        if best.trained:
            echo(
                f"capacity   the weights hold about {rounded(best.capacity or 0):,} facts",
                f"attention  right in {number(best.attention_at_start, 2)} of sequences after three steps, "
                f"in {number(best.prediction.attention_accuracy, 2)} at the end",
                f"steps      {_steps(best)}",
            )
        echo(
            f"accuracy   {_accuracy(best)}",
            f"binding    {best.binding}: {MEANINGS[best.binding]}",
            f"bounds     any learner needs N = {data['coverage_bound']:,.0f}{gradient}",
        )
    for note in plan.notes:
        echo(Padding(note, (0, 0, 0, 11)))
    options = plan.alternatives
    if not options:
        return
    bases = {option.basis for option in options}
    facts = {option.spec.vocab for option in (best, *options) if option}  # a budget's options differ in them
    columns = {
        "facts": [short(option.spec.vocab) for option in options] if len(facts) > 1 else [],
        "d": [f"{option.spec.dim:,}" for option in options],
        "m": [f"{option.spec.width:,}" if option.spec.width else "–" for option in options],
        "N": [short(option.spec.samples) for option in options],
        "params": [short(option.parameters) for option in options],
        "tokens": [short(option.tokens) for option in options],
        "steps": [short(option.steps) for option in options if option.trained and option.steps is not None],
        "bits each": [f"{option.as_dict()['bits_per_parameter']:.2f}" for option in options],
        "basis": [option.basis for option in options] if len(bases) > 1 else [],
        "binding": [option.binding for option in options],
    }
    shown = {name: cells for name, cells in columns.items() if len(cells) == len(options)}
    title = "Alternatives" + (f" ({bases.pop()})" if len(bases) == 1 else "")
    echo(table([*shown], zip(*shown.values(), strict=True), left=("basis", "binding"), title=title))


def show_frequencies(plan: FrequencyPlan) -> None:
    """What is kept and what is lost, for people."""
    told, spec = plan.prediction, plan.prediction.spec
    echo(
        f"[bold]{spec.vocab:,} facts by {spec.tokens} among {spec.length:,} tokens, three steps[/bold]",
        f"take       {_sizes(spec)}",
        f"accuracy   {number(told.accuracy)} \\[{number(told.low)}, {number(told.high)}] by sequence over seeds; "
        f"{number(told.accuracy_by_fact)} by fact",
        f"attention  right in {number(told.attention_accuracy)} of sequences",
        f"binding    {told.regime}: {MEANINGS[told.regime]}",
        f"kept       {plan.facts:,} facts, which {number(plan.asked)} of sequences ask for, each with a recall of "
        f"{plan.target:g} or more",
    )
    lost = spec.vocab - plan.facts
    if plan.kept and lost:
        rarest = plan.kept[-1].probability
        echo(
            f"lost       {lost:,} facts: those rarer than 1 in {short(1 / rarest)} sequences, "
            f"of which fewer than {short(rarest * spec.samples)} were shown"
        )
    elif lost:
        echo("lost       all facts: not even the most frequent one reaches that recall")
    for note in told.notes:
        echo(Padding(note, (0, 0, 0, 11)))
    columns = [[f"{band.band.name}", f"{len(band.band.tokens):,}", number(band.accuracy)] for band in told.bands]
    echo(
        table(
            ["samples each", "facts", "recall"], columns, left=("samples each",), title="By how often facts are shown"
        )
    )


def short(value: float) -> str:
    """A count in three digits: `176k`, `11.2M`."""
    for unit in ("", "k", "M", "G"):
        if value < 999.5:  # above, three digits would print as 1e+03
            return f"{value:.3g}{unit}"
        value /= 1000
    return f"{value:,.3g}T"


def _steps(option: Option) -> str:
    """How long training takes; every step shows all samples once."""
    if option.steps is None:
        return "not derived; each shows every sample once"
    return f"about {option.steps:,}; each shows every sample once, {short(option.steps * option.tokens)} tokens in all"


def _sizes(spec: Retrieval) -> str:
    mlp = f", an MLP of m = {spec.width:,} ({spec.activation})" if spec.width else ""
    return f"d = {spec.dim:,}{mlp}, N = {spec.samples:,} samples"


def _accuracy(option: Option) -> str:
    measured, predicted = option.measured, option.prediction
    if measured.status == "found":
        return f"{number(measured.value)} [{number(measured.low)}, {number(measured.high)}], measured"
    ends = f"\\[{number(predicted.low)}, {number(predicted.high)}]"
    return f"{number(predicted.accuracy)} {ends} over seeds, {option.basis}"
