"""Matplotlib figures: open, label, save. Matplotlib is an extra; if it is missing, an error says so."""

import math
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any, Literal

from mnemoscope.engine.extras import need
from mnemoscope.engine.files import check_target, whole_file
from mnemoscope.spec import LETTERS, Retrieval, SpecError

FORMS = (".png", ".svg", ".pdf")
ENOUGH_TICKS = 4


def check_form(path: Path | None, more: tuple[str, ...] = (), option: str = "out") -> None:
    """Refuse a path that no figure can be written to, before any work is done. None is fine."""
    if path is None:
        return
    forms = (*FORMS, *more)
    if path.suffix not in forms:
        raise SpecError(option, f"expected a file ending in {', '.join(forms)}, got {str(path)!r}")
    need("pages" if path.suffix == ".html" else "figures")
    check_target(path, option)


def open_canvas(*, width: float, height: float, columns: int = 1, share: bool = True) -> tuple[Any, Any]:
    """A figure of this size in inches, and its axes: with several columns, a row of them that may share the y axis."""
    need("figures")
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    if columns > 1:
        return figure, figure.subplots(1, columns, sharey=share)
    return figure, figure.add_subplot()


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
    ticks_at(axes, name, marks)


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


def sizes(spec: Retrieval, without: Collection[str] = ()) -> str:
    """The sizes of a setting in short, such as V=512 d=128 L=16 N=16,000, and m where there is an MLP."""
    names = [name for name in LETTERS if name not in without and (name != "width" or spec.width)]
    return " ".join(f"{LETTERS[name]}={getattr(spec, name):,}" for name in names)


def saved(make: Callable[[Any], Any]) -> Callable[[Any, Path], None]:
    """The function that writes the figure that `make` returns into a .png, .svg or .pdf file."""

    def draw(result: Any, path: Path) -> None:
        check_form(path)
        figure = make(result)
        with whole_file(path) as part:
            figure.savefig(part, dpi=160)

    return draw
