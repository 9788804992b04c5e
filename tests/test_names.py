"""Every global name that the package's code loads is there.

Linters leave undefined names alone here, since the axis names in jaxtyping's annotations are such names.
"""

import builtins
import dis
import pkgutil
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import CodeType

import mnemoscope

# Modules that do something when they are imported.
PROGRAMS = {"mnemoscope.__main__"}


def code_objects(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from code_objects(constant)


def test_no_name_is_missing():
    missing = []
    for found in pkgutil.walk_packages(mnemoscope.__path__, "mnemoscope."):
        if found.name in PROGRAMS:
            continue
        module = import_module(found.name)
        source = Path(str(module.__file__)).read_text(encoding="utf-8")
        top = compile(source, found.name, "exec")
        known = vars(module).keys() | vars(builtins).keys()
        for code in code_objects(top):
            loaded = {i.argval for i in dis.get_instructions(code) if i.opname == "LOAD_GLOBAL"}
            missing += [f"{found.name}.{code.co_name}: {name}" for name in sorted(loaded - known)]
    assert not missing
