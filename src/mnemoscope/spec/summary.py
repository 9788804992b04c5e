"""How a result shows itself: one line in a terminal, a small table in a notebook."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from html import escape

from mnemoscope.spec.base import Spec
from mnemoscope.spec.retrieval import LETTERS, Retrieval

# A longer line would wrap even in a wide terminal.
MOST_LETTERS = 160


@dataclass(frozen=True)
class Summary:
    """What a person wants to see of a result: what it is of, its numbers by name, and perhaps a table."""

    title: str
    numbers: dict[str, str]
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    caption: str = ""


class Shown(ABC):
    """A result with a summary. Its dataclass needs `repr=False`, to keep the short line of this class."""

    @abstractmethod
    def summary(self) -> Summary:
        """The title, the numbers, and the table."""

    def __repr__(self) -> str:
        summary = self.summary()
        numbers = ", ".join(f"{name} {value}" for name, value in summary.numbers.items())
        line = ": ".join(part for part in (summary.title, numbers) if part)
        if len(line) > MOST_LETTERS:
            line = line[: MOST_LETTERS - 1] + "…"
        return f"{type(self).__name__}({line})"

    def _repr_html_(self) -> str:
        return as_html(self.summary())


def as_html(summary: Summary) -> str:
    """The summary for a notebook; without colours of its own, it is legible on light and on dark."""
    parts = [f"<strong>{escape(summary.title)}</strong>"] if summary.title else []
    parts.append(_table([_cells("th", (name,)) + _cells("td", (value,)) for name, value in summary.numbers.items()]))
    if summary.rows:
        parts.append(_table([_cells("th", summary.columns), *(_cells("td", row) for row in summary.rows)]))
    if summary.caption:
        parts.append(f"<p>{escape(summary.caption)}</p>")
    return "\n".join(parts)


def _cells(tag: str, texts: Iterable[str]) -> str:
    return "".join(f'<{tag} style="text-align: left; padding: 2px 12px 2px 0">{escape(text)}</{tag}>' for text in texts)


def _table(rows: Iterable[str]) -> str:
    return "<table>" + "".join(f"<tr>{row}</tr>" for row in rows) + "</table>"


def number(value: float | None, digits: int = 3) -> str:
    """A number for a table cell, or a dash."""
    return "–" if value is None else f"{value:.{digits}f}"


def span(low: float | None, high: float | None, digits: int = 3) -> str:
    """An interval, or a dash."""
    return "–" if low is None or high is None else f"[{low:,.{digits}f}, {high:,.{digits}f}]"


def sizes(spec: Retrieval, without: Collection[str] = ()) -> str:
    """The sizes of a setting in short, such as V=512 d=128 L=16 N=16,000, and m where there is an MLP."""
    names = [name for name in LETTERS if name not in without and (name != "width" or spec.width)]
    return " ".join(f"{LETTERS[name]}={getattr(spec, name):,}" for name in names)


def axis_words(name: str) -> str:
    """An axis as figures and tables name it: with its letter where it has one."""
    return f"{name} ({LETTERS[name]})" if name in LETTERS else name


def brief(spec: Spec, without: Collection[str] = ()) -> str:
    """The values of any setting that are not at their defaults, the sizes by their letters."""
    values = {name: value for name, value in spec.told_values().items() if name not in without}
    return " ".join(
        f"{LETTERS.get(name, name)}={f'{value:,}' if isinstance(value, int) else value}"
        for name, value in values.items()
    )
