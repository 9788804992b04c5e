"""`mnemoscope critical`: where accuracy along one axis crosses a target."""

from pathlib import Path
from typing import Annotated, cast, get_args

from cyclopts import Parameter
from rich.console import Console

from mnemoscope.experiments.critical import Along, Critical, range_about
from mnemoscope.experiments.critical import critical as find
from mnemoscope.experiments.forecast import Forecast, of_crossings
from mnemoscope.spec import LETTERS, Retrieval, read_option
from mnemoscope.spec.validators import Measure, between, one_of
from mnemoscope.ui.cli.asking import YES
from mnemoscope.ui.cli.output import number, print_json
from mnemoscope.ui.cli.setting import DEVICE, FIRST_SEED, JSON, Setting, read_device, read_whole
from mnemoscope.ui.cli.sweeping import CLUSTER, MEASURE, STORE, open_tools, read_ends, read_measure

WORDS = {
    "found": "the interval is as narrow as asked for",
    "below-range": "not in the range: the crossing lies below it",
    "above-range": "not in the range: the crossing lies above it",
    "unresolved": "crossed, but the interval is wider than asked for; allow more --seeds",
}


def critical(
    setting: Annotated[Setting | None, Parameter(name="*")] = None,
    *,
    along: Annotated[str, Parameter(help="vocab, dim, length, samples or width")] = "samples",
    target: Annotated[str, Parameter(help="the accuracy to cross")] = "0.5",
    measure: Annotated[str, MEASURE] = "accuracy",
    range_: Annotated[
        str | None, Parameter(name="--range", help="LOW:HIGH [default: a factor of 8 about theory's guess]")
    ] = None,
    tolerance: Annotated[str, Parameter(help="stop when the 95 % interval is +- this share")] = "0.1",
    seeds: Annotated[str, Parameter(help="the most seeds at one place")] = "32",
    seed: Annotated[str, FIRST_SEED] = "0",
    device: Annotated[str, DEVICE] = "auto",
    cluster: Annotated[str | None, CLUSTER] = None,
    store: Annotated[Path | None, STORE] = None,
    yes: Annotated[bool, YES] = False,
    json: Annotated[bool, JSON] = False,
) -> int:
    """Find where accuracy along one axis crosses a target, with an interval.

    Trials are kept in the store: a search that was stopped goes on where it was. Example:

    `mnemoscope critical --vocab 256 --dim 100 --length 32 --along samples`
    """
    axis = cast(Along, read_option("along", one_of(*get_args(Along)), along))
    aim = read_option("target", between(0.001, 0.999), target)
    wide = read_option("tolerance", between(0.001, 10), tolerance)
    # The axis itself need not be given: it is what is searched for.
    spec = Retrieval.read({axis: 2, **(setting or Setting()).given()})
    what = read_measure(measure)
    low, high = read_range(spec, axis, aim, what, range_)
    most, first = read_whole("seeds", seeds, 3, 10**4), read_whole("seed", seed, 0, 2**62)

    def ahead(left: object, platform: str) -> Forecast:
        return of_crossings([spec], axis, [(low, high)], target=aim, measure=what, most_seeds=most, platform=platform)

    with open_tools(cluster, read_device(device), store, ahead, agreed=yes) as tools:
        found = find(
            spec,
            axis,
            target=aim,
            measure=what,
            low=low,
            high=high,
            tolerance=wide,
            most_seeds=most,
            first_seed=first,
            **tools,
        )
    if json:
        print_json(found.as_dict())
    else:
        show(found)
    return tools["progress"].status()


def read_range(spec: Retrieval, axis: Along, target: float, measure: Measure, text: str | None) -> tuple[int, int]:
    """The two ends, from the option or from theory."""
    if text is None:
        return range_about(spec, axis, target, measure)
    return read_ends(text)


def show(found: Critical) -> None:
    """The estimate for people."""
    console = Console(highlight=False)
    spec = found.spec
    fixed = " ".join(
        f"{letter}={getattr(spec, name):,}"
        for name, letter in LETTERS.items()
        if name != found.axis and (name != "width" or spec.width)
    )
    console.print(f"{fixed}, {found.measure} {found.target:g} along {found.axis}", style="bold")
    lost = found.status == "unresolved" and found.estimate is None
    words = "all trials at a place it needed crashed" if lost else WORDS[found.status]
    console.print(f"status     {found.status}: {words}")
    if found.estimate is not None:
        ends = " to ".join(number(end, 1) for end in (found.low, found.high))
        console.print(f"estimate   [bold]{found.estimate:,.1f}[/bold]  95 % interval {ends}")
    if found.predicted is not None:
        ratio = f", {found.predicted / found.estimate:.2f} of it" if found.estimate else ""
        console.print(f"predicted  {found.predicted:,.0f}{ratio}")
    console.print(f"trials     {len(found.trials)}, {found.tokens:,} tokens")
