"""The regime map."""

from typing import Any

import numpy as np

from mnemoscope.experiments.laws import LawMap
from mnemoscope.ui.figures.canvas import open_canvas, saved

# One colour a law, distinct without colour vision too (Okabe and Ito's set); white for recall.
COLOURS = ("#E69F00", "#56B4E9", "#009E73", "#F0E442", "#CC79A7", "#BBBBBB", "#D55E00", "#7FA8D9")


def make_figure(laws: LawMap) -> Any:
    """The law that binds at each point, in colours."""
    figure, axes = open_canvas(width=6.4, height=4.4)
    draw_on(axes, laws)
    return figure


def draw_on(axes: Any, laws: LawMap) -> None:
    """The map on axes of the caller's."""
    from matplotlib.colors import to_rgb

    regimes = laws.regimes
    shades = np.array([to_rgb(colour) for colour in ("white", *COLOURS[: len(regimes.laws)])])
    picture = shades[regimes.binding + 1]
    edges = (regimes.dim[0], regimes.dim[-1], regimes.samples[0], regimes.samples[-1])
    axes.imshow(picture, origin="lower", extent=edges, aspect="auto", interpolation="nearest")
    for at, name in [(-1, "recall"), *((k, law.name) for k, law in enumerate(regimes.laws))]:
        rows, columns = np.nonzero(regimes.binding == at)
        if len(rows) < 0.01 * regimes.binding.size:
            continue
        # The label goes to the point of its region nearest to the region's middle.
        y, x = regimes.samples[rows], regimes.dim[columns]
        spot = np.argmin((x - np.median(x)) ** 2 + ((y - np.median(y)) / 2) ** 2)
        axes.text(x[spot], y[spot], name.replace("_", " "), ha="center", va="center", fontsize=9)
    axes.set(xlabel=r"$\log_V d$", ylabel=r"$\log_V N$")
    axes.set_title(rf"Which noise binds, $L = V^{{{regimes.length:g}}}$ (leading powers)", fontsize="medium")


draw_regimes = saved(make_figure)
