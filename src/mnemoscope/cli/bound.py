"""`mnemoscope bound`: what the first gradient can know, and what decoders get out of it."""

import math
from typing import Annotated, Any

from cyclopts import Parameter
from rich.console import Console

from mnemoscope.analysis.intervals import Interval, mean_interval
from mnemoscope.cli.output import Watch, bar, number, print_json
from mnemoscope.cli.setting import Setting, read_device, read_option, read_whole
from mnemoscope.experiments.decoders import decode, see
from mnemoscope.fields import between
from mnemoscope.spec import Retrieval
from mnemoscope.theory.bound import bound_accuracy, bound_samples, collapse, known_nats, needed_nats

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
    seed: Annotated[str, Parameter(help="the first seed")] = "0",
    device: Annotated[str, Parameter(help="auto, cpu or gpu")] = "auto",
    json: Annotated[
        bool, Parameter(negative="", help="print one JSON object instead of tables")
    ] = False,
) -> int:
    """Bound what any estimator can name that sees only the first gradient.

    Beside the bound: decoders that see exactly that, on the samples of several seeds. Example:

    `mnemoscope bound --vocab 256 --dim 128 --length 16 --samples 20000`
    """
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


def show(spec: Retrieval, told: dict[str, Any], found: dict[str, Interval]) -> None:
    """The bound and the decoders for people."""
    console = Console(highlight=False)
    console.print(
        f"V={spec.vocab:,} d={spec.dim:,} L={spec.length:,} N={spec.samples:,}", style="bold"
    )
    least = told["information_bound_samples"]
    console.print(
        f"to name {told['target']:g} of the labels from the first gradient, at least "
        f"{'more N than can be written' if least is None else f'N = {least:,.0f}'}\n"
        f"here it holds at most {told['known_nats']:,.0f} nats, and "
        f"{told['needed_nats']:,.0f} are needed\n"
        f"{told['collapse']['formula']} = {told['collapse']['x']:.3g}\n"
    )
    most = told["bound_accuracy"]
    console.print(f"  {'no estimator more than':34} {number(most)}  {bar(most)}")
    for name, interval in found.items():
        console.print(f"  {NAMES[name]:34} {number(interval.mean)}  {bar(interval.mean or 0.0)}")
