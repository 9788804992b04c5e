"""The power laws that a claim has to be told from, and the rule that judges measured powers.

The interval of a measured power has to fit into a box about the claimed one, so a wide interval supports nothing. The
box is narrow enough to hold no rival law. Laws that samples do not enter, overlap and interference, have no critical N,
and so no powers here.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from mnemoscope.experiments.fit import FIRST_GRADIENT
from mnemoscope.spec import LETTERS
from mnemoscope.studies.base import Verdict, all_agree, within
from mnemoscope.theory.laws import LAWS, LEAK

Powers = Mapping[str, float]

# What is measured and fitted, by its key in a point.
VALUES = {"samples": "critical N", "dim": "critical d", "width": "critical m", "noise": "noise over signal"}
# The powers of V, d and L in the critical N, at leading order. The news summary does not mention V.
CRITICAL_SAMPLES: Mapping[str, Powers] = {
    law.name: {axis: powers.get(axis, 0.0) for axis in ("vocab", "dim", "length")}
    for law in (*LAWS, LEAK)
    if (powers := law.critical("samples")) is not None
} | {"first_gradient": FIRST_GRADIENT, "news": {"dim": 1.0, "length": 1.0}}
# The powers in a noise itself, over the signal.
NOISES: Mapping[str, Powers] = {
    law.name: {axis: law.powers.get(axis, 0.0) for axis in ("vocab", "dim", "length", "samples")}
    for law in (*LAWS, LEAK)
}
# The powers of V and d in the critical width m, for one step of the memory behind given attention. The claim is that
# parameters count: m d as V (MLP noise). Rivals: hidden units alone, m as V; a weight for every pair of facts, m d as
# V^2; a dimension that counts twice, m d^2 as V.
CRITICAL_WIDTH: Mapping[str, Powers] = {
    "parameters": {"vocab": 1.0, "dim": -1.0},
    "hidden_units": {"vocab": 1.0, "dim": 0.0},
    "pairs_of_facts": {"vocab": 2.0, "dim": -1.0},
    "dimension_twice": {"vocab": 1.0, "dim": -2.0},
}
# The largest half-width of a box, however far away the nearest rival is.
WIDEST = 0.25


def rivals_of(name: str, laws: Mapping[str, Powers], axes: Collection[str]) -> dict[str, dict[str, float]]:
    """The powers of all other laws on the axes that are varied."""
    return {
        rival: {axis: powers[axis] for axis in axes if axis in powers}
        for rival, powers in laws.items()
        if rival != name
    }


def distance(first: Powers, second: Powers, axes: Collection[str]) -> float:
    """The largest difference between the powers of two laws on any axis."""
    shared = [axis for axis in axes if axis in first and axis in second]
    return max((abs(first[axis] - second[axis]) for axis in shared), default=0.0)


def nearest(claimed: Powers, rivals: Mapping[str, Powers], axes: Collection[str]) -> tuple[str, float]:
    """The rival that is hardest to tell from the claim, and its distance."""
    name = min(rivals, key=lambda rival: distance(claimed, rivals[rival], axes))
    return name, distance(claimed, rivals[name], axes)


def half_width(claimed: Powers, rivals: Mapping[str, Powers], axes: Collection[str]) -> float:
    """The half-width of the box about a law's powers: half the distance to the nearest rival, at most WIDEST."""
    away = nearest(claimed, rivals, axes)[1]
    if away == 0:
        raise ValueError("expected axes that tell the claim from its rivals, got the same powers")
    return min(WIDEST, away / 2)


def judge_powers(rows: Iterable[Mapping[str, Any]], claimed: Powers, half: float) -> Verdict:
    """Judge rows with `axis`, `low`, `high` and theory's power on the same points, `predicted`, or None.

    Supported if every interval lies in its box. Refuted if one lies outside, and also outside a box of the same width
    about theory's power: finite sizes, which theory accounts for, then do not explain it.
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


def say_powers(rows: Sequence[Mapping[str, Any]], letters: Mapping[str, str] = LETTERS) -> str:
    """The powers with their intervals and theory's: V^1.02 [0.90, 1.14, theory 1.00]."""
    parts = []
    for row in rows:
        theory = row.get("predicted")
        beside = "" if theory is None else f", theory {theory:.2f}"
        letter = letters.get(row["axis"], row["axis"])
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
