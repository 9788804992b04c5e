"""Data flows one way: a module imports only from rooms that stand before its own."""

import ast
from pathlib import Path

import mnemoscope

HOUSE = Path(mnemoscope.__file__).parent
# The order of the rooms, as ARCHITECTURE.md draws it.
ROOMS = [
    "fields",
    "spec",
    "extras",
    "files",
    "pace",
    "free_memory",
    "matrix_files",
    "matrices",
    "theory",
    "numerics",
    "stopping",
    "layout",
    "keys",
    "tasks",
    "embeddings",
    "models",
    "training",
    "evaluation",
    "room",
    "record",
    "store",
    "calls",
    "simulation",
    "batch",
    "together",
    "associative",
    "factual",
    "analysis",
    "experiments",
    "bench",
    "report",
    "studies",
    "web",
    "cli",
]


def room_of(module: str) -> str:
    return module.split(".")[1] if "." in module else ""


def imports(file: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("mnemo"):
            base = [node.module] if "." in node.module else []
            found |= {room_of(name) for name in base}
            if node.module == "mnemoscope":
                found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.Import):
            found |= {room_of(a.name) for a in node.names if a.name.startswith("mnemoscope.")}
    return found


def test_every_room_is_on_the_plan():
    there = {path.stem if path.is_file() else path.name for path in HOUSE.iterdir()}
    assert there - {"__init__", "__main__", "__pycache__", "py"} == set(ROOMS)


def test_imports_go_one_way():
    for file in HOUSE.rglob("*.py"):
        parts = file.relative_to(HOUSE).with_suffix("").parts
        if parts[0] in ("__init__", "__main__"):
            continue
        here = ROOMS.index(parts[0])
        for other in imports(file):
            allowed = ROOMS.index(other) <= here
            assert allowed, f"{'/'.join(parts)} imports {other}, which stands after it"
