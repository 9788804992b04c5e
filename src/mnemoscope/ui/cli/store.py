"""`mnemoscope store`: list, export, verify, repair and prune stored trials."""

import json as json_module
from pathlib import Path
from typing import Annotated, Any

import cyclopts
from cyclopts import Parameter

from mnemoscope.spec import LETTERS
from mnemoscope.store.maintenance import Repair, export, prune, repair, verify
from mnemoscope.store.query import count_settings, list_settings
from mnemoscope.store.schema import NOWHERE, default_path
from mnemoscope.store.trials import Store
from mnemoscope.ui.cli.options import STORE, Json, Yes, count, flag
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


def exists(path: Path | None) -> bool:
    """Whether there is a store to open; a path that the user names has to exist."""
    return path is not None or default_path().exists()


def open_store(path: Path | None, *, writing: bool = False) -> Store:
    """The store at `path`, or the user's own; an empty one if that does not exist yet."""
    return Store(path, writing=writing) if exists(path) else Store(NOWHERE)


@store.command(name="list")
def list_(
    *,
    where: Where = None,
    most: Annotated[int, count(1, 10**9, "how many settings to show")] = 50,
    path: StoreOption = None,
    json: Json = False,
) -> int:
    """List the settings that have trials, with their mean accuracy. Example:

    `mnemoscope store list --where vocab=512`
    """
    with open_store(path) as opened:
        content = {
            "settings": list_settings(opened, where or [], most),
            "of": count_settings(opened, where or []),
            "trials": opened.count(checked=False),
        }
    return deliver(content, json, show_settings)


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
    more = "" if content["of"] <= len(rows) else "; --most shows more"
    echo(f"{content['trials']:,} trials in all; {len(rows):,} of {content['of']:,} settings shown{more}")


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
    """Write one row per trial, with its whole setting, into a Parquet or CSV file. Example:

    `mnemoscope store export trials.csv --where kind=retrieval`
    """
    with open_store(path) as opened:
        trials = export(opened, out, where or [])
    return deliver({"path": str(out), "trials": trials}, json, lambda _: print(f"{trials:,} trials: {out}"))


@store.command(name="verify")
def verify_(*, path: StoreOption = None, json: Json = False) -> int:
    """Check the file, and that every record matches its key. Exit status 1 if not. Example:

    `mnemoscope store verify`
    """
    with open_store(path) as opened:
        trials, faults = verify(opened)
    lines = [f"{trials:,} trials, {len(faults)} faults", *(f"  {fault}" for fault in faults[:20])]
    deliver({"trials": trials, "faults": faults}, json, lambda _: print("\n".join(lines)))
    return 1 if faults else 0


@store.command(name="repair")
def repair_(*, path: StoreOption = None, json: Json = False) -> int:
    """Move damaged rows aside, and list them. Sound rows stay, and nothing is lost.

    Damaged rows go to a table of their own in the store. A file that SQLite can no longer read is kept beside the store
    under another name, and its sound rows take its place. Example:

    `mnemoscope store repair`
    """
    done = repair(path or default_path()) if exists(path) else Repair(0, [], None)
    moved = done.moved and str(done.moved)
    lines = [f"{done.trials:,} sound trials, {len(done.faults)} faults moved aside"]
    lines += [f"  {fault}" for fault in done.faults] + ([f"the damaged file: {moved}"] if moved else [])
    data = {"trials": done.trials, "faults": done.faults, "moved": moved}
    return deliver(data, json, lambda _: print("\n".join(lines)))


@store.command(name="prune")
def prune_(
    *,
    where: Where = None,
    old: Annotated[bool, flag("trials computed by an earlier version of the numerics")] = False,
    yes: Yes = False,
    path: StoreOption = None,
    json: Json = False,
) -> int:
    """Remove trials that meet all conditions, or those of an earlier numerics version. Example:

    `mnemoscope store prune --where status=crashed`
    """
    with open_store(path, writing=True) as opened:
        trials = prune(opened, where or [], old=old, really=yes)
    outcome = "removed" if yes else "would be removed; add --yes to remove them"
    return deliver({"trials": trials, "removed": yes}, json, lambda _: print(f"{trials:,} trials {outcome}"))
