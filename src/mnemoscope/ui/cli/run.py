"""`mnemoscope run`: one setting, several seeds."""

import statistics
import sys
from dataclasses import replace
from typing import Annotated

from rich.table import Table

from mnemoscope.engine.device import find_device
from mnemoscope.engine.layout import UNIFORM_SAMPLES
from mnemoscope.engine.memory_budget import MemoryBudget, plan_memory
from mnemoscope.engine.record import Trial
from mnemoscope.experiments.calibration import Calibration, calibrate, check_calibrated
from mnemoscope.experiments.estimate.estimate import Estimate
from mnemoscope.experiments.forecast import jobs_ahead, of_jobs
from mnemoscope.experiments.keeping import place_for
from mnemoscope.experiments.run import Run, kept_run, workers_for
from mnemoscope.experiments.sweep import sweep
from mnemoscope.models.activations import hermite_parts
from mnemoscope.spec import Retrieval
from mnemoscope.spec.summary import span
from mnemoscope.spec.token_laws import UNIFORM
from mnemoscope.theory.critical import has_trained_law
from mnemoscope.theory.predict import predict
from mnemoscope.ui.cli.asking import ask_first
from mnemoscope.ui.cli.options import (
    AnySeed,
    Budget,
    DeviceName,
    Json,
    Picture,
    Seeds,
    StoreFile,
    Work,
    Yes,
    flag,
    read_seeds,
)
from mnemoscope.ui.cli.output import bar, deliver, echo, number, table
from mnemoscope.ui.cli.own import NO_WORDS, OwnOptions, run_own
from mnemoscope.ui.cli.setting import Setting, takes
from mnemoscope.ui.cli.sweeping import open_tools
from mnemoscope.ui.figures.bands import draw_bands
from mnemoscope.ui.figures.canvas import check_form, sizes
from mnemoscope.ui.figures.steps import draw_steps

# Ties in a smaller share of the test sequences are not reported.
LEAST_SHARE_OF_TIES = 0.001
MEANING = {
    "start": "before training",
    "V1": "values learn, attention is uniform",
    "W1": "attention learns",
    "V2": "values learn again",
    "rounded": "every matrix has weights of --bits bits",
}
TRIGGER = {"keys": "keys", "additive": "keys and values"}
MOST_SEEDS_LISTED = 16


@takes(Retrieval, file=True)
def run(
    setting: Setting[Retrieval],
    *,
    own: OwnOptions = NO_WORDS,
    seeds: Seeds = 8,
    seed: AnySeed = 0,
    device: DeviceName = "auto",
    memory: Budget = None,
    store: StoreFile = None,
    yes: Yes = False,
    calibration: Annotated[
        bool, flag("also compare confidence on tokens seen in training with that on others; trains every seed again")
    ] = False,
    out: Picture = None,
    json: Json = False,
) -> int:
    """Simulate one setting over several seeds.

    A one-layer transformer with random embeddings learns, in three gradient steps, to find the informative token of a
    sequence and to name its label. Trials are kept in the store, and no seed is run twice. Example:

    `mnemoscope run --vocab 512 --dim 128 --length 16 --samples 16000`

    With `--model` and `--task`, a model of your own is trained instead:

    `mnemoscope run --model mymodel:model --task mytask:Facts --set facts=32`

    `--model transformer` is one of ours, of any depth, with learned embeddings; it has options of its own:

    `mnemoscope run --model transformer --help`
    """
    check_form(out)
    numbers = read_seeds(seeds, seed)
    own_spec = own.in_place_of(setting)
    if own_spec is not None:
        return run_own(own_spec, numbers, Work(device, None, store, yes), json)
    spec = setting.read()
    if calibration:
        check_calibrated(spec)
    jobs = [(spec, number) for number in numbers]
    # Refuse a setting that does not fit in memory before a store is created or a forecast made.
    place = find_device(device)
    plan_memory(spec, "float32", MemoryBudget.of(place, memory))
    stopped = False
    with open_tools(Work(device, None, store, yes), jobs_ahead(jobs)) as tools:
        known = len(tools.store.finished(jobs))
        try:
            with place_for([spec], tools.store) as keeping:
                workers = workers_for(spec, device, memory)
                sweep(jobs, keeping, workers, lambda tally: tools.progress(tally, "seeds"))
                result = kept_run(spec, numbers, keeping)
        except KeyboardInterrupt:
            stopped = True
            result = kept_run(spec, numbers, tools.store)
    if calibration and not stopped:
        ask_first(of_jobs(jobs, place.platform), place.platform, yes)
        result = replace(result, calibration=calibrate(spec, numbers, device))
    trials = result.trials
    deliver(result, json, show, out, draw_bands if result.by_fact else draw_steps)
    if known and not json:
        print(f"{known} of {seeds} seeds were in the store")
    if stopped:
        print(f"stopped: {len(trials)} of {seeds} seeds are done", file=sys.stderr)
    for trial in trials:
        if trial.status != "ok":
            print(f"seed {trial.seed} {trial.status}: {trial.message}", file=sys.stderr)
    return 1 if stopped or any(trial.status == "crashed" for trial in trials) else 0


