"""`mnemoscope store`: look at what was kept, take it elsewhere, check it, mend it, clear it."""

import json as json_module
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import cyclopts
from cyclopts import Parameter
from rich import box
from rich.console import Console
from rich.table import Table

from mnemoscope.spec import LETTERS
from mnemoscope.store.maintenance import Repair, export, prune, repair, verify
from mnemoscope.store.query import list_settings
from mnemoscope.store.schema import NOWHERE, default_path
from mnemoscope.store.trials import Store
from mnemoscope.ui.cli.asking import YES
from mnemoscope.ui.cli.options import count
from mnemoscope.ui.cli.output import number, print_json
from mnemoscope.ui.cli.sweeping import STORE

store = cyclopts.App(
    name="store",
    help="Look at what was kept, take it elsewhere, check it, mend it, clear it out.",
    help_flags=["--help", "-h"],
)
WHERE = Parameter(
    help="only trials that meet a condition such as vocab=512, kind=facts or status=crashed; may be repeated",
    negative="",
)
JSON = Parameter(negative="", help="print one JSON object instead of a table")


def is_made(path: Path | None) -> bool:
    """Whether there is a store to look at; one that is named has to be there."""
    return path is not None or default_path().exists()


@contextmanager
def open_kept(path: Path | None, *, writing: bool = False) -> Iterator[Store]:
    """The store that is named, or the user's own: an empty one where none was made yet."""
    with Store(path, writing=writing) if is_made(path) else Store(NOWHERE) as kept:
        yield kept


@store.command(name="list")
def list_(
    *,
    where: Annotated[list[str] | None, WHERE] = None,
    most: Annotated[int, count(1, 10**9, "how many settings to show")] = 50,
    path: Annotated[Path | None, Parameter(name="--store", help=STORE.help)] = None,
    json: Annotated[bool, JSON] = False,
) -> int:
    """List the settings that have trials, with their mean accuracy."""
    with open_kept(path) as kept:
        total = kept.rows()
        rows = list_settings(kept, where or [], most)
    if json:
        print_json({"settings": rows, "trials": total})
        return 0
    table = Table(box=box.SIMPLE)
    for name in ("id", "setting", "trials", "crashed", "accuracy", "seconds"):
        table.add_column(name, justify="left" if name in ("id", "setting") else "right")
    for row in rows:
        table.add_row(
            row["id"],
            _short(row["canonical"]),
            f"{row['trials']}",
            f"{row['crashed'] or ''}",
            number(row["accuracy"]),
            f"{row['seconds']:.1f}",
        )
    console = Console(highlight=False)
    console.print(table)
    console.print(f"{total:,} trials in all, {len(rows)} settings shown")
    return 0


def _short(canonical: str) -> str:
    """A setting in a few letters: V=64 d=40 L=4 N=87, then what is not at its default."""
    told = json_module.loads(canonical)
    sizes = [f"{letter}={told[name]}" for name, letter in LETTERS.items() if name in told]
    others = [f"{name}={value}" for name, value in told.items() if name not in LETTERS and name != "kind"]
    return " ".join(sizes + others)


@store.command(name="export")
def export_(
    out: Annotated[Path, Parameter(help="the file to write, .parquet or .csv")],
    *,
    where: Annotated[list[str] | None, WHERE] = None,
    path: Annotated[Path | None, Parameter(name="--store", help=STORE.help)] = None,
    json: Annotated[bool, JSON] = False,
) -> int:
    """Write one row a trial, with its whole setting, into a Parquet or CSV file."""
    with open_kept(path) as kept:
        count = export(kept, out, where or [])
    if json:
        print_json({"path": str(out), "trials": count})
    else:
        print(f"{count:,} trials: {out}")
    return 0


@store.command(name="verify")
def verify_(
    *,
    path: Annotated[Path | None, Parameter(name="--store", help=STORE.help)] = None,
    json: Annotated[bool, JSON] = False,
) -> int:
    """Check the file, and that every record says what its key says. Exit status 1 if not."""
    with open_kept(path) as kept:
        count, faults = verify(kept)
    if json:
        print_json({"trials": count, "faults": faults})
    else:
        print(f"{count:,} trials, {len(faults)} faults")
        for fault in faults[:20]:
            print(f"  {fault}")
    return 1 if faults else 0


@store.command(name="repair")
def repair_(
    *,
    path: Annotated[Path | None, Parameter(name="--store", help=STORE.help)] = None,
    json: Annotated[bool, JSON] = False,
) -> int:
    """Move damaged rows aside, and say what they were. What is sound stays, and nothing is lost.

    Rows go to a table of the store's own; a file that SQLite cannot read any more is kept beside
    the store under another name, and everything that is sound in it takes its place.
    """
    done = repair(path or default_path()) if is_made(path) else Repair(0, [], None)
    if json:
        moved = None if done.moved is None else str(done.moved)
        print_json({"trials": done.trials, "faults": done.faults, "moved": moved})
        return 0
    print(f"{done.trials:,} sound trials, {len(done.faults)} faults moved aside")
    for fault in done.faults:
        print(f"  {fault}")
    if done.moved is not None:
        print(f"the damaged file: {done.moved}")
    return 0


@store.command(name="prune")
def prune_(
    *,
    where: Annotated[list[str] | None, WHERE] = None,
    old: Annotated[bool, Parameter(negative="", help="what an earlier version of the numerics computed")] = False,
    yes: Annotated[bool, YES] = False,
    path: Annotated[Path | None, Parameter(name="--store", help=STORE.help)] = None,
    json: Annotated[bool, JSON] = False,
) -> int:
    """Remove trials that meet all conditions, or those of an earlier numerics version."""
    with open_kept(path, writing=True) as kept:
        count = prune(kept, where or [], old=old, really=yes)
    if json:
        print_json({"trials": count, "removed": yes})
    else:
        print(f"{count:,} trials {'removed' if yes else 'would be removed; do it with --yes'}")
    return 0
