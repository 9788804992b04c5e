"""Exponents of a critical N over a grid of settings, beside theory's on the same points."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from mnemoscope.experiments.critical import critical_many
from mnemoscope.experiments.fit import fit
from mnemoscope.fields import Measure
from mnemoscope.report.canvas import plain_log_ticks
from mnemoscope.spec import LETTERS, Retrieval
from mnemoscope.studies.base import Bench, Judgement, Numbers, Size, Source, Study, Verdict

Axes = Sequence[tuple[str, Sequence[int]]]
# How far a measured exponent may be from leading order: what finite sizes do to a power.
FINITE = 0.5


def measure_exponents(
    bench: Bench, base: dict[str, Any], axes: Axes, *, measure: Measure = "accuracy",
    log_of: str | None = None, tolerance: float = 0.1, most_seeds: int = 32,
) -> Numbers:  # fmt: skip
    """The critical N of every point of the grid, and the powers of the axes in it."""
    made = fit(
        base, axes, "samples", measure=measure, log_of=log_of, tolerance=tolerance,
        most_seeds=most_seeds, first_seed=bench.seed, **bench.tools,
    )  # fmt: skip
    told = made.as_dict()
    said = {one["axis"]: one["value"] for one in told["predicted"] or ()}
    forms = told["forms"]
    return {
        "exponents": [{**one, "predicted": said.get(one["axis"])} for one in told["exponents"]],
        "forms": None if forms is None else forms["verdict"],
        "criterion": None if forms is None else forms["criterion"],
        "points": told["points"],
        "left_out": len(told["left_out"]),
    }


def critical_points(bench: Bench, specs: Sequence[Retrieval]) -> list[Numbers]:
    """The critical N of each setting, found without theory's help."""
    found = critical_many(
        specs, "samples", ranges=[(max(1, spec.vocab // 16), None) for spec in specs],
        use_theory=False, first_seed=bench.seed, **bench.tools,
    )  # fmt: skip
    return [
        {"law": one.spec.embedding, "dim": one.spec.dim, "length": one.spec.length,
         "samples": one.estimate, "low": one.low, "high": one.high, "status": one.status}
        for one in found
    ]  # fmt: skip


def draw_critical(
    axes: Any, along: str, points: Sequence[Numbers], label: str, color: str = "C0"
) -> None:
    """Critical N with its interval along one size."""
    y = [one["samples"] for one in points]
    bars = [[one["samples"] - one["low"] for one in points],
            [one["high"] - one["samples"] for one in points]]  # fmt: skip
    axes.errorbar([one[along] for one in points], y, yerr=bars, fmt="o-", capsize=2, color=color,
                  label=label)  # fmt: skip


def _known(numbers: Numbers) -> bool:
    """Whether the points were enough for exponents."""
    return all(one["value"] is not None for one in numbers["exponents"])


def say_exponents(numbers: Numbers) -> str:
    """The exponents in one line."""
    if not _known(numbers):
        return f"no exponents: {len(numbers['points'])} points with a crossing are too few"
    parts = []
    for one in numbers["exponents"]:
        said = "" if one["predicted"] is None else f", theory {one['predicted']:.2f}"
        letter = LETTERS.get(one["axis"], one["axis"])
        parts.append(f"{letter}^{one['value']:.2f} [{one['low']:.2f}, {one['high']:.2f}{said}]")
    return f"critical N goes as {' '.join(parts)} over {len(numbers['points'])} points"


def judge_leading(numbers: Numbers, leading: dict[str, float]) -> Verdict:
    """Supported if every power is within FINITE of leading order and theory's lies in its interval.

    Refuted if an interval lies further than FINITE from leading order altogether.
    """
    if not _known(numbers):
        return "inconclusive"
    fine = True
    for one in numbers["exponents"]:
        aim = leading[one["axis"]]
        if one["low"] > aim + FINITE or one["high"] < aim - FINITE:
            return "refuted"
        said = one["predicted"]
        covered = said is not None and one["low"] - 0.1 <= said <= one["high"] + 0.1
        fine = fine and covered and abs(one["value"] - aim) <= FINITE
    return "supported" if fine else "inconclusive"


def law_study(
    *, id: str, source: Source, place: str, statement: str, expected: str, axes: dict[Size, Axes],
    leading: dict[str, float], measure: Measure,
) -> Study:  # fmt: skip
    """A study of one claimed power law of the critical N, and nothing else."""
    return Study(
        id=id, source=source, place=place, statement=statement, expected=expected,
        rule="Powers of L, V and d in the critical N. Supported if each is within 0.5 of the "
        "claimed one and theory's power on the same points lies in its 95 % interval (+-0.1). "
        "Refuted if an interval lies further than 0.5 from the claimed power.",
        measure=lambda size, bench: measure_exponents(bench, {}, axes[size], measure=measure),
        judge=lambda numbers: Judgement(say_exponents(numbers), judge_leading(numbers, leading)),
        draw=lambda numbers, figure: draw_exponents(numbers, figure, leading),
    )  # fmt: skip


def draw_exponents(numbers: Numbers, figure: Any, leading: dict[str, float] | None = None) -> None:
    """Measured critical N against theory's, and the powers with their intervals."""
    left, right = figure.subplots(1, 2)
    known = [one for one in numbers["points"] if one["samples"] and one["predicted"]]
    x = [one["predicted"] for one in known]
    y = [one["samples"] for one in known]
    lows, highs = ([one[key] or one["samples"] for one in known] for key in ("low", "high"))
    bars = [np.subtract(y, lows), np.subtract(highs, y)]
    left.errorbar(x, y, yerr=bars, fmt="o", markersize=3.5, capsize=2)
    if known:
        ends = [min(x + y), max(x + y)]
        left.plot(ends, ends, color="black", linewidth=0.8)
        plain_log_ticks(left, "x", *ends)
        plain_log_ticks(left, "y", min(lows + x), max(highs + x))
    left.set_xlabel("predicted critical N")
    left.set_ylabel("measured critical N")
    rows = numbers["exponents"] if _known(numbers) else []
    for at, one in enumerate(rows):
        low, high = (one[k] if math.isfinite(one[k]) else one["value"] for k in ("low", "high"))
        right.plot([low, high], [at, at], color="C0", linewidth=2)
        right.plot([one["value"]], [at], "o", color="C0", label=None if at else "measured")
        if one["predicted"] is not None:
            name = None if at else "theory, same points"
            right.plot([one["predicted"]], [at], "x", color="C1", markersize=7, label=name)
        if leading is not None:
            name = None if at else "claimed"
            right.plot([leading[one["axis"]]], [at], "|", color="black", markersize=16, label=name)
    right.set_yticks(range(len(rows)), [LETTERS.get(one["axis"], one["axis"]) for one in rows])
    right.set_ylim(-0.7, len(rows) + 0.2)
    right.set_xlabel("power in the critical N")
    right.grid(axis="x", linewidth=0.4)
    if rows:
        right.legend(fontsize=7)
