"""`mnemoscope bench`: speed and memory beside autodiff, for anyone to check."""

import datetime
import importlib.metadata
import os
import platform
from collections.abc import Callable
from dataclasses import asdict
from typing import Annotated, Any

import jax
from cyclopts import Parameter

from mnemoscope.engine.device import find_device, share_gpu
from mnemoscope.spec import Retrieval, SpecError
from mnemoscope.spec.token_laws import UNIFORM
from mnemoscope.ui.bench.benchmark import QUICK
from mnemoscope.ui.bench.compare import RIVALS, Case, measure_bandwidth, run_cases, torch_is_here
from mnemoscope.ui.bench.cost import of_case, of_diagram, of_growth, of_stages, of_trainings, of_transformer
from mnemoscope.ui.bench.diagram import time_diagram
from mnemoscope.ui.bench.explorer import time_explorer
from mnemoscope.ui.bench.facts import time_facts
from mnemoscope.ui.bench.growth import growth_exponents
from mnemoscope.ui.bench.profile import check_profile
from mnemoscope.ui.bench.profile import profile as time_stages
from mnemoscope.ui.bench.transformer import time_transformer
from mnemoscope.ui.cli.asking import ask_first
from mnemoscope.ui.cli.options import Budget, DeviceName, Json, Yes, flag
from mnemoscope.ui.cli.output import deliver, echo, number, table
from mnemoscope.ui.cli.progress import Watch
from mnemoscope.ui.cli.setting import Setting, takes

CPU = [
    dict(vocab=1024, dim=128, length=64, samples=32768),
    dict(vocab=1024, dim=64, length=64, samples=32768, width=1024, activation="hermite3"),
]
GPU = [
    dict(vocab=4096, dim=256, length=256, samples=131072),
    dict(vocab=1024, dim=128, length=64, samples=32768),
    dict(vocab=1024, dim=64, length=64, samples=32768, width=1024, activation="hermite3"),
    dict(vocab=1024, dim=128, length=64, samples=32768, width=4096, activation="relu"),
]
# Trials to a call where a single one of that setting does not fill a GPU.
BATCH = {(1024, 128, 0): 256}

DIAGRAM = (
    "V={vocab} L={length}, {points} dimensions up to {dims} x {points} N up to {samples} x {seeds} seeds: "
    "{trials} trials, {failed} failed, {seconds:.1f} s with nothing compiled before, "
    "{warm_seconds:.1f} s in the next process"
)
FACTS = (
    "{trainings} trainings, up to {longest:,} steps: {seconds:.2f} s side by side, {alone_seconds:.2f} s for the "
    "longest alone, {ratio:.2f} times as long"
)
TRANSFORMERS = (
    "{trainings} trainings of {parameters:,} parameters, up to {longest:,} steps: {seconds:.2f} s side by side, "
    "{alone_seconds:.2f} s for the longest alone, {ratio:.2f} times as long"
)
EXPLORER = (
    "{clients} clients, {redraws:,} redraws, {errors} errors: median {median_ms:.0f} ms, 95 % within {p95_ms:.0f} ms, "
    "worst {worst_ms:.0f} ms"
)


