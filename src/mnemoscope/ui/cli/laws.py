"""`mnemoscope laws`: how each noise scales, and which one binds where."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from mnemoscope.experiments.laws import laws as law_map
from mnemoscope.spec import LETTERS, Trigger
from mnemoscope.theory.laws import OVERLAP, RegimeMap
from mnemoscope.ui.cli.options import Json, choice, count, number
from mnemoscope.ui.cli.output import deliver, echo, table
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
    """Show the scaling laws, and a map of which one binds.

    The map spans log_V d and log_V N, for sequences of length V^c. It shows leading powers only; `predict` has the
    constants and logarithms. Example:

    `mnemoscope laws --length-power 0.75`
    """
    model = {"trigger": trigger, "width_power": width_power, "order": order}

    def draw(_: object, path: Path) -> None:
        draw_regimes(law_map(length_power, **model, columns=801, rows=601), path)

    width = "" if width_power is None else f", m = V^{width_power:g}"
    title = f"Which one binds, L = V^{length_power:g}{width} (a dot: none, recall)"
    return deliver(law_map(length_power, **model), json, lambda result: show(result.regimes, title), out, draw)


def show(regimes: RegimeMap, title: str) -> None:
    """The laws as a table, and the map in characters."""
    rows = []
    for law in (*regimes.laws, OVERLAP):
        powers = (f"{law.powers[axis]:g}" if axis in law.powers else "" for axis in LETTERS)
        rows.append((law.name, law.letter if law in regimes.laws else "", *powers, law.words))
    columns = ("law", "on the map", *LETTERS.values(), "recall needs")
    echo(table(columns, rows, left=("law", "recall needs"), title="Noise over signal"))
    echo(f"{title}\n\n{regimes.text()}")
