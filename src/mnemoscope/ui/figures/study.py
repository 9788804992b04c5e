"""A study's figure: into a file, as text for a page, and for the browser."""

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mnemoscope.engine.extras import need
from mnemoscope.ui.figures.canvas import saved
from mnemoscope.ui.figures.interactive import as_plotly

Draw = Callable[[dict[str, Any], Any], None]


def make_figure(draw: Draw, numbers: dict[str, Any]) -> Any:
    """The figure, one and a half columns wide."""
    need("figures")
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.2, 4.2), layout="constrained")
    draw(numbers, figure)
    return figure


def draw_study(draw: Draw, numbers: dict[str, Any], path: Path) -> None:
    """Write it into a .png, .svg or .pdf file."""
    saved(lambda numbers: make_figure(draw, numbers))(numbers, path)


def both_forms(draw: Draw, numbers: dict[str, Any], name: str) -> tuple[str, dict[str, Any]]:
    """The figure as SVG text, the same for the same numbers, and as Plotly's data."""
    figure = make_figure(draw, numbers)
    from matplotlib import rc_context

    text = io.StringIO()
    # Text stays text: a third of the size, and it can be searched.
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": name}):
        figure.savefig(text, format="svg", metadata={"Date": None})
    return text.getvalue(), as_plotly(figure)
