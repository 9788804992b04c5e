"""Data flows one way: a module imports only from rooms that stand before its own."""

import ast
from pathlib import Path

import mnemoscope

HOUSE = Path(mnemoscope.__file__).parent
# The order of the rooms, as ARCHITECTURE.md draws it. Figures stand before studies, which draw theirs with
# the same pens; what shows studies to people stands after them.
ROOMS = ["spec", "theory", "engine", "tasks", "models", "training", "store", "experiments", "ui.figures", "studies"]
ROOMS += ["ui.bench", "ui.pages", "ui.explorer", "ui.cli"]


def room_of(module: str) -> str:
    """The room of a module, without the package's own name."""
    parts = module.split(".")
    return ".".join(parts[:2] if parts[0] == "ui" else parts[:1])


def imports(file: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("mnemoscope"):
            package = node.module.removeprefix("mnemoscope").removeprefix(".")
            found |= {package} if package not in ("", "ui") else {f"{package}.{a.name}".strip(".") for a in node.names}
        elif isinstance(node, ast.Import):
            found |= {a.name.removeprefix("mnemoscope.") for a in node.names if a.name.startswith("mnemoscope.")}
    return {room_of(name) for name in found}


def test_every_room_is_on_the_plan():
    there = {path.stem if path.is_file() else path.name for path in HOUSE.iterdir()}
    assert there - {"__init__", "__main__", "__pycache__", "py"} == {room.split(".")[0] for room in ROOMS}
    parts = {f"ui.{path.name}" for path in (HOUSE / "ui").iterdir() if path.is_dir()} - {"ui.__pycache__"}
    assert parts == {room for room in ROOMS if room.startswith("ui.")}


def test_imports_go_one_way():
    for file in HOUSE.rglob("*.py"):
        parts = file.relative_to(HOUSE).with_suffix("").parts
        if parts[0] in ("__init__", "__main__") or parts == ("ui", "__init__"):
            continue
        here = ROOMS.index(room_of(".".join(parts)))
        for other in imports(file):
            assert ROOMS.index(other) <= here, f"{'/'.join(parts)} imports {other}, which stands after it"


def test_theory_knows_settings_alone():
    for file in (HOUSE / "theory").rglob("*.py"):
        assert imports(file) <= {"spec", "theory"}, file.name
