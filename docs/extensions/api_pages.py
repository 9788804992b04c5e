"""The API reference: a page for every name of `mnemoscope.__all__`, from its docstring, its signature and its example.

Examples stand in `docs/api_examples.md`, under the name of what they show. A name without one stops the build.
"""

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mnemoscope

EXAMPLE = re.compile(r"^## (\w+)\n(.*?)```python\n(.*?)```", re.DOTALL | re.MULTILINE)


def setup(app: Any) -> dict[str, bool]:
    """Write the pages before Sphinx looks for them."""
    app.connect("builder-inited", write_pages)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def write_pages(app: Any) -> None:
    """One page for each name, and a list of them; files that have not changed are left alone."""
    source = Path(app.srcdir)
    examples = read_examples(source / "api_examples.md")
    folder = source / "api"
    folder.mkdir(exist_ok=True)
    names = sorted(mnemoscope.__all__, key=str.lower)
    pages = {f"{slug(name)}.md": page(name, *examples[name]) for name in names}
    pages["index.md"] = index(names)
    for path in folder.glob("*.md"):
        if path.name not in pages:
            path.unlink()
    for file, text in pages.items():
        path = folder / file
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def read_examples(path: Path) -> dict[str, tuple[str, str]]:
    """What is said before each example, and the example; refuse a public name without one, and an example too many."""
    examples = {name: (words.strip(), code) for name, words, code in EXAMPLE.findall(path.read_text(encoding="utf-8"))}
    missing = sorted({*mnemoscope.__all__} - {*examples})
    unknown = sorted({*examples} - {*mnemoscope.__all__})
    if missing or unknown:
        raise ValueError(f"{path.name}: no example for {missing}; not public: {unknown}")
    return examples


def slug(name: str) -> str:
    """A page's name: some file systems do not tell `Bound` from `bound`."""
    return f"class_{name.lower()}" if inspect.isclass(getattr(mnemoscope, name)) else name


def index(names: list[str]) -> str:
    """The names with their first lines, and the order of the pages."""
    rows = [f"| [{name}]({slug(name)}.md) | {first_line(getattr(mnemoscope, name))} |" for name in names]
    functions = [row for row, name in zip(rows, names, strict=True) if not inspect.isclass(getattr(mnemoscope, name))]
    classes = [row for row, name in zip(rows, names, strict=True) if inspect.isclass(getattr(mnemoscope, name))]
    head = "| name | |\n|---|---|\n"
    pages = "\n".join(slug(name) for name in names)
    return (
        "# Python reference\n\nEvery public name, `import mnemoscope as mn`.\n\n"
        f"## Functions\n\n{head}{chr(10).join(functions)}\n\n## Settings, results and the store\n\n"
        f"{head}{chr(10).join(classes)}\n\n```{{toctree}}\n:hidden:\n\n{pages}\n```\n"
    )


def first_line(thing: Any) -> str:
    """The first line of its docstring."""
    return (inspect.getdoc(thing) or "").split("\n\n")[0].replace("\n", " ").replace("|", "\\|")


def page(name: str, words: str, example: str) -> str:
    """The page of one name."""
    thing = getattr(mnemoscope, name)
    body = class_body(thing) if inspect.isclass(thing) else ""
    directive = "class" if inspect.isclass(thing) else "function"
    return (
        f"# {name}\n\n````{{py:{directive}}} mnemoscope.{name}{short_signature(thing)}\n````\n\n"
        f"{prose(inspect.getdoc(thing) or '')}\n\n{parameters(thing)}\n{body}\n"
        f"## Example\n\n{words}\n\n```python\n{example}```\n"
    )


def short_signature(thing: Any) -> str:
    """The names of the parameters, and their defaults."""
    signature = signature_of(thing)
    if signature is None:
        return "()"
    plain = [
        part.replace(annotation=inspect.Parameter.empty, default=Shown(part.default))
        if part.default is not inspect.Parameter.empty
        else part.replace(annotation=inspect.Parameter.empty)
        for part in signature.parameters.values()
    ]
    return str(signature.replace(parameters=plain, return_annotation=inspect.Signature.empty))


class Shown:
    """A default as a reader writes it."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __repr__(self) -> str:
        text = getattr(self.value, "value", self.value)
        return repr(text)


def signature_of(thing: Any) -> inspect.Signature | None:
    """Its signature; a class that its user does not make, such as a result, has none to speak of."""
    try:
        return inspect.signature(thing)
    except (TypeError, ValueError):
        return None


def parameters(thing: Any) -> str:
    """The parameters with their types; the fields of a setting with what they mean."""
    fields = getattr(thing, "model_fields", None)
    if fields:
        rows = []
        for name, field in fields.items():
            default = "" if field.is_required() else f"`{field.default!r}`"
            words = cell((field.description or "").replace("{laws}", "the name of a law"))
            rows.append(f"| `{name}` | {cell(type_name(field.annotation))} | {default} | {words} |")
        return "## Fields\n\n| field | type | default | |\n|---|---|---|---|\n" + "\n".join(rows) + "\n"
    signature = signature_of(thing)
    if signature is None or not signature.parameters:
        return ""
    rows = [
        f"| `{part.name}` | {cell(type_name(part.annotation))} | "
        f"{'' if part.default is inspect.Parameter.empty else f'`{Shown(part.default)!r}`'} |"
        for part in signature.parameters.values()
        if not part.name.startswith("_")
    ]
    returned = type_name(signature.return_annotation)
    after = "" if inspect.isclass(thing) else f"\nReturns `{returned}`.\n"
    return "## Parameters\n\n| name | type | default |\n|---|---|---|\n" + "\n".join(rows) + "\n" + after


def type_name(annotation: Any) -> str:
    """A type without the names of modules."""
    if annotation is inspect.Parameter.empty:
        return ""
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    return re.sub(r"\b[a-z_]\w*\.(?=[\w])", "", text).replace("Unpack", "")


def cell(text: str) -> str:
    """Text for a cell of a table."""
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")


def class_body(kind: type) -> str:
    """What an object of the class offers: attributes that are computed, and methods."""
    rows = []
    for name, member in public_members(kind):
        called = "" if isinstance(member, property) else "()"
        rows.append(f"| `{name}{called}` | {cell(first_line(member))} |")
    return "## Attributes and methods\n\n| name | |\n|---|---|\n" + "\n".join(rows) + "\n" if rows else ""


def public_members(kind: type) -> Iterator[tuple[str, Any]]:
    """Documented methods and properties of the package's own classes."""
    for name in dir(kind):
        owner = next((base for base in kind.__mro__ if name in vars(base)), object)
        if name.startswith("_") or not owner.__module__.startswith("mnemoscope"):
            continue
        member = vars(owner)[name]
        member = getattr(member, "__func__", member)
        if (inspect.isfunction(member) or isinstance(member, property)) and inspect.getdoc(member):
            yield name, member


def prose(text: str) -> str:
    """A docstring as Markdown: what is indented in it stays a block."""
    return re.sub(r"(?m)^>>> ", "    >>> ", text)