@takes(Retrieval, file=True, without=("batch",))
def bench(
    setting: Setting[Retrieval],
    *,
    quick: Annotated[bool, flag("one small case, one doubling: about a minute")] = False,
    growth: Annotated[bool, Parameter(help="also fit how time grows with N, L, V and d")] = True,
    autodiff: Annotated[bool, Parameter(help="run JAX's autodiff beside ours")] = True,
    torch: Annotated[bool, Parameter(help="run PyTorch beside ours, where it is installed")] = True,
    batch: Annotated[
        int | None,
        Parameter(
            help="trials of ours to a call, as in a phase diagram; the rivals run one [default: 1, but 256 for the "
            "standard case of a GPU that one trial does not fill]"
        ),
    ] = None,
    diagram: Annotated[bool, flag("time a whole phase diagram instead, compilation too")] = False,
    facts: Annotated[bool, flag("time trainings of `facts` side by side instead")] = False,
    transformer: Annotated[
        bool, flag("time trainings of a small transformer side by side, and one beside PyTorch, instead")
    ] = False,
    explorer: Annotated[bool, flag("time fifty visitors of `explore` who drag instead")] = False,
    profile: Annotated[bool, flag("time each stage of the steps alone instead")] = False,
    device: DeviceName = "auto",
    memory: Budget = None,
    yes: Yes = False,
    json: Json = False,
) -> int:
    """Time the three steps against automatic differentiation on this machine.

    The rival is what a careful user of JAX writes: `jax.grad` of the model, W z_EOS first, jitted as a whole with XLA's
    default flags. Where PyTorch is installed, the same under `torch.compile` is the second. Each side draws its own
    samples on the same device, in a process of its own. A ratio is given only where results agree. Options of a setting
    (--vocab, --dim, --length, --samples, ...) choose one case instead of the standard ones. Example:

    `mnemoscope bench --quick`
    """
    share_gpu()  # this process only looks up the device; its memory is for the workers
    place = find_device(device)
    heading = {"device": describe(place), "cases": []}
    if diagram:
        ask_first(of_diagram(place.platform), place.platform, yes)
        timed = time_diagram(place.platform, device, memory)
        return deliver({**heading, "diagram": timed}, json, _say(DIAGRAM.format(**timed)))
    if facts:
        ask_first(of_trainings(place.platform), place.platform, yes)
        timed = time_facts(device)
        return deliver({**heading, "facts": timed}, json, _say(FACTS.format(**timed, longest=max(timed["steps"]))))
    if transformer:
        ask_first(of_transformer(place.platform, quick=quick), place.platform, yes)
        timed = time_transformer(device, quick=quick, torch=torch)
        return deliver({**heading, "transformer": timed}, json, _say(*_transformer_lines(timed)))
    if explorer:
        timed = time_explorer()
        return deliver({**heading, "explorer": timed}, json, _say(EXPLORER.format(**timed)))
    standard = [QUICK] if quick else CPU if place.platform == "cpu" else GPU
    specs = [setting.read()] if setting.spec or setting.given() else [*map(Retrieval.read, standard)]
    if profile:
        check_profile(specs[0])
        ask_first(of_stages(specs[0], place.platform), place.platform, yes)
        stages = time_stages(specs[0], device, memory)
        lines = [_name(specs[0].model_dump()).replace("\n", " ")]
        lines += [f"  {name:32} {seconds * 1e3:10.3f} ms" for name, seconds in stages.items()]
        return deliver({**heading, "spec": specs[0].model_dump(), "profile": stages}, json, _say(*lines))
    if batch is not None and batch < 1:
        raise SpecError("batch", f"expected a whole number from 1 up, got {batch}")
    repeats, doublings = (3, 1) if quick else (9, 2)
    # Everything that is timed, one after the other: the sides of each case, then sizes along the axes.
    parts = [of_case(spec, repeats, place.platform, with_autodiff=autodiff) for spec in specs]
    if growth:
        parts.append(of_growth(specs[0], doublings, repeats, place.platform))
    ask_first(sum(parts[1:], parts[0]), place.platform, yes)
    cases: list[Case] = []
    exponents = None
    with Watch("cases", sum(part.usual for part in parts)) as watch:
        bandwidth = measure_bandwidth(device)
        rivals = {"with_autodiff": autodiff, "with_torch": torch and torch_is_here()}
        runs = [(spec, batch or _usual_batch(spec, place.platform, standard=not setting.given())) for spec in specs]
        timed = run_cases(runs, bandwidth, place.platform, **rivals, repeats=repeats, budget=memory)
        for case, part in zip(timed, parts, strict=False):
            cases.append(case)
            watch.advance(part.usual)
        if growth:
            exponents = growth_exponents(
                specs[0], device, doublings, repeats, memory, lambda share: watch.advance(share * parts[-1].usual)
            )
    rows = [asdict(case) for case in cases]
    result = {**heading, "bandwidth": bandwidth, "cases": rows, "growth": exponents, "rivals": RIVALS}
    return deliver(result, json, lambda _: show(result, cases))


