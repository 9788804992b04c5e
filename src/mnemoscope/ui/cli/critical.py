"""`mnemoscope critical`: where accuracy along one axis crosses a target."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, get_args

from cyclopts import Parameter

from mnemoscope.experiments.critical import Along, AnySpec, Critical, range_about
from mnemoscope.experiments.critical import critical as find_critical
from mnemoscope.experiments.forecast import Ahead, of_crossings
from mnemoscope.spec import Own, Retrieval, read_option
from mnemoscope.spec.validators import one_of
from mnemoscope.ui.cli import options
from mnemoscope.ui.cli.output import deliver, echo, number, search_status
from mnemoscope.ui.cli.own import NO_WORDS, OwnOptions, headline
from mnemoscope.ui.cli.setting import Setting, takes
from mnemoscope.ui.cli.sweeping import open_tools
from mnemoscope.ui.figures.canvas import sizes


@dataclass(frozen=True)
class Search:
    """How to search for a crossing: what crosses which target, where, and how closely."""

    target: options.Target = 0.5
    measure: options.MeasureName = "accuracy"
    range_: Annotated[
        options.Ends, options.range_option("where to search [default: a factor of 8 around theory's guess]")
    ] = None
    tolerance: options.Tolerance = 0.1
    seeds: options.MostSeeds = 32
    seed: options.FirstSeed = 0

    def ends(self, spec: AnySpec, along: str) -> tuple[int, int]:
        """The range to search for one setting."""
        return self.range_ or range_about(spec, along, self.target, self.measure)

    def ahead(self, specs: Sequence[AnySpec], along: str, ranges: Sequence[tuple[int, int]]) -> Ahead:
        """The forecast of a search for each setting."""
        search = {"target": self.target, "measure": self.measure, "most_seeds": self.seeds}
        return lambda left, platform: of_crossings(specs, along, ranges, **search, platform=platform)

    @property
    def settings(self) -> dict[str, Any]:
        """The search as the arguments of `critical` and `fit`."""
        return {
            "target": self.target,
            "measure": self.measure,
            "tolerance": self.tolerance,
            "most_seeds": self.seeds,
            "first_seed": self.seed,
        }


SearchOptions = Annotated[Search, Parameter(name="*")]
DEFAULT_SEARCH = Search()
# The choices as help shows those of other options; models and tasks of the user's own add theirs.
ALONG = f"or a size of a model or a task of your own [choices: {', '.join(get_args(Along))}]"


def check_along(along: str, own: Own | None) -> None:
    """Refuse an axis that a setting does not have."""
    known = get_args(Along) if own is None else tuple(own.axes)
    read_option("along", one_of(*known), along)


@takes(Retrieval, file=True)
def critical(
    setting: Setting[Retrieval],
    *,
    own: OwnOptions = NO_WORDS,
    along: Annotated[str, Parameter(metavar="AXIS", help=f"the axis, {ALONG}")] = "samples",
    search: SearchOptions = DEFAULT_SEARCH,
    work: options.WorkOptions = options.DEFAULT_WORK,
    json: options.Json = False,
) -> int:
    """Find where accuracy along one axis crosses a target, with an interval.

    Trials are kept in the store, so a search that was stopped continues where it left off. Example:

    `mnemoscope critical --vocab 256 --dim 100 --length 32 --along samples`

    With `--model` and `--task`, a model of your own is searched along one of its sizes, or of its task's:

    `mnemoscope critical --model mymodel:model --task mytask:Facts --along facts --range 4:4096`
    """
    own_spec = own.in_place_of(setting)
    check_along(along, own_spec)
    # The axis needs no value: the search finds it.
    spec = own_spec or Retrieval.read({along: 2, **setting.given()})
    low, high = search.ends(spec, along)
    with open_tools(work, search.ahead([spec], along, [(low, high)])) as tools:
        crossing = find_critical(spec, along, low=low, high=high, **search.settings, tools=tools)
    deliver(crossing, json, show)
    return tools.progress.status()


def show(crossing: Critical) -> None:
    """The estimate for people."""
    spec = crossing.spec
    fixed = headline(spec, without=(crossing.axis,)) if isinstance(spec, Own) else sizes(spec, without=(crossing.axis,))
    echo(f"{fixed}, {crossing.measure} {crossing.target:g} along {crossing.axis}", style="bold")
    lost = crossing.status == "unresolved" and crossing.estimate is None
    words = "all trials at a point it needed crashed" if lost else search_status(crossing.status, "crossing")
    echo(f"status     {crossing.status}: {words}")
    if crossing.estimate is not None:
        ends = " to ".join(number(end, 1) for end in (crossing.low, crossing.high))
        echo(f"estimate   [bold]{crossing.estimate:,.1f}[/bold]  95 % interval {ends}")
    if crossing.predicted is not None:
        ratio = f", {crossing.predicted / crossing.estimate:.2f} of it" if crossing.estimate else ""
        echo(f"predicted  {crossing.predicted:,.0f}{ratio}")
    late = f", {crossing.unreached} had not settled" if crossing.unreached else ""
    echo(f"trials     {len(crossing.trials)}, {crossing.tokens:,} tokens{late}")
