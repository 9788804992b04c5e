"""`mnemoscope bench`: speed and memory beside autodiff, for anyone to check."""

import datetime
import importlib.metadata
import os
import platform
from collections.abc import Callable
from typing import Annotated, Any

import jax
from cyclopts import Parameter
from rich import box
from rich.console import Console
from rich.table import Table

from mnemoscope.engine.device import find_device, share_gpu
from mnemoscope.spec import Retrieval
from mnemoscope.spec.validators import Device
from mnemoscope.ui.bench.compare import Case, measure_bandwidth, run_case
from mnemoscope.ui.bench.cost import of_case, of_diagram, of_growth, of_stages, of_trainings
from mnemoscope.ui.bench.diagram import time_diagram
from mnemoscope.ui.bench.explorer import time_explorer
from mnemoscope.ui.bench.facts import time_facts
from mnemoscope.ui.bench.growth import growth_exponents
from mnemoscope.ui.bench.profile import check_profile
from mnemoscope.ui.bench.profile import profile as time_stages
from mnemoscope.ui.cli.asking import ask_first
from mnemoscope.ui.cli.options import Budget, DeviceName, Json, Yes, flag
from mnemoscope.ui.cli.output import number, print_json
from mnemoscope.ui.cli.progress import Watch
from mnemoscope.ui.cli.setting import Setting, takes

QUICK = [dict(vocab=256, dim=64, length=16, samples=4096)]
CPU = [
    dict(vocab=1024, dim=128, length=64, samples=32768),
    dict(vocab=1024, dim=64, length=64, samples=32768, width=1024, activation="hermite3"),
]
GPU = [dict(vocab=4096, dim=256, length=256, samples=131072)]


@takes(Retrieval, file=True)
def bench(
    setting: Setting[Retrieval],
    *,
    quick: Annotated[bool, flag("one small case, one doubling: about a minute")] = False,
    growth: Annotated[bool, Parameter(help="also fit how time grows with N, L, V and d")] = True,
    autodiff: Annotated[bool, Parameter(help="run autodiff beside ours")] = True,
    diagram: Annotated[bool, flag("time a whole phase diagram instead, compilation too")] = False,
    facts: Annotated[bool, flag("time trainings of `facts` side by side instead")] = False,
    explorer: Annotated[bool, flag("time fifty visitors of `explore` who drag instead")] = False,
    profile: Annotated[bool, flag("time each stage of the steps alone instead")] = False,
    device: DeviceName = "auto",
    memory: Budget = None,
    yes: Yes = False,
    json: Json = False,
) -> int:
    """Time the three steps against jitted automatic differentiation on this machine.

    Both sides make their own samples, in the same run on the same device, each in a process of
    its own. A ratio is given only where the two results agree. With a setting (--vocab, --dim,
    --length, --samples, ...) that one case is timed; without, the standing ones. Example:

    `mnemoscope bench --quick`
    """
    share_gpu()  # this process only asks which device there is; its memory is for the workers
    place = find_device(device)
    if diagram:
        ask_first(of_diagram(place.platform), place.platform, yes)
        return _bench_diagram(device, place, memory, json)
    if facts:
        ask_first(of_trainings(place.platform), place.platform, yes)
        return _bench_facts(device, place, json)
    if explorer:
        return _bench_explorer(place, json)
    chosen = QUICK if quick else CPU if place.platform == "cpu" else GPU
    specs = [setting.read()] if setting.spec or setting.given() else [*map(Retrieval.read, chosen)]
    if profile:
        check_profile(specs[0])
        ask_first(of_stages(specs[0], place.platform), place.platform, yes)
        return _bench_profile(specs[0], device, place, memory, json)
    repeats, doublings = (3, 1) if quick else (9, 2)
    # Everything that is timed, one after the other: sides of cases, and sizes along the axes.
    parts = [of_case(spec, repeats, place.platform, with_autodiff=autodiff) for spec in specs]
    if growth:
        parts.append(of_growth(specs[0], doublings, repeats, place.platform))
    ask_first(sum(parts[1:], parts[0]), place.platform, yes)
    with Watch("cases", sum(part.usual for part in parts)) as watch:
        bandwidth = measure_bandwidth(device)
        cases = []
        for spec, part in zip(specs, parts, strict=False):
            case = run_case(spec, bandwidth, device, with_autodiff=autodiff, repeats=repeats, budget=memory)
            cases.append(case)
            watch.advance(part.usual)
        exponents = (
            growth_exponents(
                specs[0], device, doublings, repeats, memory, lambda share: watch.advance(share * parts[-1].usual)
            )
            if growth
            else None
        )
    told = {
        "device": describe(place),
        "bandwidth": bandwidth,
        "cases": [case.as_dict() for case in cases],
        "growth": exponents,
    }
    if json:
        print_json(told)
    else:
        show(told, cases)
    return 0


