"""`mnemoscope store`: list, export, verify, repair and prune stored trials."""

import json as json_module
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import cyclopts
from cyclopts import Parameter

from mnemoscope.spec import LETTERS
from mnemoscope.store.maintenance import Repair, export, prune, repair, verify
from mnemoscope.store.query import list_settings
from mnemoscope.store.schema import NOWHERE, default_path
from mnemoscope.store.trials import Store
from mnemoscope.ui.cli.options import STORE, Yes, count
from mnemoscope.ui.cli.output import deliver, echo, number, table

store = cyclopts.App(
    name="store", help="List, export, verify, repair and prune stored trials.", help_flags=["--help", "-h"]
)
Where = Annotated[
    list[str] | None,
    Parameter(
        help="only trials that meet a condition such as vocab=512, kind=facts or status=crashed; may be repeated",
        negative="",
    ),
]
StoreOption = Annotated[Path | None, Parameter(name="--store", help=STORE.help)]
Json = Annotated[bool, Parameter(negative="", help="print one JSON object instead of a table")]


def exists(path: Path | None) -> bool:
    """Whether there is a store to open; a path that the user names has to exist."""
    return path is not None or default_path().exists()


@contextmanager
def open_store(path: Path | None, *, writing: bool = False) -> Iterator[Store]:
    """The store at `path`, or the user's own; an empty one if that does not exist yet."""
    with Store(path, writing=writing) if exists(path) else Store(NOWHERE) as opened:
        yield opened


@store.command(name="list")
def list_(
    *,
    where: Where = None,
    most: Annotated[int, count(1, 10**9, "how many settings to show")] = 50,
    path: StoreOption = None,
    json: Json = False,
) -> int:
    """List the settings that have trials, with their mean accuracy."""
    with open_store(path) as opened:
        content = {"settings": list_settings(opened, where or [], most), "trials": opened.count(checked=False)}
    deliver(content, json, show_settings)
    return 0


def show_settings(content: dict[str, Any]) -> None:
    """The settings as a table."""
    rows = [
        (
            row["id"],
            _short(row["canonical"]),
            f"{row['trials']}",
            f"{row['crashed'] or ''}",
            number(row["accuracy"]),
            f"{row['seconds']:.1f}",
        )
        for row in content["settings"]
    ]
    echo(table(("id", "setting", "trials", "crashed", "accuracy", "seconds"), rows, left=("id", "setting")))
    echo(f"{content['trials']:,} trials in all, {len(rows)} settings shown")


def _short(canonical: str) -> str:
    """A setting in short: V=64 d=40 L=4 N=87, then the fields that are not at their defaults."""
    fields = json_module.loads(canonical)
    sizes = [f"{letter}={fields[name]}" for name, letter in LETTERS.items() if name in fields]
    others = [f"{name}={value}" for name, value in fields.items() if name not in LETTERS and name != "kind"]
    return " ".join(sizes + others)


@store.command(name="export")
def export_(
    out: Annotated[Path, Parameter(help="the file to write, .parquet or .csv")],
    *,
    where: Where = None,
    path: StoreOption = None,
    json: Json = False,
) -> int:
    """Write one row a trial, with its whole setting, into a Parquet or CSV file."""
    with open_store(path) as opened:
        trials = export(opened, out, where or [])
    deliver({"path": str(out), "trials": trials}, json, lambda _: print(f"{trials:,} trials: {out}"))
    return 0


@store.command(name="verify")
def verify_(*, path: StoreOption = None, json: Json = False) -> int:
    """Check the file, and that every record matches its key. Exit status 1 if not."""
    with open_store(path) as opened:
        trials, faults = verify(opened)
    lines = [f"{trials:,} trials, {len(faults)} faults", *(f"  {fault}" for fault in faults[:20])]
    deliver({"trials": trials, "faults": faults}, json, lambda _: print("\n".join(lines)))
    return 1 if faults else 0


@store.command(name="repair")
def repair_(*, path: StoreOption = None, json: Json = False) -> int:
    """Move damaged rows aside, and list them. Sound rows stay, and nothing is lost.

    Damaged rows go to a table of their own in the store. A file that SQLite can no longer read is kept beside the store
    under another name, and its sound rows take its place.
    """
    done = repair(path or default_path()) if exists(path) else Repair(0, [], None)
    moved = None if done.moved is None else str(done.moved)
    lines = [f"{done.trials:,} sound trials, {len(done.faults)} faults moved aside"]
    lines += [f"  {fault}" for fault in done.faults]
    lines += [] if moved is None else [f"the damaged file: {moved}"]
    data = {"trials": done.trials, "faults": done.faults, "moved": moved}
    deliver(data, json, lambda _: print("\n".join(lines)))
    return 0


@store.command(name="prune")
def prune_(
    *,
    where: Where = None,
    old: Annotated[bool, Parameter(negative="", help="trials computed by an earlier version of the numerics")] = False,
    yes: Yes = False,
    path: StoreOption = None,
    json: Json = False,
) -> int:
    """Remove trials that meet all conditions, or those of an earlier numerics version."""
    with open_store(path, writing=True) as opened:
        trials = prune(opened, where or [], old=old, really=yes)
    outcome = "removed" if yes else "would be removed; do it with --yes"
    deliver({"trials": trials, "removed": yes}, json, lambda _: print(f"{trials:,} trials {outcome}"))
    return 0
