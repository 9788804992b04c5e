"""A run's accuracy by band of tokens, from rare ones to frequent ones: every seed, the mean and its interval."""

from typing import Any

import numpy as np

from mnemoscope.experiments.run import Run
from mnemoscope.ui.figures.canvas import open_canvas, saved, sizes

# The width of a band's mark, of the interval below it, and of the seeds beside each other.
MARK, SHADE, SEEDS = 0.36, 0.62, 0.24


def make_figure(run: Run) -> Any:
    """The bands as a matplotlib figure."""
    figure, axes = open_canvas(width=max(4.8, 1.8 + 1.1 * len(run.bands)), height=4.0)
    draw_on(axes, run)
    return figure


def draw_on(axes: Any, run: Run) -> None:
    """The bands across, and their accuracy upwards."""
    bands = run.bands
    axes.set_title(f"{sizes(run.spec)} {run.spec.tokens}", fontsize=9)
    if not bands:
        axes.set_axis_off()
        axes.text(0, 0.5, "no trial has finished", transform=axes.transAxes)
        return
    for at, band in enumerate(bands):
        mean, low, high = band.accuracy.value, band.accuracy.low, band.accuracy.high
        first = at == 0
        if low is not None and high is not None:
            label = "95 % interval of the mean" if first else None
            axes.bar(at, high - low, SHADE, low, color="C0", alpha=0.18, label=label)
        across = at + SEEDS * np.linspace(-1, 1, len(band.seeds)) if len(band.seeds) > 1 else [at]
        axes.plot(across, band.seeds, "o", color="C0", markersize=3, alpha=0.7, label="seeds" if first else None)
        axes.plot([at - MARK, at + MARK], [mean, mean], color="C0", linewidth=2, label="mean" if first else None)
    for metric, name, style in (("accuracy", "by sequence", "--"), ("accuracy_by_fact", "by fact", ":")):
        overall = run.interval(metric)
        axes.axhline(overall.value, color="black", linewidth=0.9, linestyle=style, label=f"all, {name}: {overall}")
    axes.set_xticks(range(len(bands)), [_name(band.band.name, len(band.band.tokens)) for band in bands])
    axes.set(xlim=(-0.6, len(bands) - 0.4), ylim=(-0.02, 1.02), ylabel="accuracy on sequences that ask for the token")
    axes.set_xlabel("expected training sequences a token, N p")
    axes.legend(fontsize=8, loc="best")


draw_bands = saved(make_figure)


def _name(counts: str, tokens: int) -> str:
    return f"{counts}\n{tokens:,} token{'s' * (tokens != 1)}"
