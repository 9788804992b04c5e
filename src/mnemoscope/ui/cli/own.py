"""A model and a task of the user's own on the command line: the options, and the run of several seeds."""

import sys
from collections.abc import Collection
from dataclasses import dataclass
from typing import Annotated, Any

from cyclopts import Group, Parameter

from mnemoscope.experiments.forecast import jobs_ahead
from mnemoscope.experiments.run import Run, kept_run
from mnemoscope.experiments.tools import Tools
from mnemoscope.spec import Own, SpecError
from mnemoscope.spec.installed import BUILT_IN, installed, place_of
from mnemoscope.spec.installed import Group as Installed
from mnemoscope.spec.objects import place_in
from mnemoscope.spec.own import NAMED
from mnemoscope.ui.cli.options import Work
from mnemoscope.ui.cli.output import bar, deliver, echo, number, table
from mnemoscope.ui.cli.setting import Setting
from mnemoscope.ui.cli.sweeping import open_tools

GROUP = Group("A model and a task of your own", sort_key=3)


def names_of(group: Installed) -> str:
    """Names without a colon, for help: our own, with options of their own, and those that packages add."""
    own = "".join(f"; or {name}: see --help with it" for name in BUILT_IN.get(group, ()))
    return own + (f"; packages add {', '.join(installed(group))}" if installed(group) else "")


@dataclass(frozen=True)
class OwnWords:
    """The objects, and their sizes."""

    model: Annotated[
        str | None, Parameter(metavar="OBJECT", help=f"the model, as MODULE:OBJECT{names_of('models')}", group=GROUP)
    ] = None
    task: Annotated[
        str | None, Parameter(metavar="OBJECT", help=f"its task, as MODULE:OBJECT{names_of('tasks')}", group=GROUP)
    ] = None
    optimiser: Annotated[
        str | None,
        Parameter(
            metavar="NAME",
            help=f"{', '.join(NAMED)}, at the rate lr; or MODULE:OBJECT, a transformation of optax [default: adamw]",
            group=GROUP,
        ),
    ] = None
    set_: Annotated[
        list[str] | None,
        Parameter(
            name="--set",
            negative="",
            metavar="NAME=VALUE",
            help="a size of the model or the task, or one of lr, batch, max_steps, target and test_samples",
            group=GROUP,
        ),
    ] = None

    @property
    def given(self) -> bool:
        """Whether there is a word about a model of one's own."""
        return any(word is not None for word in (self.model, self.task, self.optimiser, self.set_))

    def read(self, **numbers: Any) -> Own:
        """The setting."""
        if self.model:
            place_of("model", "models", self.model)
        for option, text in (("model", self.model), ("task", self.task)):
            if not text:
                raise SpecError(option, "expected MODULE:OBJECT, got none")
        spec = Own.read({"model": self.model, "task": self.task, "optimiser": self.optimiser})
        for text in self.set_ or []:
            name, mark, value = text.partition("=")
            if not mark or not value:
                raise SpecError("set", f"expected NAME=VALUE, got {text!r}")
            try:
                spec = spec.vary(**{name.strip().replace("-", "_"): value.strip()})
            except SpecError as error:
                raise SpecError("set", error.message if error.field == "along" else str(error)) from None
        return spec.replace(**numbers)

    def in_place_of(self, setting: Setting[Any]) -> Own | None:
        """The setting of the user's own, which takes no option of ours; None without a word about it."""
        if not self.given:
            return None
        strangers = [name for name in setting.kind.model_fields if getattr(setting, name, None) is not None]
        if strangers or setting.spec is not None:
            if not (self.model or self.task):
                alone = "optimiser" if self.optimiser is not None else "set"
                raise SpecError(alone, "expected it with --model and --task, got neither")
            raise SpecError((strangers or ["spec"])[0], "expected it without --model and --task, got both")
        return self.read()


OwnOptions = Annotated[OwnWords, Parameter(name="*")]
NO_WORDS = OwnWords()


def run_own(spec: Own, seeds: range, work: Work, json: bool) -> int:
    """Train several seeds, and show them."""
    with open_tools(work, jobs_ahead([(spec, seed) for seed in seeds])) as tools:
        known = len(tools.store.finished([(spec, seed) for seed in seeds]))
        stopped = False
        try:
            trials = Tools(tools.store, tools.workers, tools.progress).run([(spec, seed) for seed in seeds], "seeds")
            result = Run(spec, tuple(trials.values()))
        except KeyboardInterrupt:
            stopped = True
            result = kept_run(spec, seeds, tools.store)
    deliver(result, json, show)
    if known and not json:
        print(f"{known} of {len(seeds)} seeds were in the store")
    if stopped:
        print(f"stopped: {len(result.trials)} of {len(seeds)} seeds are done", file=sys.stderr)
    for trial in result.trials:
        if trial.status != "ok":
            print(f"seed {trial.seed} {trial.status}: {trial.message}", file=sys.stderr)
    return 1 if stopped or any(trial.status == "crashed" for trial in result.trials) else 0


def show(run: Run) -> None:
    """The trainings as a table."""
    spec = run.spec
    echo(headline(spec), style="bold")
    columns = ("seed", "status", "accuracy", "", "attention", "steps", "loss")
    rows = [
        (
            str(trial.seed),
            trial.status,
            number(trial.accuracy),
            bar(trial.accuracy or 0.0),
            number(trial.attention_accuracy),
            number(trial.metrics.get("steps"), 0),
            number(trial.metrics.get("loss")),
        )
        for trial in run.trials
    ]
    echo(table(columns, rows, left=("status", "")))
    echo(f"accuracy  [bold]{run.interval()}[/bold]  95 % interval over seeds, by {spec.path}")


def headline(spec: Own, without: Collection[str] = ()) -> str:
    """The model, the task, and their sizes."""
    values = (*spec.task_values, *spec.model_values)
    sizes = " ".join(f"{name}={value}" for name, value in values if name not in without)
    return f"{place_in(spec.model)} on {place_in(spec.task)}\n{sizes}: {spec.parameters:,} parameters"
