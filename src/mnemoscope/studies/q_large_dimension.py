"""A reviewer's question about paper A: why do three steps suffice when d > V?"""

from typing import Any

from mnemoscope.report.canvas import plain_log_ticks
from mnemoscope.spec import Retrieval
from mnemoscope.studies.base import Bench, Judgement, Numbers, Size, Study
from mnemoscope.studies.exponents import critical_points, draw_critical
from mnemoscope.theory.bound import coverage_samples

VOCAB: dict[Size, int] = {"quick": 96, "full": 512}
# d over V.
RATIOS: dict[Size, tuple[float, ...]] = {
    "quick": (0.5, 1.0, 2.0),
    "full": (0.25, 0.5, 1.0, 2.0, 4.0),
}
LENGTH: dict[Size, int] = {"quick": 16, "full": 32}


def measure(size: Size, bench: Bench) -> Numbers:
    """Critical N over d, beside what any learner needs: to have seen half of the tokens."""
    V = VOCAB[size]
    specs = [
        Retrieval(vocab=V, dim=round(V * ratio), length=LENGTH[size], samples=2)
        for ratio in RATIOS[size]
    ]
    return {
        "vocab": V, "seen": coverage_samples(specs[0], 0.5), "rows": critical_points(bench, specs),
    }  # fmt: skip


def judge(numbers: Numbers) -> Judgement:
    """At the largest d, is little needed beyond having seen the tokens?"""
    rows, seen = [one for one in numbers["rows"] if one["samples"]], numbers["seen"]
    said = "critical N over what having seen half of the tokens takes: " + ", ".join(
        f"{one['samples'] / seen:.2f} at d = {one['dim'] / numbers['vocab']:.2g} V" for one in rows
    )
    if len(rows) < len(numbers["rows"]):
        return Judgement(said, "inconclusive")
    last = rows[-1]
    if last["low"] > 2 * seen:
        return Judgement(said, "refuted")
    return Judgement(said, "supported" if last["high"] < 2 * seen else "inconclusive")


def draw(numbers: Numbers, figure: Any) -> None:
    """Critical N against d."""
    axes = figure.add_subplot()
    rows = [one for one in numbers["rows"] if one["samples"]]
    x, y = [one["dim"] for one in rows], [one["samples"] for one in rows]
    draw_critical(axes, "dim", rows, "three steps")
    axes.axhline(numbers["seen"], color="black", linewidth=0.8, linestyle=":",
                 label="half of the tokens seen")  # fmt: skip
    axes.axvline(numbers["vocab"], color="black", linewidth=0.6, label="d = V")
    plain_log_ticks(axes, "x", x[0], x[-1])
    plain_log_ticks(axes, "y", min([*y, numbers["seen"]]), max(y))
    axes.set_xlabel("dimension, d")
    axes.set_ylabel("critical N")
    axes.legend(fontsize=7)


STUDY = Study(
    id="q-large-dimension",
    source="review",
    place="why do three steps suffice when d > V?",
    statement="Three steps suffice when d > V because interference is gone: what is left to do "
    "is to see every token once.",
    expected="critical N within a factor of two of what any learner needs",
    rule="Critical N (accuracy 0.5) at the largest d over the N at which half of the tokens have "
    "been seen. Supported if its 95 % interval lies below 2, refuted if it lies above.",
    measure=measure,
    judge=judge,
    draw=draw,
)
