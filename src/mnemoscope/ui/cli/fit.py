"""`mnemoscope fit`: scaling exponents from critical points over several axes."""

from typing import Annotated

from cyclopts import Parameter
from rich import box
from rich.console import Console
from rich.table import Table

from mnemoscope.experiments.axes import read_axis
from mnemoscope.experiments.critical import Along, range_about
from mnemoscope.experiments.fit import Scaling, settings
from mnemoscope.experiments.fit import fit as find
from mnemoscope.experiments.forecast import GUESS, Forecast, of_crossings, of_theory
from mnemoscope.spec import LETTERS, Retrieval, SpecError
from mnemoscope.ui.cli import options
from mnemoscope.ui.cli.asking import ask_first
from mnemoscope.ui.cli.output import deliver
from mnemoscope.ui.cli.setting import Setting, takes
from mnemoscope.ui.cli.sweeping import open_tools
from mnemoscope.ui.figures.canvas import check_form
from mnemoscope.ui.figures.scaling import draw_scaling

WORDS = {
    "too-few-points": "too few points have a crossing; give more of them, or another --range",
    "axes-do-not-vary": "among the points with a crossing some axis has one value alone",
}


@takes(Retrieval, file=True)
def fit(
    setting: Setting[Retrieval],
    *,
    axis: Annotated[list[str], Parameter(negative="", help="an axis of the grid, such as dim=64:128:3; give several")],
    along: Annotated[Along, options.choice(Along, "whose critical value")] = "samples",
    target: options.Target = 0.5,
    measure: options.MeasureName = "accuracy",
    log: Annotated[str | None, Parameter(help="divide the critical value by the logarithm of this axis first")] = None,
    range_: Annotated[
        options.Ends, options.range_option("where to search for all points [default: about theory's guesses]")
    ] = None,
    tolerance: Annotated[
        float, options.number(0.001, 10, "search until a point's 95 % interval is +- this share")
    ] = 0.1,
    seeds: options.MostSeeds = 32,
    seed: options.FirstSeed = 0,
    out: options.Picture = None,
    device: options.DeviceName = "auto",
    cluster: options.ClusterName = None,
    store: options.StoreFile = None,
    yes: options.Yes = False,
    json: options.Json = False,
) -> int:
    """Fit scaling exponents to critical points over several axes, beside theory's.

    Every point of the grid is searched as `critical` does, a power law is fitted with weights from
    the points' intervals, and held against a law whose axes add instead of multiply. Trials are
    kept in the store: stop and go on at will. Example:

    `mnemoscope fit --length 32 --axis vocab=128,256 --axis dim=64,80,100 --out fit.png`
    """
    axes = [read_axis("axis", text) for text in axis]
    if log is not None and log not in [one.field for one in axes]:
        raise SpecError("log", f"expected one of the axes, got {log!r}")
    base = setting.given()
    specs = settings(base, axes, along)
    # Before theory is asked where each point's crossing lies, which takes a moment each.
    ask_first(of_theory(GUESS * len(specs)), "cpu", yes, aloud=False)
    ranges = [range_ or range_about(spec, along, target, measure) for spec in specs]
    if out is not None:
        check_form(out)

    def ahead(left: object, platform: str) -> Forecast:
        return of_crossings(specs, along, ranges, target=target, measure=measure, most_seeds=seeds, platform=platform)

    with open_tools(cluster, device, store, ahead, agreed=yes) as tools:
        made = find(
            base,
            axes,
            along,
            target=target,
            measure=measure,
            log_of=log,
            ranges=ranges,
            tolerance=tolerance,
            most_seeds=seeds,
            first_seed=seed,
            tools=tools,
        )
    deliver(made, out, json, draw_scaling, show)
    return tools.progress.status()


def show(made: Scaling) -> None:
    """The fit for people."""
    console = Console(highlight=False)
    letter = LETTERS[made.along]
    over = f" / ln {LETTERS[made.log_of]}" if made.log_of else ""
    console.print(f"critical {letter}{over} at {made.measure} {made.target:g}, {len(made.found)} points", style="bold")
    if made.status != "found":
        console.print(f"no exponents: {WORDS[made.status]}")
        show_left_out(console, made)
        return
    table = Table(box=box.SIMPLE)
    for name in ("axis", "exponent", "95 % interval", "theory, same points", "leading order"):
        table.add_column(name, justify="left" if name == "axis" else "right")
    for at, one in enumerate(made.law.exponents):
        theory = f"{made.predicted.exponents[at].value:.2f}" if made.predicted else "–"
        leading = f"{made.leading[one.axis]:.2f}" if made.leading else "–"
        table.add_row(
            f"{one.axis} ({LETTERS[one.axis]})", f"{one.value:.3f}", f"{one.low:.3f} to {one.high:.3f}", theory, leading
        )
    console.print(table)
    console.print(f"binding at most points   {made.leading_name.replace('_', ' ')}")
    console.print(f"scatter about the law    {made.law.scatter:.1%} beyond the points' own errors")
    console.print(f"condition number         {made.law.condition:.2f}")
    if made.rivals is None:
        console.print("multiply or add?         too few points to ask")
    else:
        factor = made.rivals.left_out
        console.print(
            f"multiply or add?         {made.rivals.verdict}: Akaike's criterion differs by "
            f"{made.rivals.criterion:+.1f}; a point left out is missed by a factor of "
            f"{factor['multiplicative']:.3f} (multiply), {factor['additive']:.3f} (add)"
        )
    for one in made.beyond:
        forms = ", ".join(f"{factor:.3f} ({form})" for form, factor in one.missed.items())
        console.print(f"beyond {one.axis} < {one.value:g}: {one.points} points missed by a factor of {forms}")
    wide = sum(one.status == "unresolved" for one in made.found)
    if wide:
        console.print(f"{wide} points have intervals wider than asked for, and weigh less")
    show_left_out(console, made)


def show_left_out(console: Console, made: Scaling) -> None:
    """The points that had no crossing to fit, each with why."""
    for one in made.left_out:
        where = " ".join(f"{LETTERS[axis]}={getattr(one.spec, axis):,}" for axis in made.points.axes)
        console.print(f"left out: {where}, {one.status}")
