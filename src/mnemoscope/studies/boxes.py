"""The verdict on measured powers: an interval has to fit into a box about the claimed power.

So a wide interval never supports anything. A box is narrow enough to hold no rival law
(`rival_laws.half_width`).
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from mnemoscope.spec import LETTERS
from mnemoscope.studies.base import Verdict, all_agree, within


def judge_powers(rows: Iterable[Mapping[str, Any]], claimed: Mapping[str, float], half: float) -> Verdict:
    """Rows have `axis`, `low`, `high` and theory's power on the same points, `predicted`, or None.

    Supported if every interval lies in its box. Refuted if one lies outside, and outside a box as
    wide about theory's power: finite sizes, which theory computes, then do not explain it.
    """
    verdicts: list[Verdict] = []
    for row in rows:
        if row["low"] is None or row["high"] is None:
            return "inconclusive"
        verdict = _in_box(row, claimed[row["axis"]], half)
        theory = row.get("predicted")
        if verdict == "refuted" and theory is not None and _in_box(row, theory, half) != "refuted":
            verdict = "inconclusive"
        verdicts.append(verdict)
    return all_agree(verdicts)


def _in_box(row: Mapping[str, Any], centre: float, half: float) -> Verdict:
    return within(row["low"], row["high"], centre - half, centre + half)


def say_powers(rows: Sequence[Mapping[str, Any]]) -> str:
    """Powers with their intervals and theory's beside: V^1.02 [0.90, 1.14, theory 1.00]."""
    parts = []
    for row in rows:
        theory = row.get("predicted")
        beside = "" if theory is None else f", theory {theory:.2f}"
        letter = LETTERS.get(row["axis"], row["axis"])
        parts.append(f"{letter}^{row['value']:.2f} [{row['low']:.2f}, {row['high']:.2f}{beside}]")
    return " ".join(parts)


def say_rule(half: float, nearest: str, distance: float) -> str:
    """The rule of `judge_powers` in words."""
    rival = nearest.replace("_", " ")
    return (
        f"Supported if the 95 % interval of every power lies within {half:g} of the claimed one; "
        f"the nearest rival law, {rival}, is {distance:g} away. Refuted if an interval lies "
        "outside that box altogether, and outside a box as wide about theory's power on the same "
        "points, so that finite sizes alone refute nothing. What is claimed is leading order, so "
        "that is what is judged; theory's finite-size powers stand beside."
    )
