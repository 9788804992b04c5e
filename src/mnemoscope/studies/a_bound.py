"""Paper A's lower bound: no decoder of the first gradient beats it."""

import math
from typing import Any

from mnemoscope.experiments.validate import compare_bound
from mnemoscope.report.canvas import plain_log_ticks
from mnemoscope.spec import Retrieval
from mnemoscope.studies.base import Bench, Judgement, Numbers, Size, Study

# (V, d, L) of each setting.
SETTINGS: dict[Size, tuple[tuple[int, int, int], ...]] = {
    "quick": ((64, 32, 8), (96, 64, 16), (128, 48, 8)),
    "full": ((128, 64, 16), (256, 96, 16), (256, 128, 64), (512, 128, 32), (512, 256, 64)),
}
SEEDS: dict[Size, int] = {"quick": 4, "full": 6}


def measure(size: Size, bench: Bench) -> Numbers:
    """The N at which decoders name half of the labels, beside the bound."""
    specs = [Retrieval(vocab=V, dim=d, length=L, samples=2) for V, d, L in SETTINGS[size]]
    rows = [
        {
            "vocab": one.spec.vocab, "dim": one.spec.dim, "length": one.spec.length,
            "decoder": one.name.replace("_", " "), "bound": one.predicted,
            "samples": one.observed if math.isfinite(one.observed) else None,
            "error": one.error if math.isfinite(one.error) else None,
        }
        for one in compare_bound(specs, SEEDS[size], "auto", lambda done: None, bench.seed)
    ]  # fmt: skip
    return {"rows": rows}


def judge(numbers: Numbers) -> Judgement:
    """Every decoder above the bound."""
    rows = [one for one in numbers["rows"] if one["samples"]]
    if not rows:
        return Judgement("no decoder reached half of the labels", "inconclusive")
    ratios = [one["samples"] / one["bound"] for one in rows]
    said = f"{len(rows)} critical N, {min(ratios):.2f} to {max(ratios):.2f} times the bound"
    broken = [one for one in rows if one["samples"] + 2 * (one["error"] or 0) < one["bound"]]
    if broken:
        return Judgement(said, "refuted")
    return Judgement(said, "supported" if min(ratios) >= 1 else "inconclusive")


def draw(numbers: Numbers, figure: Any) -> None:
    """Critical N against the bound."""
    axes = figure.add_subplot()
    rows = [one for one in numbers["rows"] if one["samples"]]
    for at, name in enumerate(sorted({one["decoder"] for one in rows})):
        some = [one for one in rows if one["decoder"] == name]
        axes.plot([one["bound"] for one in some], [one["samples"] for one in some], "o",
                  color=f"C{at}", label=name)  # fmt: skip
    values = [one[key] for one in rows for key in ("bound", "samples")]
    ends = min(values), max(values)
    axes.plot(ends, ends, color="black", linewidth=0.8, label="the bound")
    plain_log_ticks(axes, "x", *ends)
    plain_log_ticks(axes, "y", *ends)
    axes.set_xlabel("information bound on N")
    axes.set_ylabel("critical N of a decoder")
    axes.legend(fontsize=7)


STUDY = Study(
    id="a-bound",
    source="ours, after paper A",
    place="lower bound",
    statement="What the first gradient can tell is bounded: whoever sees only it needs at least "
    "so many samples.",
    expected="critical N of every decoder at or above the information bound",
    rule="Matched filter and message passing, the N at which each names half of the labels. "
    "Supported if all are at or above the bound, refuted if one is more than two standard errors "
    "below it.",
    measure=measure,
    judge=judge,
    draw=draw,
)
