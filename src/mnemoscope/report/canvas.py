"""Matplotlib, opened and closed in one place: it is an extra, and says so when it is absent."""

from pathlib import Path
from typing import Any

from mnemoscope.files import whole_file
from mnemoscope.spec import SpecError

FORMS = (".png", ".svg", ".pdf")


def check_form(path: Path, more: tuple[str, ...] = ()) -> None:
    """Refuse a file that could not be drawn, before any work goes into it."""
    forms = (*FORMS, *more)
    if path.suffix not in forms:
        raise SpecError("out", f"expected a file ending in {', '.join(forms)}, got {str(path)!r}")
    if not path.parent.is_dir():
        raise SpecError("out", f"expected a file in a folder that is there, got {str(path)!r}")


def open_canvas(
    path: Path | None, *, width: float, height: float, columns: int = 1, share: bool = True
) -> tuple[Any, Any]:
    """A figure of this size in inches, and its axes; the path is looked at first.

    With several columns the axes come as a row, which shares its vertical scale if asked to.
    """
    if path is not None:
        check_form(path)
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise SpecError(
            "out", "expected matplotlib, which is not installed: uv run --extra figures ..."
        ) from None
    figure = Figure(figsize=(width, height), layout="constrained")
    if columns > 1:
        return figure, figure.subplots(1, columns, sharey=share)
    return figure, figure.add_subplot()


def save(figure: Any, path: Path) -> None:
    """Write the figure."""
    with whole_file(path) as part:
        figure.savefig(part, dpi=160)
