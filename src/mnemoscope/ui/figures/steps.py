"""A setting's run: accuracy after every step of training, for each seed and on average."""

import statistics
from typing import Any

from mnemoscope.experiments.run import Run
from mnemoscope.spec.summary import brief
from mnemoscope.ui.figures.canvas import open_canvas, saved

# Each measure with its line: what the model does, and what its parts could do.
LINES = {"accuracy": "o-", "attention_accuracy": "s--", "map_accuracy": "^:"}


def make_figure(run: Run) -> Any:
    """The run as a matplotlib figure."""
    figure, axes = open_canvas(width=5.6, height=3.8)
    draw_on(axes, run)
    figure.legend(loc="outside lower center", ncols=2)
    return figure


def draw_on(axes: Any, run: Run) -> None:
    """The steps across, and the shares upwards."""
    finished = [trial for trial in run.finished if trial.steps]
    # A training that settles has steps of its own: its last is the end.
    names = [step.name for step in finished[0].steps] if finished else []
    if run.spec.settles and names:
        names[-1] = "end"
    for color, (measure, style) in enumerate(LINES.items()):
        series = [[getattr(step, measure) for step in trial.steps] for trial in finished]
        for values in series if measure == "accuracy" else []:
            axes.plot(names, values, color=f"C{color}", linewidth=0.6, alpha=0.3)
        means = [statistics.fmean(values) for values in zip(*series, strict=True)]
        axes.plot(names, means, style, color=f"C{color}", markersize=4, label=measure.replace("_", " "))
    seeds = len(finished)
    axes.set(xlabel="after step", ylabel="share", ylim=(-0.03, 1.03))
    axes.set_title(f"{brief(run.spec)}, {seeds} seed{'s' * (seeds != 1)}", fontsize=9)


draw_steps = saved(make_figure)
