"""`mnemoscope critical`: where accuracy along one axis crosses a target."""

from typing import Annotated

from rich.console import Console

from mnemoscope.experiments.critical import Along, Critical, range_about
from mnemoscope.experiments.critical import critical as find
from mnemoscope.experiments.forecast import Forecast, of_crossings
from mnemoscope.spec import LETTERS, Retrieval
from mnemoscope.ui.cli import options
from mnemoscope.ui.cli.output import number, print_json
from mnemoscope.ui.cli.setting import Setting, takes
from mnemoscope.ui.cli.sweeping import open_tools

WORDS = {
    "found": "the interval is as narrow as asked for",
    "below-range": "not in the range: the crossing lies below it",
    "above-range": "not in the range: the crossing lies above it",
    "unresolved": "crossed, but the interval is wider than asked for; allow more --seeds",
}


@takes(Retrieval, file=True)
def critical(
    setting: Setting[Retrieval],
    *,
    along: Annotated[Along, options.choice(Along, "the axis")] = "samples",
    target: options.Target = 0.5,
    measure: options.MeasureName = "accuracy",
    range_: Annotated[
        options.Ends, options.range_option("where to search [default: a factor of 8 about theory's guess]")
    ] = None,
    tolerance: options.Tolerance = 0.1,
    seeds: options.MostSeeds = 32,
    seed: options.FirstSeed = 0,
    device: options.DeviceName = "auto",
    cluster: options.ClusterName = None,
    store: options.StoreFile = None,
    yes: options.Yes = False,
    json: options.Json = False,
) -> int:
    """Find where accuracy along one axis crosses a target, with an interval.

    Trials are kept in the store: a search that was stopped goes on where it was. Example:

    `mnemoscope critical --vocab 256 --dim 100 --length 32 --along samples`
    """
    # The axis itself need not be given: it is what is searched for.
    spec = Retrieval.read({along: 2, **setting.given()})
    low, high = range_ or range_about(spec, along, target, measure)

    def ahead(left: object, platform: str) -> Forecast:
        return of_crossings(
            [spec], along, [(low, high)], target=target, measure=measure, most_seeds=seeds, platform=platform
        )

    with open_tools(cluster, device, store, ahead, agreed=yes) as tools:
        found = find(
            spec,
            along,
            target=target,
            measure=measure,
            low=low,
            high=high,
            tolerance=tolerance,
            most_seeds=seeds,
            first_seed=seed,
            tools=tools,
        )
    if json:
        print_json(found.as_dict())
    else:
        show(found)
    return tools.progress.status()


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
