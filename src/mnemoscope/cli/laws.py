"""`mnemoscope laws`: how each noise scales, and which one binds where."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from rich import box
from rich.console import Console
from rich.table import Table

from mnemoscope.cli.output import print_json
from mnemoscope.cli.setting import read_option
from mnemoscope.fields import between, one_of
from mnemoscope.report.regimes import draw_regimes
from mnemoscope.theory.laws import OVERLAP, laws_for, regime_map


def laws(
    *,
    length_power: Annotated[str, Parameter(help="c in L = V^c, from 0 to 1")] = "0.5",
    trigger: Annotated[str, Parameter(help="keys or additive")] = "keys",
    out: Annotated[
        Path | None, Parameter(help="also draw the map into this file (.png, .svg or .pdf)")
    ] = None,
    json: Annotated[
        bool, Parameter(negative="", help="print one JSON object instead of tables")
    ] = False,
) -> int:
    """Show the scaling laws, and the map of which one binds.

    The map's plane is (log_V d, log_V N) for sequences of length V^c: leading powers alone, no
    constants and no logarithms. `predict` has those.
    """
    c = read_option("length_power", between(0, 1), length_power)
    where = read_option("trigger", one_of("keys", "additive"), trigger)
    made = regime_map(c, trigger=where)
    known = (*laws_for(where), OVERLAP)
    if out is not None:
        draw_regimes(regime_map(c, trigger=where, columns=801, rows=601), out)
    if json:
        print_json(
            {
                "laws": [
                    {"name": law.name, "powers": law.powers, "samples": law.critical("samples"),
                     "dim": law.critical("dim"), "words": law.words}
                    for law in known
                ],
                "length_power": c,
                "dim": made.dim.tolist(),
                "samples": made.samples.tolist(),
                "binding": [
                    ["recall" if at < 0 else made.laws[at].name for at in row]
                    for row in made.binding
                ],
                "path": None if out is None else str(out),
            }
        )  # fmt: skip
        return 0
    console = Console(highlight=False)
    table = Table(title="Noise over signal", box=box.SIMPLE, title_justify="left")
    for name in ("law", "on the map", "V", "d", "L", "N", "recall needs"):
        table.add_column(name, justify="left" if name in ("law", "recall needs") else "right")
    for law in known:
        axes = ("vocab", "dim", "length", "samples")
        powers = (f"{law.powers[axis]:g}" if axis in law.powers else "" for axis in axes)
        table.add_row(law.name, law.letter if law in made.laws else "", *powers, law.words)
    console.print(table)
    console.print(f"Which one binds, L = V^{c:g} (a dot: none, recall)\n\n{made.text()}")
    if out is not None:
        console.print(f"\ndrawn: {out}")
    return 0
