"""`mnemoscope laws`: how each noise scales, and which one binds where."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from mnemoscope.spec import Trigger
from mnemoscope.theory.laws import OVERLAP, regime_map
from mnemoscope.ui.cli.options import Json, choice, count, number
from mnemoscope.ui.cli.output import echo, print_json, table
from mnemoscope.ui.figures.regimes import draw_regimes


def laws(
    *,
    length_power: Annotated[float, number(0, 1, "c in L = V^c, from 0 to 1")] = 0.5,
    trigger: Annotated[Trigger, choice(Trigger, "where the trigger vector enters")] = "keys",
    width_power: Annotated[
        float | None, number(0, 3, "w in m = V^w, for the attention-MLP model [default: no MLP]")
    ] = None,
    order: Annotated[int, count(1, 20, "lowest Hermite order of the MLP's activation: 1 for relu, 3 for hermite3")] = 1,
    out: Annotated[Path | None, Parameter(help="also draw the map into this file (.png, .svg or .pdf)")] = None,
    json: Json = False,
) -> int:
    """Show the scaling laws, and the map of which one binds.

    The map's plane is (log_V d, log_V N) for sequences of length V^c: leading powers only, without constants and
    logarithms. `predict` has those. Example:

    `mnemoscope laws --length-power 0.75`
    """
    c, w = length_power, width_power
    regimes = regime_map(c, trigger=trigger, width=w, order=order)
    known = (*regimes.laws, OVERLAP)
    if out is not None:
        fine = regime_map(c, trigger=trigger, width=w, order=order, columns=801, rows=601)
        draw_regimes(fine, out)
    if json:
        print_json(
            {
                "laws": [
                    {
                        "name": law.name,
                        "powers": law.powers,
                        "samples": law.critical("samples"),
                        "dim": law.critical("dim"),
                        "words": law.words,
                    }
                    for law in known
                ],
                "length_power": c,
                "width_power": w,
                "dim": regimes.dim.tolist(),
                "samples": regimes.samples.tolist(),
                "binding": [["recall" if at < 0 else regimes.laws[at].name for at in row] for row in regimes.binding],
                "path": None if out is None else str(out),
            }
        )
        return 0
    axes = {"V": "vocab", "d": "dim", "L": "length", "N": "samples", "m": "width"}
    rows = []
    for law in known:
        powers = (f"{law.powers[axis]:g}" if axis in law.powers else "" for axis in axes.values())
        rows.append((law.name, law.letter if law in regimes.laws else "", *powers, law.words))
    columns = ("law", "on the map", *axes, "recall needs")
    echo(table(columns, rows, left=("law", "recall needs"), title="Noise over signal"))
    model = "" if w is None else f", m = V^{w:g}"
    echo(f"Which one binds, L = V^{c:g}{model} (a dot: none, recall)\n\n{regimes.text()}")
    if out is not None:
        echo(f"\ndrawn: {out}")
    return 0