def _transformer_lines(timed: dict[str, Any]) -> list[str]:
    """The trainings side by side, and a step beside PyTorch's where that is installed."""
    lines = [
        TRANSFORMERS.format(**timed, longest=max(timed["steps"])),
        f"one training: {timed['step_seconds'] * 1e3:.3f} ms for a step",
    ]
    if timed["torch_ratio"] is not None:
        lines[-1] += (
            f", PyTorch {timed['torch']['torch']} with torch.compile {timed['torch_step_seconds'] * 1e3:.3f} ms, "
            f"{timed['torch_ratio']:.2f} times as long"
        )
    return lines


def _usual_batch(spec: Retrieval, platform: str, *, standard: bool) -> int:
    """The trials to a call of a standard case; 1 for a case of the user's own."""
    return BATCH.get((spec.vocab, spec.dim, spec.width), 1) if standard and platform == "gpu" else 1


def _say(*lines: str) -> Callable[[dict[str, Any]], None]:
    """Show a result as the machine it was measured on, then these lines."""
    return lambda result: print(_headline(result["device"]), *lines, sep="\n")


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


def show(result: dict[str, Any], cases: list[Case]) -> None:
    """The measurement as tables."""
    echo(f"{_headline(result['device'])}, copy bandwidth {result['bandwidth'] / 1e9:.1f} GB/s")
    lines: list[tuple[str, Callable[[Case], str]]] = [
        ("ours, ms", lambda c: number(c.seconds * 1e3, 3)),
        ("trials to a call", lambda c: f"{c.batch:,}"),
        ("autodiff, ms", lambda c: number(c.autodiff_seconds and c.autodiff_seconds * 1e3, 1)),
        ("ratio", lambda c: number(c.ratio, 1)),
        ("PyTorch, ms", lambda c: number(c.torch_seconds and c.torch_seconds * 1e3, 1)),
        ("ratio to PyTorch", lambda c: number(c.torch_ratio, 1)),
        ("ours, peak MB", lambda c: number(c.peak_bytes / 1e6, 1)),
        ("ours, with the process", lambda c: number(c.process_bytes / 1e6, 1)),
        ("tables", lambda c: c.tables),
        ("autodiff, peak MB", lambda c: number(c.autodiff_peak_bytes and c.autodiff_peak_bytes / 1e6, 1)),
        ("million tokens/s", lambda c: number(c.tokens_per_second / 1e6, 1)),
        ("of the memory limit", lambda c: f"{c.limit_fraction:.1%}"),
        ("first call, s", lambda c: number(c.first_seconds, 1)),
        ("results differ by", lambda c: "–" if c.difference is None else f"{c.difference:.0e}"),
    ]
    rows = [(name, *map(read, cases)) for name, read in lines]
    echo(table(("", *(_name(case.spec) for case in cases)), rows, left=("",)))
    echo(f"autodiff: {RIVALS['autodiff']}")
    if any(case.torch_seconds for case in cases):
        echo(f"PyTorch: {RIVALS['torch']}")
    for case in cases:
        if case.note:
            echo(f"{_name(case.spec)}: {case.note}".replace("\n", " "))
    if result["growth"]:
        powers = ", ".join(f"{axis} {power:.2f}" for axis, power in result["growth"].items())
        echo(f"time grows with the power: {powers}")


def _name(spec: dict[str, Any]) -> str:
    name = f"V={spec['vocab']} d={spec['dim']}\nL={spec['length']} N={spec['samples']}"
    if spec["width"]:
        name += f"\nm={spec['width']} {spec['activation']}"
    if spec["tokens"] != UNIFORM:
        name += f"\n{spec['tokens']}"
    if spec["eta"] != "limit":
        name += f"\neta={spec['eta']:g} gamma={spec['gamma']}"
    return name
