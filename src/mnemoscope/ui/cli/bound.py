"""`mnemoscope bound`: what the first gradient reveals, and what decoders recover from it."""

import math
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter
from rich.table import Table

from mnemoscope.engine.device import find_device
from mnemoscope.engine.memory_budget import MemoryBudget, plan_memory
from mnemoscope.experiments.bound import bound as measure_bound
from mnemoscope.experiments.collapse import measure_collapse, settings
from mnemoscope.experiments.forecast import of_decoding
from mnemoscope.spec import Retrieval, SpecError, read_option
from mnemoscope.spec.validators import Device, whole
from mnemoscope.ui.cli.asking import ask_first
from mnemoscope.ui.cli.options import AnySeed, DeviceName, Json, Seeds, Yes, count, read_seeds
from mnemoscope.ui.cli.options import number as number_option
from mnemoscope.ui.cli.output import bar, deliver, echo, number, table
from mnemoscope.ui.cli.progress import Watch
from mnemoscope.ui.cli.setting import Setting, takes
from mnemoscope.ui.figures.canvas import check_form, sizes
from mnemoscope.ui.figures.collapse import draw_collapse

NAMES = {
    "matched_filter": "matched filter",
    "least_squares": "least squares",
    "message_passing": "message passing",
    "matched_assignment": "matched filter, every label once",
    "squares_assignment": "least squares, every label once",
    "message_assignment": "message passing, every label once",
}


@takes(Retrieval, file=True, without=("bits",))
def bound(
    setting: Setting[Retrieval],
    *,
    target: Annotated[float, number_option(0.001, 1.0, "the share of labels to name")] = 0.5,
    seeds: Seeds = 8,
    seed: AnySeed = 0,
    device: DeviceName = "auto",
    bits: Annotated[int | None, count(1, 64, "also bound a decoder that sees this many bits of each entry")] = None,
    noise: Annotated[
        float | None,
        number_option(
            1e-9, 1e9, "also bound a decoder that sees the gradient through noise of this many times its rms"
        ),
    ] = None,
    yes: Yes = False,
    collapse_to: Annotated[
        Path | None,
        Parameter(
            name="--collapse", help="draw the collapse of many settings into this .png, .svg or .pdf file instead"
        ),
    ] = None,
    json: Json = False,
) -> int:
    """Bound what the first gradient reveals: seen exactly, through noise, or in a few bits.

    Also runs decoders of the first gradient over several seeds, through the same noise and in the same bits. Example:

    `mnemoscope bound --vocab 256 --dim 128 --length 16 --samples 4000 --noise 1`
    """
    if collapse_to is not None:
        for option, value in (("bits", bits), ("noise", noise)):
            if value is not None:
                raise SpecError(option, f"expected none with --collapse, got {value!r}")
        return draw(collapse_to, read_option("seeds", whole(2, 10**6), seeds), device, yes, json)
    spec = setting.read()
    numbers = read_seeds(seeds, seed)
    plan_memory(spec, "float32", MemoryBudget.of(find_device(device)))
    ask_first(of_decoding([spec], seeds), "cpu", yes)
    with Watch("seeds", seeds) as watch:
        result = measure_bound(
            spec, target, seeds=numbers, bits=bits, noise=noise, device=device, progress=watch.advance
        ).as_dict()
    return deliver(result, json, lambda _: show(spec, result))


def draw(path: Path, seeds: int, device: Device, agreed: bool, json: bool) -> int:
    """Measure and draw the collapse of many settings."""
    check_form(path, option="collapse")
    specs = settings()
    ask_first(of_decoding(specs, seeds), "cpu", agreed)
    with Watch("settings", len(specs)) as watch:
        points = measure_collapse(specs, seeds, device, watch.advance)
    draw_collapse(points, path)
    rows = []
    for point in points:
        shares = {name: share.ends("mean") for name, share in point.shares.items()}
        rows.append({"spec": point.spec.model_dump(exclude_defaults=True), "x": point.x, **shares})
    line = f"drawn: {path}, {len(points)} settings, {seeds} seeds each"
    return deliver({"points": rows, "path": str(path)}, json, lambda _: echo(line))


def show(spec: Retrieval, result: dict[str, Any]) -> None:
    """The bounds and the decoders for people."""
    target, noise, bits = (result[name] for name in ("target", "noise", "bits"))
    echo(sizes(spec), style="bold")
    echo(
        f"to name {target:g} of the labels takes {result['needed_nats']:,.0f} nats",
        f"{result['collapse']['formula']} = {result['collapse']['x']:.3g}",
    )
    for title, proved in (
        ("Proved bounds on every decoder that", True),
        ("Not bounds on a decoder that searches over whole counts", False),
    ):
        echo(_table(title, [limit for limit in result["bounds"] if limit["proved"] == proved], target))
    through = [f"noise of {noise:g}"] if noise is not None else []
    through += [f"{bits} bit(s) an entry"] if bits is not None else []
    echo(f"Decoders{', through ' if through else ''}{' and '.join(through)}")
    for name in NAMES:
        if name in result:
            mean = result[name]["mean"]
            echo(f"  {NAMES[name]:34} {number(mean)}  {bar(mean or 0.0)}")


def _table(title: str, bounds: list[dict[str, Any]], target: float) -> Table:
    """For each bound: the estimators it applies to, what they can know and name here, and the N they need."""
    rows = []
    for limit in bounds:
        nats, samples = limit["nats"], limit["samples"]
        known = "–" if nats is None else f"{nats:,.3g}" if nats < 100 else f"{nats:,.0f}"
        needed = "never" if samples is None else f"{math.ceil(samples):,}"
        rows.append((limit["what"], known, number(limit["accuracy"]), needed))
    return table(("", "nats", "names at most", f"N for {target:g}"), rows, left=("",), title=title)
