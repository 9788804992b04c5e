"""Spectra of embeddings: the variance along each direction."""

from typing import Any

import numpy as np

from mnemoscope.experiments.compare_embeddings import Comparison
from mnemoscope.ui.figures.canvas import open_canvas, saved


def make_figure(comparison: Comparison) -> Any:
    """Variance by direction, largest first, over what random embeddings have in each."""
    figure, axes = open_canvas(width=6.4, height=4.0)
    draw_on(axes, comparison)
    return figure


def draw_on(axes: Any, comparison: Comparison) -> None:
    """The spectra on axes of the caller's."""
    known = [(variant.name, variant.geometry) for variant in comparison.variants if variant.geometry is not None]
    for name, geometry in known:
        share = np.array(geometry.spectrum) * geometry.dim
        label = f"{name} (effective dimension {geometry.effective_dim:.0f} of {geometry.dim})"
        axes.plot(np.arange(1, len(share) + 1), share, label=label)
    axes.axhline(1, color="black", linewidth=0.8, linestyle=":", label="random, many rows")
    top = max(max(geometry.spectrum) * geometry.dim for _, geometry in known)
    axes.set(xscale="log", yscale="log", ylim=(1e-2, 2 * max(1.0, top)))
    axes.set(xlabel="direction, largest first", ylabel="variance times d")
    axes.legend(fontsize=7)


draw_spectrum = saved(make_figure)
