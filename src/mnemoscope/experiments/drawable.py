"""Results that can be drawn."""

from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar, Literal

from mnemoscope.engine.extras import has
from mnemoscope.spec import SpecError
from mnemoscope.spec.summary import Shown, as_html

# For a screen, for one column of a two-column paper, and for the whole width of a page.
Style = Literal["screen", "column", "page"]


class Drawable(Shown):
    """A result with a figure of its own, in a module of `ui.figures`."""

    figure: ClassVar[str]

    @property
    def drawn_by(self) -> str:
        """The module that draws it."""
        return self.figure

    def plot(self, path: str | Path | None = None, *, ax: Any = None, style: Style = "screen") -> Any:
        """Draw it: into a file, on the Matplotlib axes `ax`, or as a new Matplotlib figure, which is returned.

        A file is .png, .svg, .pdf, .pgf for LaTeX, or for a phase diagram .html. `style` is the size: `screen`,
        `column` for one column of a two-column paper, or `page` for its whole width. A figure of two panels draws the
        first of them on `ax`.
        """
        # By name: figures are made from results, and nothing here depends on them.
        module = import_module(f"mnemoscope.ui.figures.{self.drawn_by}")
        canvas = import_module("mnemoscope.ui.figures.canvas")
        if ax is not None:
            if path is not None:
                raise SpecError("ax", "expected a path or axes to draw on, got both")
            module.draw_on(ax, self)
            return ax
        with canvas.in_style(style):
            if path is None:
                return module.make_figure(self)
            return getattr(module, f"draw_{self.drawn_by}")(self, Path(path))

    def _repr_html_(self) -> str:
        """The picture, where Matplotlib is installed, and the numbers."""
        numbers = as_html(self.summary())
        if not has("figures"):
            return numbers
        canvas = import_module("mnemoscope.ui.figures.canvas")
        return canvas.as_image(self.plot()) + numbers