def show(run: Run) -> None:
    """The run as tables."""
    spec, finished = run.spec, run.finished
    echo(_headline(spec), style="bold")
    if finished:
        echo(_step_table(spec, finished))
    if run.bands:
        echo(_band_table(run))
    if 1 < len(run.trials) <= MOST_SEEDS_LISTED or not finished:
        echo(_seed_table(run.trials))
    if finished:
        over = f"95 % interval over {len(finished)} seeds" if len(finished) > 1 else "one seed"
        echo(
            f"accuracy            [bold]{run.interval('accuracy')}[/bold]  {over}",
            *[f"accuracy by fact    {run.interval('accuracy_by_fact')}  each token once"] * run.by_fact,
            f"attention accuracy  {run.interval('attention_accuracy')}",
            f"recall              {run.interval('recall')}",
            f"chance              {1 / spec.vocab:.4f}",
            *[f"always the same     {spec.largest_token_probability:.4f}  with the most frequent label"] * run.by_fact,
        )
        echo(*_theory(spec))
        if run.calibration is not None:
            echo(*_confidence(run.calibration))
        if spec.settles:
            echo(f"steps               {_steps_taken(spec, finished)}")
        if run.stored_bits is not None:
            echo(f"bits                {run.stored_bits.words('V and W_KQ')}")
        ties = _ties(spec, finished)
        if ties:
            shares = ", ".join(f"{share:.1%} after {step}" for step, share in ties.items())
            echo(f"ties                {shares} of the test sequences, decided by a rule, not by rounding")


def _confidence(calibration: Calibration) -> list[str]:
    """How confidence on seen tokens compares with that on unseen ones, and theory's word on it."""
    theory = "" if calibration.predicted is None else f", theory {calibration.predicted:.3f}"
    medians = f"{number(calibration.seen)} seen, {number(calibration.unseen)} unseen"
    return [
        f"tokens seen         {calibration.share_seen:.3f}  some training sequence asked for them",
        f"confidence          {medians}  median lead of the first label",
        f"AUC                 {calibration.auc}  of telling them apart{theory}",
    ]


def _theory(spec: Retrieval) -> list[str]:
    """Theory's accuracy beside the measured one, where there is a number."""
    if spec.then != "none" and not has_trained_law(spec):
        return []
    prediction = predict(spec, trained=has_trained_law(spec))
    if prediction.accuracy is None:
        return []
    outside = "" if prediction.valid else f"  outside the validated range: {prediction.notes[0]}"
    ends = span(prediction.low, prediction.high).replace("[", r"\[")
    return [f"theory              {prediction.accuracy:.3f} {ends}  95 % of seeds{outside}"]


def _steps_taken(spec: Retrieval, finished: list[Trial]) -> str:
    """How many steps trainings took to settle, and how many of them had not settled after the most."""
    taken = sorted(int(steps) for trial in finished if (steps := trial.metrics["steps"]) is not None)
    ends = f"{taken[0]:,}" if taken[0] == taken[-1] else f"{taken[0]:,} to {taken[-1]:,}"
    late = sum(trial.status == "unreached" for trial in finished)
    more = f"; {late} of {len(finished)} had not settled" if late else " until it settled"
    return f"{ends} of at most {spec.steps:,}{more}"


