"""The attention of every head on one sequence."""

from typing import Any

import numpy as np

from mnemoscope.experiments.attention_maps import AttentionMaps
from mnemoscope.ui.figures.canvas import open_canvas, saved

# Up to this many tokens stand below the map by name.
MOST_NAMED = 40


def make_figure(maps: AttentionMaps) -> Any:
    """The maps as a matplotlib figure."""
    layers, heads, readers, positions = maps.weights.shape
    width = min(14.0, 2.4 + 0.32 * positions)
    figure, axes = open_canvas(width=width, height=min(16.0, 1.6 + 0.3 * layers * heads * min(readers, 8)))
    draw_on(axes, maps)
    return figure


def draw_on(axes: Any, maps: AttentionMaps) -> None:
    """Tokens across; down, every head's readers. White is no weight, and the largest is darkest."""
    layers, heads, readers, positions = maps.weights.shape
    rows = np.abs(maps.weights).reshape(layers * heads * readers, positions)
    axes.imshow(rows, cmap="Blues", vmin=0, aspect="auto", interpolation="nearest")
    for edge in range(1, layers * heads):
        axes.axhline(edge * readers - 0.5, color="black", linewidth=1.2 if edge % heads == 0 else 0.3)
    middle = [(k + 0.5) * readers - 0.5 for k in range(layers * heads)]
    axes.set_yticks(
        middle, [f"layer {k // heads + 1}, head {k % heads + 1}" for k in range(layers * heads)], fontsize=7
    )
    if positions <= MOST_NAMED:
        axes.set_xticks(range(positions), maps.tokens, fontsize=7, rotation=90)
    right = maps.answers[-1] == maps.named[-1]
    said = f"answer {maps.answers[-1]}" + ("" if right else f", named {maps.named[-1]}")
    axes.set_title(f"{said}; seed {maps.seed}", fontsize=8)
    axes.set_xlabel("token")


draw_attention_maps = saved(make_figure)