def _bench_profile(spec: Retrieval, where: Device, place: Any, budget: int | None, json: bool) -> int:
    stages = time_stages(spec, where, budget)
    told = {"device": describe(place), "cases": [], "spec": spec.model_dump(), "profile": stages}
    if json:
        print_json(told)
        return 0
    print(f"{_headline(told['device'])}\n{_name(told['spec'])}".replace("\nL=", " L="))
    for name, seconds in stages.items():
        print(f"  {name:32} {seconds * 1e3:10.3f} ms")
    return 0


def _bench_diagram(where: Device, place: Any, budget: int | None, json: bool) -> int:
    jax.config.update("jax_enable_compilation_cache", False)
    diagram = time_diagram(place.platform, where, budget)
    told = {"device": describe(place), "cases": [], "diagram": diagram}
    if json:
        print_json(told)
        return 0
    done = told["diagram"]
    print(
        f"{_headline(told['device'])}\n"
        f"V={done['vocab']} L={done['length']}, {done['points']} dimensions up to {done['dims']} x "
        f"{done['points']} N up to {done['samples']} x {done['seeds']} seeds: "
        f"{done['trials']} trials, {done['failed']} failed, {done['seconds']:.1f} s, "
        "compilation included"
    )
    return 0


def _bench_facts(where: Device, place: Any, json: bool) -> int:
    told = {"device": describe(place), "cases": [], "facts": time_facts(where)}
    if json:
        print_json(told)
        return 0
    done = told["facts"]
    print(
        f"{_headline(told['device'])}\n"
        f"{done['trainings']} trainings, up to {max(done['steps']):,} steps: {done['seconds']:.2f} "
        f"s side by side, {done['alone_seconds']:.2f} s for the longest alone, "
        f"{done['ratio']:.2f} times as long"
    )
    return 0


def _bench_explorer(place: Any, json: bool) -> int:
    told = {"device": describe(place), "cases": [], "explorer": time_explorer()}
    if json:
        print_json(told)
        return 0
    done = told["explorer"]
    print(
        f"{_headline(told['device'])}\n"
        f"{done['clients']} clients, {done['redraws']:,} redraws, {done['errors']} errors: median "
        f"{done['median_ms']:.0f} ms, 95 % within {done['p95_ms']:.0f} ms, worst "
        f"{done['worst_ms']:.0f} ms"
    )
    return 0


def _headline(device: dict[str, Any]) -> str:
    return (
        f"{device['kind']} ({device['platform']}, {device['cores']} cores), "
        f"Python {device['python']}, JAX {device['jax']}, {device['date']}"
    )


def describe(place: Any) -> dict[str, Any]:
    """The device and the versions behind a measurement."""
    return {
        "kind": place.device_kind,
        "platform": place.platform,
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "python": platform.python_version(),
        "jax": jax.__version__,
        "mnemoscope": importlib.metadata.version("mnemoscope"),
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
    }


def show(told: dict[str, Any], cases: list[Case]) -> None:
    """The measurement as tables."""
    console = Console()
    console.print(f"{_headline(told['device'])}, copy bandwidth {told['bandwidth'] / 1e9:.1f} GB/s", highlight=False)
    table = Table(box=box.SIMPLE)
    table.add_column("")
    for case in cases:
        table.add_column(_name(case.spec), justify="right")
    rows: list[tuple[str, Callable[[Case], str]]] = [
        ("ours, ms", lambda c: number(c.seconds * 1e3, 2)),
        ("autodiff, ms", lambda c: number(c.autodiff_seconds and c.autodiff_seconds * 1e3, 1)),
        ("ratio", lambda c: number(c.ratio, 1)),
        ("ours, peak MB", lambda c: number(c.peak_bytes / 1e6, 1)),
        ("ours, with the process", lambda c: number(c.process_bytes / 1e6, 1)),
        ("tables", lambda c: c.tables),
        ("autodiff, peak MB", lambda c: number(c.autodiff_peak_bytes and c.autodiff_peak_bytes / 1e6, 1)),
        ("million tokens/s", lambda c: number(c.tokens_per_second / 1e6, 1)),
        ("of the memory limit", lambda c: f"{c.limit_fraction:.1%}"),
        ("first call, s", lambda c: number(c.first_seconds, 1)),
        ("results differ by", lambda c: "–" if c.difference is None else f"{c.difference:.0e}"),
    ]
    for name, read in rows:
        table.add_row(name, *(read(case) for case in cases))
    console.print(table)
    for case in cases:
        if case.note:
            console.print(f"{_name(case.spec)}: {case.note}".replace("\n", " "))
    if told["growth"]:
        powers = ", ".join(f"{axis} {power:.2f}" for axis, power in told["growth"].items())
        console.print(f"time grows with the power: {powers}", highlight=False)


def _name(spec: dict[str, Any]) -> str:
    name = f"V={spec['vocab']} d={spec['dim']}\nL={spec['length']} N={spec['samples']}"
    if spec["width"]:
        name += f"\nm={spec['width']} {spec['activation']}"
    if spec["eta"] != "limit":
        name += f"\neta={spec['eta']:g} gamma={spec['gamma']}"
    return name
