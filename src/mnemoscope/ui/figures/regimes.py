"""The regime map as a picture."""

from pathlib import Path

import numpy as np

from mnemoscope.theory.laws import RegimeMap
from mnemoscope.ui.figures.canvas import open_canvas, save

# One colour a law; told apart also without colour vision (Okabe and Ito's set), white for recall.
COLOURS = ("#E69F00", "#56B4E9", "#009E73", "#F0E442", "#CC79A7", "#BBBBBB", "#D55E00", "#7FA8D9")


def draw_regimes(made: RegimeMap, path: Path) -> None:
    """Write the map into a file; its suffix says in which form."""
    figure, axes = open_canvas(path, width=6.4, height=4.4)
    shades = [(1.0, 1.0, 1.0), *(_rgb(colour) for colour in COLOURS[: len(made.laws)])]
    picture = np.array(shades)[made.binding + 1]
    edges = (made.dim[0], made.dim[-1], made.samples[0], made.samples[-1])
    axes.imshow(picture, origin="lower", extent=edges, aspect="auto", interpolation="nearest")
    for at, name in [(-1, "recall"), *((k, law.name) for k, law in enumerate(made.laws))]:
        rows, columns = np.nonzero(made.binding == at)
        if len(rows) < 0.01 * made.binding.size:
            continue
        # The label goes to the place of its region that is nearest to the region's middle.
        y, x = made.samples[rows], made.dim[columns]
        spot = np.argmin((x - np.median(x)) ** 2 + ((y - np.median(y)) / 2) ** 2)
        axes.text(x[spot], y[spot], name.replace("_", " "), ha="center", va="center", fontsize=9)
    axes.set_xlabel(r"$\log_V d$")
    axes.set_ylabel(r"$\log_V N$")
    axes.set_title(rf"Which noise binds, $L = V^{{{made.length:g}}}$ (leading powers)", fontsize=10)
    save(figure, path)


def _rgb(colour: str) -> tuple[float, float, float]:
    red, green, blue = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    return red, green, blue