def _ties(spec: Retrieval, finished: list[Trial]) -> dict[str, float]:
    """The share of test sequences in which labels or tokens tie, after each step where it is worth reporting."""
    shares = {}
    for at, step in enumerate(finished[0].steps):
        draws = spec.test_samples if step.name != "V1" else min(spec.test_samples, UNIFORM_SAMPLES)
        shares[step.name] = (_mean(finished, at, "tied") or 0.0) / draws
    return {name: share for name, share in shares.items() if share >= LEAST_SHARE_OF_TIES}


def _headline(spec: Retrieval) -> str:
    lines = [sizes(spec)]
    if spec.width:
        share = hermite_parts(spec.activation)
        lines.append(
            f"{spec.activation}: constant {share['constant']:.0%}, linear {share['linear']:.0%}, "
            f"higher Hermite parts {share['higher']:.0%}"
        )
    parts = [f"{spec.embedding} embeddings", f"trigger in {TRIGGER[spec.trigger]}"]
    if spec.tokens != UNIFORM:
        parts.append(f"tokens by {spec.tokens}")
    if spec.attention == "locked":
        parts.append("attention locked")
    elif spec.eta == "limit":
        parts.append("eta → 0, gamma → ∞")
    else:
        gamma = "→ ∞" if spec.gamma == "limit" else f"= {spec.gamma:g}"
        parts.append(f"eta = {spec.eta:g}, gamma {gamma}")
    return "\n".join([*lines, ", ".join(parts)])


def _step_table(spec: Retrieval, finished: list[Trial]) -> Table:
    title = "Step by step" + (f" (mean of {len(finished)} seeds)" if len(finished) > 1 else "")
    steps = finished[0].steps
    columns = ["after", "accuracy", "", "attention", "recall", "map", "lift"]
    fields = [("attention_accuracy", 3), ("recall", 3), ("map_accuracy", 3), ("ratio", 1)]
    if spec.then != "none":
        columns.append("loss")
        fields.append(("loss", 3))
    rows = []
    for at, step in enumerate(steps):
        accuracy = _mean(finished, at, "accuracy") or 0.0
        means = (number(_mean(finished, at, field), digits) for field, digits in fields)
        # Each seed has settled after a number of steps of its own.
        name = "end" if spec.settles and step.taken else step.name
        # With the loss beside it, the table would be wider than a terminal of 80 columns.
        rows.append((name, number(accuracy), bar(accuracy, 12 if spec.then == "none" else 8), *means))
    grid = table(columns, rows, left=("after", ""), title=title)
    grid.caption = "\n".join(
        [f"{step.name}: {MEANING[step.name]}" for step in steps if step.name in MEANING]
        + [
            "recall: accuracy where attention is right",
            "map: share of tokens that would be named right under perfect attention",
            "lift: the trigger's score over the spread of the tokens' scores",
        ]
    )
    return grid


def _band_table(run: Run) -> Table:
    rows = []
    for band in run.bands:
        mean = band.accuracy.value or 0.0
        rows.append((band.band.name, f"{len(band.band.tokens):,}", number(mean), bar(mean), _ends(band.accuracy)))
    title = "By how often training is expected to ask for a token"
    return table(("times", "tokens", "accuracy", "", "95 % interval"), rows, left=("",), title=title)


def _ends(estimate: Estimate) -> str:
    return f"{number(estimate.low)} to {number(estimate.high)}"


def _seed_table(trials: tuple[Trial, ...]) -> Table:
    rows = []
    for trial in trials:
        shares = (number(value) for value in (trial.accuracy, trial.attention_accuracy, trial.recall))
        rows.append((str(trial.seed), trial.status, *shares, number(trial.seconds, 2)))
    columns = ("seed", "status", "accuracy", "attention", "recall", "seconds")
    return table(columns, rows, left=("status",), title="Seeds")


def _mean(trials: list[Trial], step: int, field: str) -> float | None:
    """The mean over trials of a field of one step; None where no trial has it."""
    values = [value for trial in trials if (value := getattr(trial.steps[step], field)) is not None]
    return statistics.fmean(values) if values else None
