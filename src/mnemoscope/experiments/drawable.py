"""Results that can be drawn."""

from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar


class Drawable:
    """A result with a figure of its own, in a module of `ui.figures`."""

    figure: ClassVar[str]

    def plot(self, path: str | Path | None = None) -> Any:
        """Draw it into a file (.png, .svg, .pdf; a phase diagram also .html); without one, a Matplotlib figure."""
        # By name: figures are made from results, and nothing here depends on them.
        module = import_module(f"mnemoscope.ui.figures.{self.figure}")
        return module.make_figure(self) if path is None else getattr(module, f"draw_{self.figure}")(self, Path(path))
