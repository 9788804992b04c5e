"""A study's figure, into a file."""

from pathlib import Path
from typing import Any

from mnemoscope.report.canvas import check_form, save


def draw_study(draw: Any, numbers: dict[str, Any], path: Path) -> None:
    """Write it into a .png, .svg or .pdf file."""
    check_form(path)
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.2, 4.2), layout="constrained")
    draw(numbers, figure)
    save(figure, path)
