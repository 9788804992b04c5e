"""`mnemoscope fit`: scaling exponents from critical points over several axes."""

from pathlib import Path
from typing import Annotated, cast, get_args

from cyclopts import Parameter
from rich import box
from rich.console import Console
from rich.table import Table

from mnemoscope.experiments.axes import read_axis
from mnemoscope.experiments.critical import Along
from mnemoscope.experiments.fit import Scaling, settings
from mnemoscope.experiments.fit import fit as find
from mnemoscope.experiments.forecast import GUESS, Forecast, of_crossings, of_theory
from mnemoscope.spec import LETTERS, SpecError, read_option
from mnemoscope.spec.validators import between, one_of
from mnemoscope.ui.cli.asking import YES, ask_first
from mnemoscope.ui.cli.critical import read_range
from mnemoscope.ui.cli.output import deliver
from mnemoscope.ui.cli.setting import DEVICE, FIRST_SEED, JSON, Setting, read_device, read_whole
from mnemoscope.ui.cli.sweeping import CLUSTER, MEASURE, STORE, open_tools, read_measure
from mnemoscope.ui.figures.canvas import check_form
from mnemoscope.ui.figures.scaling import draw_scaling

WORDS = {
    "too-few-points": "too few points have a crossing; give more of them, or another --range",
    "axes-do-not-vary": "among the points with a crossing some axis has one value alone",
}


def fit(
    setting: Annotated[Setting | None, Parameter(name="*")] = None,
    *,
    axis: Annotated[list[str], Parameter(negative="", help="an axis of the grid, such as dim=64:128:3; give several")],
    along: Annotated[str, Parameter(help="whose critical value: vocab, dim, length, samples or width")] = "samples",
    target: Annotated[str, Parameter(help="the accuracy to cross")] = "0.5",
    measure: Annotated[str, MEASURE] = "accuracy",
    log: Annotated[str | None, Parameter(help="divide the critical value by the logarithm of this axis first")] = None,
    range_: Annotated[
        str | None, Parameter(name="--range", help="LOW:HIGH for all points [default: about theory's guesses]")
    ] = None,
    tolerance: Annotated[str, Parameter(help="search until a point's 95 % interval is +- this share")] = "0.1",
    seeds: Annotated[str, Parameter(help="the most seeds at one place")] = "32",
    seed: Annotated[str, FIRST_SEED] = "0",
    out: Annotated[Path | None, Parameter(help="also draw it into this file (.png, .svg or .pdf)")] = None,
    device: Annotated[str, DEVICE] = "auto",
    cluster: Annotated[str | None, CLUSTER] = None,
    store: Annotated[Path | None, STORE] = None,
    yes: Annotated[bool, YES] = False,
    json: Annotated[bool, JSON] = False,
) -> int:
    """Fit scaling exponents to critical points over several axes, beside theory's.

    Every point of the grid is searched as `critical` does, a power law is fitted with weights from
    the points' intervals, and held against a law whose axes add instead of multiply. Trials are
    kept in the store: stop and go on at will. Example:

    `mnemoscope fit --length 32 --axis vocab=128,256 --axis dim=64,80,100 --out fit.png`
    """
    whose = cast(Along, read_option("along", one_of(*get_args(Along)), along))
    axes = [read_axis("axis", text) for text in axis]
    if log is not None and log not in [one.field for one in axes]:
        raise SpecError("log", f"expected one of the axes, got {log!r}")
    base = (setting or Setting()).given()
    specs = settings(base, axes, whose)
    # Before theory is asked where each point's crossing lies, which takes a moment each.
    ask_first(of_theory(GUESS * len(specs)), "cpu", yes, aloud=False)
    aim = read_option("target", between(0.001, 0.999), target)
    wide = read_option("tolerance", between(0.001, 10), tolerance)
    what = read_measure(measure)
    ranges = [read_range(spec, whose, aim, what, range_) for spec in specs]
    most, first = read_whole("seeds", seeds, 3, 10**4), read_whole("seed", seed, 0, 2**62)
    if out is not None:
        check_form(out)

    def ahead(left: object, platform: str) -> Forecast:
        return of_crossings(specs, whose, ranges, target=aim, measure=what, most_seeds=most, platform=platform)

    with open_tools(cluster, read_device(device), store, ahead, agreed=yes) as tools:
        made = find(
            base,
            axes,
            whose,
            target=aim,
            measure=what,
            log_of=log,
            ranges=ranges,
            tolerance=wide,
            most_seeds=most,
            first_seed=first,
            **tools,
        )
    deliver(made, out, json, draw_scaling, show)
    return tools["progress"].status()


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
