"""`mnemoscope fit`: scaling exponents from critical points over several axes."""

from typing import Annotated

from cyclopts import Parameter

from mnemoscope.experiments.axes import read_axis
from mnemoscope.experiments.fit import Scaling, settings
from mnemoscope.experiments.fit import fit as fit_scaling
from mnemoscope.experiments.forecast import GUESS, counted, of_theory
from mnemoscope.spec import LETTERS, Retrieval, SpecError
from mnemoscope.spec.summary import axis_words
from mnemoscope.ui.cli import options
from mnemoscope.ui.cli.asking import ask_first
from mnemoscope.ui.cli.critical import ALONG, DEFAULT_SEARCH, SearchOptions, check_along
from mnemoscope.ui.cli.output import deliver, echo, table
from mnemoscope.ui.cli.own import NO_WORDS, OwnOptions
from mnemoscope.ui.cli.setting import Setting, takes
from mnemoscope.ui.cli.sweeping import open_tools
from mnemoscope.ui.figures.canvas import check_form
from mnemoscope.ui.figures.scaling import draw_scaling

WORDS = {
    "too-few-points": "too few points have a crossing; give more of them, or another --range",
    "axes-do-not-vary": "some axis has only one value among the points with a crossing",
}


@takes(Retrieval, file=True)
def fit(
    setting: Setting[Retrieval],
    *,
    own: OwnOptions = NO_WORDS,
    axis: Annotated[
        list[str],
        Parameter(
            negative="", metavar="FIELD=VALUES", help="an axis of the grid, such as dim=64:128:3; give at least one"
        ),
    ],
    along: Annotated[
        str, Parameter(metavar="AXIS", help=f"the axis whose critical value is fitted, {ALONG}")
    ] = "samples",
    log: Annotated[
        str | None, Parameter(metavar="FIELD", help="divide the critical value by the logarithm of this axis first")
    ] = None,
    search: SearchOptions = DEFAULT_SEARCH,
    out: options.Picture = None,
    work: options.WorkOptions = options.DEFAULT_WORK,
    json: options.Json = False,
) -> int:
    """Fit scaling exponents to critical points over several axes, beside theory's.

    Searches every point of the grid as `critical` does, fits a power law weighted by the points' intervals, and
    compares it with a law whose terms add instead of multiplying. Trials are kept in the store: stop and continue at
    any time. Example:

    `mnemoscope fit --length 32 --axis vocab=128,256 --axis dim=64,80,100 --out fit.png`

    With `--model` and `--task`, axes are sizes of a model or a task of your own, and `--range` is needed:

    `mnemoscope fit --model mymodel:model --task mytask:Facts --along facts --axis dim=4,8,16 --range 4:4096`
    """
    own_spec = own.in_place_of(setting)
    check_along(along, own_spec)
    axes = [read_axis("axis", text, own_spec) for text in axis]
    if log is not None and log not in [grid_axis.field for grid_axis in axes]:
        raise SpecError("log", f"expected one of the axes, got {log!r}")
    base = own_spec or setting.given()
    specs = settings(base, axes, along)
    # Theory takes a moment for the guess at every point.
    ask_first(of_theory(GUESS * len(specs)), "cpu", work.yes, aloud=False)
    ranges = [search.ends(spec, along) for spec in specs]
    check_form(out)
    with open_tools(work, search.ahead(specs, along, ranges)) as tools:
        scaling = fit_scaling(base, axes, along, log_of=log, ranges=ranges, **search.settings, tools=tools)
    deliver(scaling, json, show, out, draw_scaling)
    return tools.progress.status()


def show(scaling: Scaling) -> None:
    """The fit for people."""
    over = f" / ln {_letter(scaling.log_of)}" if scaling.log_of else ""
    echo(
        f"critical {_letter(scaling.along)}{over} at {scaling.measure} {scaling.target:g}, {len(scaling.found)} points",
        style="bold",
    )
    if scaling.status != "found":
        echo(f"no exponents: {WORDS[scaling.status]}")
        show_left_out(scaling)
        return
    columns = ("axis", "exponent", "95 % interval", "theory, same points", "leading order")
    rows = [
        (
            axis_words(exponent.axis),
            f"{exponent.value:.3f}",
            f"{exponent.low:.3f} to {exponent.high:.3f}",
            f"{scaling.predicted.exponents[at].value:.2f}" if scaling.predicted else "–",
            f"{scaling.leading[exponent.axis]:.2f}" if scaling.leading else "–",
        )
        for at, exponent in enumerate(scaling.law.exponents)
    ]
    echo(table(columns, rows, left=("axis",)))
    echo(f"binding at most points   {scaling.leading_name.replace('_', ' ')}")
    echo(f"scatter about the law    {scaling.law.scatter:.1%} beyond the points' own errors")
    echo(f"condition number         {scaling.law.condition:.2f}")
    if scaling.rivals is None:
        echo("multiply or add?         too few points to ask")
    else:
        factor = scaling.rivals.left_out
        echo(
            f"multiply or add?         {scaling.rivals.verdict}: Akaike's criterion differs by "
            f"{scaling.rivals.criterion:+.1f}; a point left out is missed by a factor of "
            f"{factor['multiplicative']:.3f} (multiply), {factor['additive']:.3f} (add)"
        )
    for beyond in scaling.beyond:
        forms = ", ".join(f"{factor:.3f} ({form})" for form, factor in beyond.missed.items())
        echo(f"beyond {beyond.axis} < {beyond.value:g}: {beyond.points} points missed by a factor of {forms}")
    wide = sum(point.status == "unresolved" for point in scaling.found)
    if wide:
        echo(f"{wide} points have intervals wider than asked for and count for less")
    if scaling.unreached:
        echo(f"{counted(scaling.unreached, 'training')} had not settled, and count with the accuracy they reached")
    show_left_out(scaling)


def show_left_out(scaling: Scaling) -> None:
    """The points without a crossing to fit, each with the reason."""
    for point in scaling.left_out:
        where = " ".join(f"{_letter(axis)}={point.spec.value_of(axis):,}" for axis in scaling.points.axes)
        echo(f"left out: {where}, {point.status}")


def _letter(axis: str) -> str:
    return LETTERS.get(axis, axis)
