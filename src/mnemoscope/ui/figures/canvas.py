"""Opening and saving Matplotlib figures. Matplotlib is an extra: an error names it where it is missing."""

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

from mnemoscope.engine.extras import need
from mnemoscope.engine.files import check_target, whole_file
from mnemoscope.spec import SpecError

FORMS = (".png", ".svg", ".pdf")
ENOUGH_TICKS = 4


def check_form(path: Path | None, more: tuple[str, ...] = (), option: str = "out") -> None:
    """Refuse a file that cannot be drawn, before any work is done; no file is fine."""
    if path is None:
        return
    forms = (*FORMS, *more)
    if path.suffix not in forms:
        raise SpecError(option, f"expected a file ending in {', '.join(forms)}, got {str(path)!r}")
    need("pages" if path.suffix == ".html" else "figures")
    check_target(path, option)


def open_canvas(*, width: float, height: float, columns: int = 1, share: bool = True) -> tuple[Any, Any]:
    """A figure of this size in inches, and its axes: a row of them with several columns, by default on one y scale."""
    need("figures")
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    if columns > 1:
        return figure, figure.subplots(1, columns, sharey=share)
    return figure, figure.add_subplot()


def plain_log_ticks(axes: Any, name: Literal["x", "y"], low: float, high: float) -> None:
    """A logarithmic axis with few ticks, written as plain numbers.

    Ticks are at powers of ten where enough of them fit, else at 1 and 3 or at 1, 2 and 5, and on a short axis at every
    digit.
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
    """A logarithmic axis with ticks at these values only."""
    getattr(axes, f"set_{name}scale")("log")
    axis = getattr(axes, f"{name}axis")
    axis.set_ticks(sorted(set(values)), minor=False)
    axis.set_ticks([], minor=True)
    axis.set_major_formatter(lambda value, _: plain(float(value)))


def plain(value: float) -> str:
    """A tick's number, without powers of ten."""
    return f"{value:,.0f}" if value >= 1 else f"{value:g}"


def save(figure: Any, path: Path) -> None:
    """Write the figure."""
    with whole_file(path) as part:
        figure.savefig(part, dpi=160)


def saved(make: Callable[[Any], Any]) -> Callable[[Any, Path], None]:
    """The function that writes what `make` draws into a .png, .svg or .pdf file."""

    def draw(result: Any, path: Path) -> None:
        check_form(path)
        save(make(result), path)

    return draw
