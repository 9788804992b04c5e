"""`mnemoscope run`: one setting, several seeds."""

import statistics
import sys
from collections.abc import Callable

from rich import box
from rich.console import Console
from rich.table import Table

from mnemoscope.engine.device import find_device
from mnemoscope.engine.memory_budget import MemoryBudget, plan_memory
from mnemoscope.engine.record import Step, Trial
from mnemoscope.experiments.forecast import jobs_ahead
from mnemoscope.experiments.run import Run, kept_run
from mnemoscope.experiments.sweep import OneByOne, sweep
from mnemoscope.models.activations import hermite_parts
from mnemoscope.spec import Retrieval
from mnemoscope.training.three_step.evaluation import UNIFORM_SAMPLES
from mnemoscope.ui.cli.options import AnySeed, Budget, DeviceName, Json, Seeds, StoreFile, Yes, read_seeds
from mnemoscope.ui.cli.output import bar, number, print_json
from mnemoscope.ui.cli.setting import Setting, takes
from mnemoscope.ui.cli.sweeping import open_tools

# Ties in fewer of the test sequences than this are not worth a line.
MENTIONED = 0.001
MEANING = {
    "start": "before training",
    "V1": "values learn, attention is uniform",
    "W1": "attention learns",
    "V2": "values learn again",
}
TRIGGER = {"keys": "keys", "additive": "keys and values"}
MOST_SEEDS_LISTED = 16


@takes(Retrieval, file=True)
def run(
    setting: Setting[Retrieval],
    *,
    seeds: Seeds = 8,
    seed: AnySeed = 0,
    device: DeviceName = "auto",
    memory: Budget = None,
    store: StoreFile = None,
    yes: Yes = False,
    json: Json = False,
) -> int:
    """Simulate one setting over several seeds.

    A one-layer transformer with random embeddings learns, in three gradient steps, to find the
    informative token of a sequence and to name its label. Trials are kept in the store: a seed
    that was run is not run again. Example:

    `mnemoscope run --vocab 512 --dim 128 --length 16 --samples 16000`
    """
    spec = setting.read()
    numbers = read_seeds(seeds, seed)
    jobs = [(spec, number) for number in numbers]
    # What cannot fit is refused before a store is made, and before the question how long it takes.
    plan_memory(spec, "float32", MemoryBudget.of(find_device(device), memory))
    stopped = False
    with open_tools(None, device, store, jobs_ahead(jobs), agreed=yes) as tools:
        kept, progress = tools.store, tools.progress
        before = kept.finished([spec])
        known = sum((spec.id, number) in before for _, number in jobs)
        try:
            sweep(jobs, kept, OneByOne(device, memory), lambda tally: progress(tally, "seeds"))
        except KeyboardInterrupt:
            stopped = True
        done = kept_run(spec, numbers, kept)
    trials = done.trials
    if json:
        print_json(as_json(done))
    else:
        show(done)
        if known:
            print(f"{known} of {seeds} seeds were in the store")
    if stopped:
        print(f"stopped: {len(trials)} of {seeds} seeds are done", file=sys.stderr)
    for trial in trials:
        if trial.status != "ok":
            print(f"seed {trial.seed} {trial.status}: {trial.message}", file=sys.stderr)
    return 1 if stopped or any(trial.status == "crashed" for trial in trials) else 0


def as_json(done: Run) -> dict[str, object]:
    """The run as plain data."""
    return {
        "spec": done.spec.model_dump(),
        "id": done.spec.id,
        "trials": [trial.as_dict() for trial in done.trials],
        "accuracy": done.interval("accuracy").as_dict(),
        "attention_accuracy": done.interval("attention_accuracy").as_dict(),
        "recall": done.interval("recall").as_dict(),
    }


def show(done: Run) -> None:
    """The run as tables."""
    console = Console()
    spec, finished = done.spec, done.finished
    console.print(_headline(spec), style="bold", highlight=False)
    if finished:
        console.print(_step_table(spec, finished))
    if 1 < len(done.trials) <= MOST_SEEDS_LISTED or not finished:
        console.print(_seed_table(done.trials))
    if finished:
        over = f"95 % interval over {len(finished)} seeds" if len(finished) > 1 else "one seed"
        console.print(
            f"accuracy            [bold]{done.interval('accuracy')}[/bold]  {over}\n"
            f"attention accuracy  {done.interval('attention_accuracy')}\n"
            f"recall              {done.interval('recall')}\n"
            f"chance              {1 / spec.vocab:.4f}",
            highlight=False,
        )
        told = _ties(spec, finished)
        if told:
            console.print(f"ties                {told}", highlight=False)


