"""Spectra of embeddings: how much of them lies in which direction."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from mnemoscope.experiments.compare_embeddings import Variant
from mnemoscope.ui.figures.canvas import open_canvas, save


def draw_spectra(variants: Sequence[Variant], path: Path) -> None:
    """Variance by direction, largest first, over what random embeddings have in each."""
    figure, axes = open_canvas(path, width=6.4, height=4.0)
    known = [(variant.name, variant.geometry) for variant in variants if variant.geometry is not None]
    for name, geometry in known:
        share = np.array(geometry.spectrum) * geometry.dim
        axes.plot(
            np.arange(1, len(share) + 1),
            share,
            label=f"{name} (effective dimension {geometry.effective_dim:.0f} of {geometry.dim})",
        )
    axes.axhline(1, color="black", linewidth=0.8, linestyle=":", label="random, many rows")
    axes.set_xscale("log")
    axes.set_yscale("log")
    top = max(max(geometry.spectrum) * geometry.dim for _, geometry in known)
    axes.set_ylim(1e-2, 2 * max(1.0, top))
    axes.set_xlabel("direction, largest first")
    axes.set_ylabel("variance times d")
    axes.legend(fontsize=7)
    save(figure, path)
