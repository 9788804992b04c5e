"""The regime map as a picture."""

from pathlib import Path

import numpy as np

from mnemoscope.theory.laws import RegimeMap
from mnemoscope.ui.figures.canvas import open_canvas, save

# One colour a law; told apart also without colour vision (Okabe and Ito's set), white for recall.
COLOURS = ("#E69F00", "#56B4E9", "#009E73", "#F0E442", "#CC79A7", "#BBBBBB", "#D55E00", "#7FA8D9")


def draw_regimes(regimes: RegimeMap, path: Path) -> None:
    """Write the map into a file; its suffix says in which form."""
    figure, axes = open_canvas(path, width=6.4, height=4.4)
    shades = [(1.0, 1.0, 1.0), *(_rgb(colour) for colour in COLOURS[: len(regimes.laws)])]
    picture = np.array(shades)[regimes.binding + 1]
    edges = (regimes.dim[0], regimes.dim[-1], regimes.samples[0], regimes.samples[-1])
    axes.imshow(picture, origin="lower", extent=edges, aspect="auto", interpolation="nearest")
    for at, name in [(-1, "recall"), *((k, law.name) for k, law in enumerate(regimes.laws))]:
        rows, columns = np.nonzero(regimes.binding == at)
        if len(rows) < 0.01 * regimes.binding.size:
            continue
        # The label goes to the place of its region that is nearest to the region's middle.
        y, x = regimes.samples[rows], regimes.dim[columns]
        spot = np.argmin((x - np.median(x)) ** 2 + ((y - np.median(y)) / 2) ** 2)
        axes.text(x[spot], y[spot], name.replace("_", " "), ha="center", va="center", fontsize=9)
    axes.set_xlabel(r"$\log_V d$")
    axes.set_ylabel(r"$\log_V N$")
    axes.set_title(rf"Which noise binds, $L = V^{{{regimes.length:g}}}$ (leading powers)", fontsize=10)
    save(figure, path)


def _rgb(colour: str) -> tuple[float, float, float]:
    red, green, blue = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    return red, green, blue
