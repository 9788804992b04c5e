"""The scaling laws of each noise, and a map of which one binds."""

from dataclasses import dataclass
from typing import Any, ClassVar

from mnemoscope.experiments.drawable import Drawable
from mnemoscope.experiments.tabular import Tabular
from mnemoscope.spec import LETTERS, Trigger
from mnemoscope.spec.summary import Summary
from mnemoscope.theory.laws import OVERLAP, Law, RegimeMap, regime_map


@dataclass(frozen=True, repr=False)
class LawMap(Drawable, Tabular):
    """The laws, and which of them binds over log_V d and log_V N, for sequences of length V^length_power."""

    figure: ClassVar[str] = "regimes"
    axes: ClassVar[tuple[str, ...]] = ("samples", "dim")
    regimes: RegimeMap
    width_power: float | None

    @property
    def laws(self) -> tuple[Law, ...]:
        """Every law, the one of overlaps last: it is not on the map."""
        return *self.regimes.laws, OVERLAP

    @property
    def binding(self) -> list[list[str]]:
        """The name of the law that binds; rows follow log_V N, columns log_V d."""
        laws = self.regimes.laws
        return [["recall" if at < 0 else laws[at].name for at in row] for row in self.regimes.binding]

    def records(self) -> list[dict[str, Any]]:
        """A row for each point of the map."""
        regimes = self.regimes
        return [
            {"samples": N, "dim": d, "binding": name}
            for N, row in zip(regimes.samples.tolist(), self.binding, strict=True)
            for d, name in zip(regimes.dim.tolist(), row, strict=True)
        ]

    def summary(self) -> Summary:
        """What each law asks for."""
        rows = tuple((law.name.replace("_", " "), *_powers(law), law.words) for law in self.laws)
        width = "" if self.width_power is None else f", m = V^{self.width_power:g}"
        title = f"noise over signal as a power law, L = V^{self.regimes.length:g}{width}"
        return Summary(title, {"laws": f"{len(rows)}"}, ("noise", *LETTERS.values(), "recall needs"), rows)

    def as_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        return {
            "laws": [
                {"name": law.name, "powers": law.powers, "words": law.words}
                | {axis: law.critical(axis) for axis in ("samples", "dim")}
                for law in self.laws
            ],
            "length_power": self.regimes.length,
            "width_power": self.width_power,
            "dim": self.regimes.dim.tolist(),
            "samples": self.regimes.samples.tolist(),
            "binding": self.binding,
        }


def _powers(law: Law) -> list[str]:
    """Its power of each size, empty where it has none."""
    powers = {str(axis): f"{power:g}" for axis, power in law.powers.items()}
    return [powers.get(axis, "") for axis in LETTERS]


def laws(
    length_power: float = 0.5,
    *,
    trigger: Trigger = "keys",
    width_power: float | None = None,
    order: int = 1,
    columns: int = 61,
    rows: int = 25,
) -> LawMap:
    """The laws for sequences of length V^length_power, and a map of so many columns and rows.

    `width_power` is w in m = V^w, for the attention-MLP model, whose activation has the lowest Hermite order `order`.
    """
    shape = {"columns": columns, "rows": rows}
    return LawMap(regime_map(length_power, trigger=trigger, width=width_power, order=order, **shape), width_power)
