"""Matplotlib figures: open, label, save. Matplotlib is an extra; if it is missing, an error says so."""

import base64
import io
import math
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, Literal

from mnemoscope.engine.extras import need
from mnemoscope.engine.files import check_target, whole_file
from mnemoscope.spec import SpecError
from mnemoscope.spec.summary import sizes as sizes

FORMS = (".png", ".svg", ".pdf", ".pgf")
LATEX = "pdflatex"
# Widths in inches: a column of a two-column paper, and the text of a page.
WIDTHS = {"screen": None, "column": 3.3, "page": 6.8}
# For paper: letters of 8 points, which PDF keeps as text, and LaTeX's own fonts in its own files.
ON_PAPER: dict[Any, Any] = {
    "font.size": 8,
    "axes.labelsize": 8,
    "axes.titlesize": 8,
    "legend.fontsize": 7,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "lines.linewidth": 1.0,
    "pdf.fonttype": 42,
    "pgf.rcfonts": False,
    "pgf.texsystem": LATEX,
}
# The width that figures are drawn at now; None is their own.
_width: ContextVar[float | None] = ContextVar("width", default=None)
ENOUGH_TICKS = 4


def check_form(path: Path | None, more: tuple[str, ...] = (), option: str = "out") -> None:
    """Refuse a path that no figure can be written to, before any work is done. None is fine."""
    if path is None:
        return
    forms = (*FORMS, *more)
    if path.suffix not in forms:
        raise SpecError(option, f"expected a file ending in {', '.join(forms)}, got {str(path)!r}")
    need("pages" if path.suffix == ".html" else "figures")
    if path.suffix == ".pgf" and shutil.which(LATEX) is None:
        raise SpecError(option, f"expected {LATEX} to be installed for a .pgf file, which it measures, got none")
    check_target(path, option)


@contextmanager
def in_style(style: str) -> Iterator[None]:
    """Open canvases at the width, and with the letters, of this style."""
    need("figures")
    if style not in WIDTHS:
        raise SpecError("style", f"expected one of {', '.join(WIDTHS)}, got {style!r}")
    from matplotlib import rc_context

    width = WIDTHS[style]
    before = _width.set(width)
    try:
        with rc_context({} if width is None else ON_PAPER):
            yield
    finally:
        _width.reset(before)


def open_canvas(*, width: float, height: float, columns: int = 1, share: bool = True) -> tuple[Any, Any]:
    """A figure of this size in inches, and its axes: with several columns, a row of them that may share the y axis."""
    need("figures")
    from matplotlib.figure import Figure

    narrow = _width.get()
    stacked = narrow is not None and narrow < width / 2 and columns > 1
    if narrow is not None:
        # Panels that no longer fit side by side stand one above the other, each as wide as before.
        share_of_width = columns if stacked else 1
        width, height = narrow, min(1.0, narrow * share_of_width / width + 0.15) * height * share_of_width
    figure = Figure(figsize=(width, height), layout="constrained")
    if columns > 1:
        rows_and_columns = (columns, 1) if stacked else (1, columns)
        return figure, figure.subplots(*rows_and_columns, sharey=share)
    return figure, figure.add_subplot()


def as_image(figure: Any) -> str:
    """The figure as an image for a notebook."""
    content = io.BytesIO()
    figure.savefig(content, format="png", dpi=96)
    data = base64.b64encode(content.getvalue()).decode()
    return f'<div><img alt="" src="data:image/png;base64,{data}"></div>'


def plain_log_ticks(axes: Any, name: Literal["x", "y"], low: float, high: float) -> None:
    """Make an axis logarithmic, with a few ticks written as plain numbers.

    Ticks are at powers of ten where those are enough, else at 1 and 3, or at 1, 2 and 5, or at every digit.
    """
    tens = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    marks: list[float] = []
    for firsts in ((1,), (1, 3), (1, 2, 5), range(1, 10)):  # the coarsest with enough ticks
        every = (first * 10.0**ten for ten in tens for first in firsts)
        marks = [mark for mark in every if low / 1.3 <= mark <= high * 1.3]
        if len(marks) >= ENOUGH_TICKS:
            break
    # The share of the axis that a label takes, with some space: along it by its length, across it by its height.
    share = 0.022 * (1 + max(len(plain(mark)) for mark in marks)) if name == "x" else 0.07
    apart = share * math.log(high / low * 1.3**2)
    kept: list[float] = []
    for mark in sorted(marks, key=_roundness):
        if all(abs(math.log(mark / other)) >= apart for other in kept):
            kept.append(mark)
    ticks_at(axes, name, kept)


def _roundness(value: float) -> int:
    """0 for a power of ten, 1 for a few digits before zeros that are round as well, else 2."""
    first = f"{value:e}"[0]
    return 0 if first == "1" else 1 if first in "235" else 2


def ticks_at(axes: Any, name: Literal["x", "y"], values: Sequence[float]) -> None:
    """Make an axis logarithmic, with ticks at these values only."""
    getattr(axes, f"set_{name}scale")("log")
    axis = getattr(axes, f"{name}axis")
    axis.set_ticks(sorted(set(values)), minor=False)
    axis.set_ticks([], minor=True)
    axis.set_major_formatter(lambda value, _: plain(float(value)))


def plain(value: float) -> str:
    """A tick's number, without powers of ten."""
    return f"{value:,.0f}" if value >= 1 else f"{value:g}"


def saved(make: Callable[[Any], Any]) -> Callable[[Any, Path], None]:
    """The function that writes the figure that `make` returns into a .png, .svg or .pdf file."""

    def draw(result: Any, path: Path) -> None:
        check_form(path)
        figure = make(result)
        with whole_file(path) as part:
            figure.savefig(part, dpi=160)

    return draw
