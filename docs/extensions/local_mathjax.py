"""MathJax beside the pages, from the package that carries it: they need no network."""

import shutil
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

# What pages with TeX formulas load; the rest of the package is for other inputs and outputs.
PARTS = ("tex-chtml.js", "output/chtml/fonts/woff-v2")


def setup(app: Any) -> dict[str, bool]:
    """Point pages at the local copy, and make it once they are written."""
    app.config.mathjax_path = f"mathjax/{PARTS[0]}"
    # Its menu would load more files, and a screen reader's speech others.
    app.config.mathjax3_config = {"options": {"enableMenu": False}}
    app.connect("build-finished", copy_parts)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def copy_parts(app: Any, error: Exception | None) -> None:
    """Copy what pages load into their static folder."""
    if error is not None or app.builder.format != "html":
        return
    files = distribution("sphinx-mathjax-offline")
    folder = Path(str(files.locate_file("sphinx-mathjax-offline"))) / "static" / "mathjax"
    for part in PARTS:
        target = Path(app.outdir) / "_static" / "mathjax" / part
        target.parent.mkdir(parents=True, exist_ok=True)
        if (folder / part).is_dir():
            shutil.copytree(folder / part, target, dirs_exist_ok=True)
        else:
            shutil.copy(folder / part, target)
