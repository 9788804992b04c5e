"""A training: loss and accuracy over its steps, and the weight that each head puts on what decides."""

import re
from typing import Any

import numpy as np

from mnemoscope.experiments.run import Run
from mnemoscope.spec.summary import brief
from mnemoscope.ui.figures.canvas import open_canvas, saved

# The shares that a curve may have, each with its line.
LINES = {"accuracy": "-", "old_accuracy": "--", "relation_accuracy": ":"}
# The most heads of a layer whose numbers are still legible in the map.
MOST_WRITTEN = 8
HEAD = re.compile(r"attention_(\d+)_(\d+)")


def make_figure(run: Run) -> Any:
    """The run as a matplotlib figure."""
    weights = head_weights(run)
    columns = 2 if weights is None else 3
    figure, axes = open_canvas(width=4.2 * columns, height=3.6, columns=columns, share=False)
    draw_on(axes[0], run)
    _draw_shares(axes[1], run)
    if weights is not None:
        draw_heads(axes[2], weights)
    return figure


def draw_on(axes: Any, run: Run) -> None:
    """The loss of every seed."""
    for number, trial in enumerate(_drawn(run)):
        steps = [check["step"] for check in trial.curve]
        axes.plot(steps, [check["loss"] for check in trial.curve], color=f"C{number % 10}", label=f"seed {trial.seed}")
    axes.set(xlabel="step", ylabel="loss", yscale="log")
    axes.set_title(brief(run.spec), fontsize=8, wrap=True)
    if 1 < len(_drawn(run)) <= 8:
        axes.legend(fontsize=7)


def _draw_shares(axes: Any, run: Run) -> None:
    for number, trial in enumerate(_drawn(run)):
        steps = [check["step"] for check in trial.curve]
        for name, style in LINES.items():
            if name in trial.curve[0]:
                shares = [check[name] for check in trial.curve]
                label = name.replace("_", " ") if number == 0 else None
                axes.plot(steps, shares, style, color=f"C{number % 10}", linewidth=1.2, label=label)
    axes.set(xlabel="step", ylabel="share", ylim=(-0.03, 1.03))
    axes.legend(fontsize=7)


def _drawn(run: Run) -> list[Any]:
    return [trial for trial in run.trials if trial.curve]


def head_weights(run: Run) -> np.ndarray | None:
    """The mean weight of each head (across) of each layer (down) on what decides; None where it is not measured."""
    found = {
        tuple(map(int, match.groups())): run.mean(name)
        for trial in run.finished
        for name in trial.metrics
        if (match := HEAD.fullmatch(name))
    }
    known = {place: weight for place, weight in found.items() if weight is not None}
    if not known:
        return None
    weights = np.full((max(layer for layer, _ in known), max(head for _, head in known)), np.nan)
    for (layer, head), weight in known.items():
        weights[layer - 1, head - 1] = weight
    return weights


def draw_heads(axes: Any, weights: np.ndarray) -> None:
    """The map of heads, with numbers where they are legible."""
    layers, heads = weights.shape
    image = axes.imshow(weights, vmin=0, vmax=1, cmap="viridis", aspect="auto")
    if heads <= MOST_WRITTEN:
        for layer in range(layers):
            for head in range(heads):
                value = weights[layer, head]
                axes.text(
                    head, layer, f"{value:.2f}", ha="center", va="center", color="white" if value < 0.6 else "black"
                )
    axes.set_xticks(range(heads), [str(head + 1) for head in range(heads)])
    axes.set_yticks(range(layers), [str(layer + 1) for layer in range(layers)])
    axes.set(xlabel="head", ylabel="layer")
    axes.set_title("attention on what decides", fontsize=8)
    axes.figure.colorbar(image, ax=axes, fraction=0.05)


draw_training = saved(make_figure)
