"""`mnemoscope bound`: what the first gradient can know, and what decoders get out of it."""

import math
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter
from rich.console import Console

from mnemoscope.analysis.intervals import Interval, mean_interval
from mnemoscope.cli.output import Watch, bar, number, print_json
from mnemoscope.cli.setting import DEVICE, FIRST_SEED, JSON, Setting, read_device, read_whole
from mnemoscope.experiments.collapse import measure_collapse, settings
from mnemoscope.experiments.decoders import decode, see
from mnemoscope.fields import Device, between
from mnemoscope.report.canvas import open_canvas
from mnemoscope.report.collapse import draw_collapse
from mnemoscope.spec import Retrieval, read_option
from mnemoscope.theory.bound import (
    bound_accuracy,
    bound_samples,
    collapse,
    coverage_samples,
    known_nats,
    needed_nats,
)

NAMES = {
    "matched_filter": "matched filter",
    "least_squares": "least squares",
    "message_passing": "message passing",
    "matched_assignment": "matched filter, every label once",
    "squares_assignment": "least squares, every label once",
    "message_assignment": "message passing, every label once",
}


def bound(
    setting: Annotated[Setting | None, Parameter(name="*")] = None,
    *,
    target: Annotated[str, Parameter(help="the share of labels that is to be named")] = "0.5",
    seeds: Annotated[str, Parameter(help="how many seeds to run")] = "8",
    seed: Annotated[str, FIRST_SEED] = "0",
    device: Annotated[str, DEVICE] = "auto",
    collapse_to: Annotated[
        Path | None,
        Parameter(
            name="--collapse",
            help="instead, draw the decoders of many settings against N d^2 / (L V^2 ln V) into "
            "this file (.png, .svg or .pdf)",
        ),
    ] = None,
    json: Annotated[bool, JSON] = False,
) -> int:
    """Bound what any estimator can name that sees only the first gradient.

    Beside the bound: decoders that see exactly that, on the samples of several seeds. Example:

    `mnemoscope bound --vocab 256 --dim 128 --length 16 --samples 20000`
    """
    if collapse_to is not None:
        return draw(collapse_to, read_whole("seeds", seeds, 2, 10**6), read_device(device), json)
    spec = (setting or Setting()).read()
    share = read_option("target", between(0.001, 1.0), target)
    count, first = read_whole("seeds", seeds, 1, 10**6), read_whole("seed", seed, 0, 2**63 - 1)
    where = read_device(device)
    shares: list[dict[str, float]] = []
    with Watch("seeds", count) as watch:
        for number_of in range(first, first + count):
            shares.append(decode(see(spec, number_of, where)))
            watch.advance(1)
    found = {
        name: mean_interval([one[name] for one in shares], float(spec.vocab)) for name in shares[0]
    }
    least = bound_samples(spec, share)
    told: dict[str, Any] = {
        "spec": spec.model_dump(),
        "any_learner_samples": coverage_samples(spec, share) if share < 1 else None,
        "target": share,
        "information_bound_samples": least if math.isfinite(least) else None,
        "bound_accuracy": bound_accuracy(spec),
        "known_nats": known_nats(spec),
        "needed_nats": needed_nats(spec.vocab, share),
        "collapse": {"x": collapse(spec).x, "formula": collapse(spec).formula},
        **{name: interval.as_dict() for name, interval in found.items()},
    }
    if json:
        print_json(told)
    else:
        show(spec, told, found)
    return 0


def draw(path: Path, seeds: int, device: Device, json: bool) -> int:
    """The collapse of many settings, measured and drawn."""
    open_canvas(path, width=1, height=1)  # a file that cannot be drawn is refused before the work
    specs = settings()
    with Watch("settings", len(specs)) as watch:
        points = measure_collapse(specs, seeds, device, watch.advance)
    draw_collapse(points, path)
    told = [
        {"spec": one.spec.model_dump(exclude_defaults=True), "x": one.x,
         **{name: share.as_dict() for name, share in one.shares.items()}}
        for one in points
    ]  # fmt: skip
    if json:
        print_json({"points": told, "path": str(path)})
    else:
        Console(highlight=False).print(f"drawn: {path}, {len(points)} settings, {seeds} seeds each")
    return 0


def show(spec: Retrieval, told: dict[str, Any], found: dict[str, Interval]) -> None:
    """The bound and the decoders for people."""
    console = Console(highlight=False)
    console.print(
        f"V={spec.vocab:,} d={spec.dim:,} L={spec.length:,} N={spec.samples:,}", style="bold"
    )
    least, anyone = told["information_bound_samples"], told["any_learner_samples"]
    console.print(
        f"to name {told['target']:g} of the labels from the first gradient, at least "
        f"{'more N than can be written' if least is None else f'N = {least:,.0f}'}\n"
        f"any learner, however it looks at the samples, needs "
        f"{'all tokens seen' if anyone is None else f'about N = {anyone:,.0f}'}\n"
        f"here the first gradient holds at most {told['known_nats']:,.0f} nats, and "
        f"{told['needed_nats']:,.0f} are needed\n"
        f"{told['collapse']['formula']} = {told['collapse']['x']:.3g}\n"
    )
    most = told["bound_accuracy"]
    console.print(f"  {'no estimator more than':34} {number(most)}  {bar(most)}")
    for name, interval in found.items():
        console.print(f"  {NAMES[name]:34} {number(interval.mean)}  {bar(interval.mean or 0.0)}")
