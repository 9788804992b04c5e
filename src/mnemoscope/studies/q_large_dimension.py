"""A reviewer's question about paper A: why do three steps suffice when d > V?"""

from collections.abc import Sequence
from typing import Any

from mnemoscope.spec import Retrieval
from mnemoscope.studies.base import Bench, Earlier, Judgement, Numbers, Size, Study
from mnemoscope.studies.exponents import critical_points, draw_critical, pool_points
from mnemoscope.studies.panels import finish, log_axes
from mnemoscope.theory.bound import coverage_samples

VOCAB: dict[Size, int] = {"quick": 64, "full": 512}
DIM: dict[Size, int] = {"quick": 128, "full": 2048}
LENGTHS: dict[Size, tuple[int, ...]] = {"quick": (16, 48, 128), "full": (32, 128, 512, 1024)}
LAWS = ("gaussian", "orthonormal")
# Three steps suffice if they need less than this many times what any learner needs.
ENOUGH = 2.0


def measure(size: Size, bench: Bench) -> Numbers:
    """Critical N over L at d > V, beside the N at which half of the tokens have been seen."""
    V, d = VOCAB[size], DIM[size]
    specs = [Retrieval(vocab=V, dim=d, length=L, samples=2, embedding=law) for law in LAWS for L in LENGTHS[size]]
    return {"vocab": V, "dim": d, "seen": coverage_samples(specs[0], 0.5), "points": critical_points(bench, specs)}


def judge_all(bases: Sequence[Numbers]) -> Judgement:
    """Is little needed beyond having seen the tokens, at every length?"""
    points = pool_points([numbers["points"] for numbers in bases], ("law", "length"), "samples")
    V, d, seen = (bases[0][name] for name in ("vocab", "dim", "seen"))
    parts = []
    for law in LAWS:
        own = [point for point in points if point["law"] == law]
        fine = [point["length"] for point in own if point["high"] < ENOUGH * seen]
        parts.append(
            f"{law}: "
            + ", ".join(f"{point['samples'] / seen:.2f} at L = {point['length'] / V:.2g} V" for point in own)
            + (f", enough to L = {max(fine)}" if fine else ", nowhere enough")
        )
    text = f"d = {d / V:.2g} V, critical N over what having seen half of the tokens takes: {'; '.join(parts)}"
    below = len(points) == len(bases[0]["points"]) and all(point["high"] < ENOUGH * seen for point in points)
    return Judgement.by(text, supported=below, refuted=any(point["low"] > ENOUGH * seen for point in points))


def draw(numbers: Numbers, figure: Any) -> None:
    """Critical N against L."""
    axes = figure.add_subplot()
    known = [point for point in numbers["points"] if point["samples"]]
    for at, law in enumerate(LAWS):
        own = [point for point in known if point["law"] == law]
        draw_critical(axes, "length", own, f"{law}, d = {numbers['dim']}", f"C{at}")
    seen = numbers["seen"]
    for times, style in ((1.0, ":"), (ENOUGH, "--")):
        name = "half of the tokens seen" if times == 1 else "twice that"
        axes.axhline(times * seen, color="black", linewidth=0.8, linestyle=style, label=name)
    axes.axvline(numbers["vocab"], color="black", linewidth=0.6, label="L = V")
    log_axes(axes, [point["length"] for point in known], [seen, *(point["samples"] for point in known)])
    finish(axes, "length, L", "critical N")


STUDY = Study(
    id="q-large-dimension",
    revision=2,
    source="review",
    place="why do three steps suffice when d > V?",
    statement="Three steps suffice when d > V, at every length: interference is gone, and what is left to do is to see "
    "the tokens.",
    expected="critical N within a factor of two of what any learner needs, however long sequences are",
    rule="Critical N (accuracy 0.5) at d > V over L, random and orthonormal embeddings, the bases pooled, over the N "
    "at which half of the tokens have been seen. Supported if at every length the 95 % interval lies below 2, refuted "
    "if at one it lies above; up to which length it holds is said.",
    measure=measure,
    draw=draw,
    judge_all=judge_all,
    history=(
        Earlier(
            date="2026-11-18",
            statement="Three steps suffice when d > V because interference is gone: what is left to do is to see every "
            "token once.",
            rule="Critical N (accuracy 0.5) at the largest d over the N at which half of the tokens have been seen. "
            "Supported if its 95 % interval lies below 2, refuted if it lies above.",
            measured="critical N over what having seen half of the tokens takes: 2.00 at d = 0.25 V, 1.01 at d = 0.5 "
            "V, 1.00 at d = 1 V, 1.00 at d = 2 V, 1.00 at d = 4 V",
            verdict="supported",
            reason="It was measured at one short length, L = 32; a-orthogonal, at L = 2 V, said otherwise.",
        ),
    ),
)
