"""How the documentation is built: `uv run --group docs sphinx-build -W -b html docs site`."""

import os
import re
import sys
from importlib.metadata import version as version_of
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "extensions"))
# Notebooks keep their trials in a store of the build's own, not in that of whoever builds.
os.environ["XDG_DATA_HOME"] = str(HERE / "_build" / "data")

project = "Mnemoscope"
copyright = "the Mnemoscope authors"
version = release = version_of("mnemoscope")

extensions = [
    "myst_nb",
    "sphinx.ext.mathjax",
    "sphinx_copybutton",
    # Ours, in docs/extensions.
    "local_mathjax",
    "api_pages",
    "command_pages",
]
exclude_patterns = ["_build", "extensions", "figures", "api_examples.md"]
# Most blocks are commands with what they print.
highlight_language = "text"

myst_enable_extensions = ["amsmath", "dollarmath", "deflist"]
myst_heading_anchors = 4
# Formulas carry their own numbers, such as (A7), which text elsewhere speaks of.
myst_dmath_double_inline = True
nb_execution_mode = "cache"
nb_execution_cache_path = str(HERE / "_build" / "notebooks")
nb_execution_raise_on_error = True
nb_execution_timeout = 240
nb_execution_show_tb = True
# Progress goes to standard error where no notebook shows it.
nb_output_stderr = "remove"

html_theme = "furo"
html_title = "Mnemoscope"
html_static_path = ["static"]
html_css_files = ["site.css"]
# From disk a browser may not read other pages, so results of a search have their titles alone.
html_show_search_summary = False
html_copy_source = False
html_theme_options = {"navigation_with_keys": True}
copybutton_prompt_text = ">>> "


def setup(app: Any) -> None:
    """A page of docs/ that the index does not name is a guide: a new one needs no line there."""
    app.connect("source-read", list_guides)


def list_guides(_: Any, name: str, source: list[str]) -> None:
    """Put the guides where the index says GUIDES."""
    if name == "index":
        named = set(re.findall(r"^[a-z_]+$", source[0], re.MULTILINE)) | {"index"}
        pages = {path.stem for path in HERE.glob("*.md")} - {"api_examples"}
        source[0] = source[0].replace("GUIDES", "\n".join(sorted(pages - named)))