def _ties(spec: Retrieval, finished: list[Trial]) -> str:
    """How often labels or tokens tie, where that is often enough to matter; else nothing."""
    often = []
    for at, step in enumerate(finished[0].steps):
        share = (_mean([one.steps[at] for one in finished], lambda one: one.tied) or 0.0) / (
            spec.test_samples if step.name != "V1" else min(spec.test_samples, UNIFORM_SAMPLES)
        )
        often += [f"{share:.1%} after {step.name}"] if share >= MENTIONED else []
    said = " of the test sequences, decided by rule: not by rounding"
    return ", ".join(often) + said if often else ""


def _headline(spec: Retrieval) -> str:
    sizes = f"V={spec.vocab:,} d={spec.dim:,} L={spec.length:,} N={spec.samples:,}"
    if spec.width:
        share = hermite_parts(spec.activation)
        sizes += (
            f" m={spec.width:,}\n{spec.activation}: constant {share['constant']:.0%}, "
            f"linear {share['linear']:.0%}, higher Hermite parts {share['higher']:.0%}"
        )
    parts = [f"{spec.embedding} embeddings", f"trigger in {TRIGGER[spec.trigger]}"]
    if spec.attention == "locked":
        parts.append("attention locked")
    elif spec.eta == "limit":
        parts.append("eta → 0, gamma → ∞")
    else:
        gamma = "→ ∞" if spec.gamma == "limit" else f"= {spec.gamma:g}"
        parts.append(f"eta = {spec.eta:g}, gamma {gamma}")
    return f"{sizes}\n{', '.join(parts)}"


def _step_table(spec: Retrieval, finished: list[Trial]) -> Table:
    title = f"Step by step (mean of {len(finished)} seeds)" if len(finished) > 1 else "Step by step"
    first = finished[0].steps
    table = Table(title=title, box=box.SIMPLE, title_justify="left", caption_justify="left")
    table.caption = "\n".join(
        [f"{step.name}: {MEANING[step.name]}" for step in first if step.name in MEANING]
        + [
            "recall: accuracy where attention is right",
            "map: share of tokens named right under perfect attention",
            "lift: the trigger's score over the spread of the tokens' scores",
        ]
    )
    for name in ("after", "accuracy", "", "attention", "recall", "map", "lift"):
        table.add_column(name, justify="left" if name in ("after", "") else "right")
    with_loss = spec.then != "none"
    if with_loss:
        table.add_column("loss", justify="right")
    for at, step in enumerate(first):
        same = [trial.steps[at] for trial in finished]
        accuracy = _mean(same, lambda one: one.accuracy) or 0.0
        cells = [
            step.name,
            number(accuracy),
            bar(accuracy),
            number(_mean(same, lambda one: one.attention_accuracy)),
            number(_mean(same, lambda one: one.recall)),
            number(_mean(same, lambda one: one.map_accuracy)),
            number(_mean(same, lambda one: one.ratio), 1),
        ]
        table.add_row(*cells, *([number(_mean(same, lambda one: one.loss))] if with_loss else []))
    return table


def _seed_table(trials: tuple[Trial, ...]) -> Table:
    table = Table(title="Seeds", box=box.SIMPLE, title_justify="left")
    for name in ("seed", "status", "accuracy", "attention", "recall", "seconds"):
        table.add_column(name, justify="left" if name == "status" else "right")
    for trial in trials:
        table.add_row(
            str(trial.seed),
            trial.status,
            number(trial.accuracy),
            number(trial.attention_accuracy),
            number(trial.recall),
            number(trial.seconds, 2),
        )
    return table


def _mean(steps: list[Step], get: Callable[[Step], float | None]) -> float | None:
    values = [value for step in steps if (value := get(step)) is not None]
    return statistics.fmean(values) if values else None
