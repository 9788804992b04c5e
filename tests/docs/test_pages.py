"""What stands beside the pages: files that draw their figures again, and the notebooks."""

import importlib.util
import inspect
import json
import re
import tomllib
from typing import Any

import pytest
from places import PROJECT

import mnemoscope as mn
from mnemoscope.ui.cli import make_app

DOCS = PROJECT / "docs"
RECIPES = {path.stem: tomllib.loads(path.read_text(encoding="utf-8")) for path in (DOCS / "figures").glob("*.toml")}
# They need a browser that somebody closes, and libraries that are not installed with Mnemoscope.
NOT_IN_A_NOTEBOOK = {"explore", "from_equinox", "from_nnx", "from_torch"}


def test_every_figure_of_the_docs_can_be_drawn_again():
    drawn = {(DOCS / recipe["file"]).resolve() for recipe in RECIPES.values()}
    pages = [path for path in DOCS.rglob("*.md") if "_build" not in path.parts]
    shown = {
        (page.parent / name).resolve()
        for page in pages
        for name in re.findall(r"!\[[^\]]*\]\(([^)\s]+\.svg)\)", page.read_text(encoding="utf-8"))
    }
    assert shown == drawn
    assert all(path.exists() for path in shown)


@pytest.mark.parametrize("name", RECIPES)
def test_a_figures_file_is_a_command_with_options_that_it_takes(name: str):
    place = importlib.util.spec_from_file_location("draw", DOCS / "figures" / "draw.py")
    assert place is not None
    assert place.loader is not None
    draw: Any = importlib.util.module_from_spec(place)
    place.loader.exec_module(draw)
    words = draw.words_of(RECIPES[name])
    make_app(words[0]).parse_args(words, exit_on_error=False, print_error=False)


def test_one_notebook_has_every_public_function():
    cells = json.loads((DOCS / "tutorials/every_function.ipynb").read_text(encoding="utf-8"))["cells"]
    code = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
    functions = {name for name in mn.__all__ if inspect.isfunction(getattr(mn, name))}
    assert functions - set(re.findall(r"\bmn\.(\w+)\b", code)) == NOT_IN_A_NOTEBOOK


def test_every_notebook_is_in_the_list_and_has_no_output():
    """Outputs are made when the pages are built."""
    listed = (DOCS / "tutorials/index.md").read_text(encoding="utf-8")
    notebooks = sorted((DOCS / "tutorials").glob("*.ipynb"))
    assert len(notebooks) >= 7
    for path in notebooks:
        assert f"\n{path.stem}\n" in listed
        assert not any(cell.get("outputs") for cell in json.loads(path.read_text(encoding="utf-8"))["cells"])
