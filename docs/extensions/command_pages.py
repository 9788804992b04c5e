"""The command-line reference: what the program itself says to `--help`, a page for each command."""

import contextlib
import io
import os
from pathlib import Path
from typing import Any

from mnemoscope.ui.cli import COMMANDS, main

WIDTH = 110


def setup(app: Any) -> dict[str, bool]:
    """Write the pages before Sphinx looks for them."""
    app.connect("builder-inited", write_pages)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def write_pages(app: Any) -> None:
    """A page for each command, and a list of them; files that have not changed are left alone."""
    folder = Path(app.srcdir) / "commands"
    folder.mkdir(exist_ok=True)
    pages = {f"{name}.md": page(name) for name in COMMANDS}
    rows = "\n".join(f"| [{name}]({name}.md) | {line} |" for name, line in COMMANDS.items())
    pages["index.md"] = (
        "# Commands\n\nEvery command takes `--help`, prints a table, and with `--json` one JSON object.\n\n"
        f"| command | |\n|---|---|\n{rows}\n\n```text\n{shown()}\n```\n\n"
        f"```{{toctree}}\n:hidden:\n\n{chr(10).join(COMMANDS)}\n```\n"
    )
    for file, text in pages.items():
        path = folder / file
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def page(name: str) -> str:
    """The help of one command, and of its own commands where it has any."""
    inner = [f"## mnemoscope {name} {part}\n\n```text\n{shown(name, part)}\n```\n" for part in PARTS.get(name, ())]
    return f"# mnemoscope {name}\n\n{COMMANDS[name]}\n\n```text\n{shown(name)}\n```\n\n" + "\n".join(inner)


# Commands that have commands.
PARTS = {"store": ("list", "export", "verify", "repair", "prune")}


def shown(*words: str) -> str:
    """What `mnemoscope ... --help` prints, on a terminal of a known width."""
    os.environ["COLUMNS"] = str(WIDTH)
    with contextlib.redirect_stdout(io.StringIO()) as out:
        main([*words, "--help"])
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()).strip()
