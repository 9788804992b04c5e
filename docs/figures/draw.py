"""Draw a figure of the documentation again: `python docs/figures/draw.py phase`, from `phase.toml`.

The file has the command, its options, and where the figure goes. Copy it, change a number, and draw your own.
"""

import sys
import tomllib
from pathlib import Path
from typing import Any

from mnemoscope.ui.cli import main

HERE = Path(__file__).parent


def words_of(figure: dict[str, Any]) -> list[str]:
    """The words of the command that draws it."""
    words = [figure["command"], *figure.get("words", [])]
    for name, value in figure["options"].items():
        for each in value if isinstance(value, list) else [value]:
            words += [f"--{name}", *([] if each is True else [str(each)])]
    return [*words, f"--{figure.get('into', 'out')}", str(HERE.parent / figure["file"])]


if __name__ == "__main__":
    for name in sys.argv[1:] or sorted(path.stem for path in HERE.glob("*.toml")):
        status = main(words_of(tomllib.loads((HERE / f"{name}.toml").read_text(encoding="utf-8"))))
        if status:
            sys.exit(status)
