"""`mnemoscope plan`: what a job needs, or what a budget buys."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from rich import box
from rich.console import Console
from rich.padding import Padding
from rich.table import Table

from mnemoscope.experiments.plan import Option, Plan, plan_budget, plan_job
from mnemoscope.spec import SpecError
from mnemoscope.store.schema import default_path
from mnemoscope.store.trials import Store
from mnemoscope.theory.predict import REGIMES
from mnemoscope.ui.cli.options import Json, count
from mnemoscope.ui.cli.options import number as number_option
from mnemoscope.ui.cli.output import number, print_json
from mnemoscope.ui.figures.canvas import check_form
from mnemoscope.ui.figures.trade_off import draw_trade_off


def plan(
    *,
    facts: Annotated[
        int | None, count(2, 2**24, "how many facts to recall; leave out to ask what a budget buys")
    ] = None,
    length: Annotated[int, count(1, 2**20, "L: tokens among which the one that counts is hidden")],
    target: Annotated[float, number_option(0.001, 0.9999, "the accuracy to reach")] = 0.95,
    parameters: Annotated[float | None, number_option(1, 1e15, "at most so many, such as 1e6")] = None,
    tokens: Annotated[float | None, number_option(1, 1e15, "training tokens, at most so many")] = None,
    out: Annotated[Path | None, Parameter(help="draw the trade-off into this .png, .svg or .pdf file")] = None,
    store: Annotated[Path | None, Parameter(help="where measurements are looked up [default: the user's own]")] = None,
    json: Json = False,
) -> int:
    """Say what d, m and N a job needs, or how much a budget can recall.

    From theory, in a moment. What the store has measured is shown instead and called so, and a way
    that was measured below the target is left out. Examples:

    `mnemoscope plan --facts 10000 --length 64 --target 0.95`

    `mnemoscope plan --parameters 1e6 --tokens 1e7 --length 64`
    """
    if out is not None:
        check_form(out)
        if facts is None:
            raise SpecError("out", "expected --facts, since a budget leaves no trade-off to draw")
    with open_known(store) as known:
        if facts is None:
            made = plan_budget(length, target, parameters=parameters, tokens=tokens, store=known)
        else:
            made = plan_job(facts, length, target, parameters=parameters, tokens=tokens, store=known)
    if made.recommended is None and not made.alternatives:
        out = None  # there is no way to do it, and none to draw
    if out is not None:
        draw_trade_off(made, out)
    if json:
        print_json({**made.as_dict(), "path": None if out is None else str(out)})
    else:
        show(made, target)
        if out is not None:
            Console(highlight=False).print(f"drawn: {out}")
    return 0


@contextlib.contextmanager
def open_known(path: Path | None) -> Iterator[Store | None]:
    """The store, for reading, if there is one."""
    place = path or default_path()
    if path is None and not place.exists():
        yield None
        return
    with Store(place, writing=False) as store:
        yield store


def show(made: Plan, aim: float) -> None:
    """The plan for people."""
    console = Console(highlight=False)
    best = made.recommended
    if best is not None:
        told = best.as_dict()
        console.print(
            f"[bold]{told['facts']:,} facts among {told['length']:,} tokens, accuracy "
            f"{aim:g}[/bold]\n"
            f"take       {_sizes(best)}\n"
            f"that is    {best.parameters:,} parameters, {told['bits_per_parameter']:.2f} bits in "
            f"each; {best.tokens:,} training tokens\n"
            f"accuracy   {_accuracy(best)}\n"
            f"binding    {best.binding}: {REGIMES[best.binding]}\n"
            f"bounds     any learner needs N = {told['coverage_bound']:,.0f}"
            f"{_from_first_gradient(told['first_gradient_bound'])}"
        )
    for note in made.notes:
        console.print(Padding(note, (0, 0, 0, 11)))
    if not made.alternatives:
        return
    ways = made.alternatives
    bases = {one.basis for one in ways}
    title = "Alternatives" + (f" ({bases.pop()})" if len(bases) == 1 else "")
    columns = {
        "facts": [short(one.spec.vocab) for one in ways] if facts_differ(made) else [],
        "d": [f"{one.spec.dim:,}" for one in ways],
        "m": [f"{one.spec.width:,}" if one.spec.width else "–" for one in ways],
        "N": [short(one.spec.samples) for one in ways],
        "params": [short(one.parameters) for one in ways],
        "tokens": [short(one.tokens) for one in ways],
        "bits each": [f"{one.as_dict()['bits_per_parameter']:.2f}" for one in ways],
        "basis": [one.basis for one in ways] if len(bases) > 1 else [],
        "binding": [one.binding for one in ways],
    }
    shown = {name: cells for name, cells in columns.items() if cells}
    table = Table(box=box.SIMPLE, title=title, title_justify="left")
    for name in shown:
        table.add_column(name, justify="left" if name in ("basis", "binding") else "right")
    for row in zip(*shown.values(), strict=True):
        table.add_row(*row)
    console.print(table)


def facts_differ(made: Plan) -> bool:
    """Whether the ways recall different numbers of facts, as those of a budget do."""
    return len({one.spec.vocab for one in (made.recommended, *made.alternatives) if one}) > 1


def short(value: float) -> str:
    """A count in three digits: `176k`, `11.2M`."""
    for unit in ("", "k", "M", "G"):
        if value < 999.5:  # which three digits would write as 1e+03
            return f"{value:.3g}{unit}"
        value /= 1000
    return f"{value:,.3g}T"


def _sizes(one: Option) -> str:
    spec = one.spec
    mlp = f", an MLP of m = {spec.width:,} ({spec.activation})" if spec.width else ""
    return f"d = {spec.dim:,}{mlp}, N = {spec.samples:,} samples"


def _accuracy(one: Option) -> str:
    told = one.measured
    if told is not None:
        return f"{number(told.mean)} [{number(told.low)}, {number(told.high)}], measured"
    low, high = number(one.told.low), number(one.told.high)
    return f"{number(one.told.accuracy)} \\[{low}, {high}] over seeds, {one.basis}"


def _from_first_gradient(samples: float | None) -> str:
    return "" if samples is None else f"; from the first gradient alone N = {samples:,.0f}"
