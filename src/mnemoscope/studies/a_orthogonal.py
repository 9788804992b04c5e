"""Paper A: orthogonal embeddings decouple N, d and L, and overestimate capacity.

Orthonormal vectors have the same inner products at every d > V, so their N cannot depend on d. The claim fails if the N
of random ones does not depend on d either, or is not larger.
"""

import math
from collections.abc import Sequence
from typing import Any

from mnemoscope.spec import Retrieval
from mnemoscope.studies.base import Bench, Earlier, Judgement, Numbers, Size, Study
from mnemoscope.studies.exponents import critical_points, draw_critical, pool_points
from mnemoscope.studies.panels import finish
from mnemoscope.ui.figures.canvas import plain_log_ticks, ticks_at

VOCAB: dict[Size, int] = {"quick": 64, "full": 512}
DIMS: dict[Size, tuple[int, ...]] = {"quick": (80, 128), "full": (640, 1024, 2048)}
LENGTHS: dict[Size, tuple[int, ...]] = {"quick": (16, 128), "full": (32, 512, 1024)}
LAWS = ("gaussian", "orthonormal")
# The factor in N from which on a size counts as having an effect.
NOTABLE = 1.25


def measure(size: Size, bench: Bench) -> Numbers:
    """Critical N over d and L, for random and for orthonormal embeddings."""
    V = VOCAB[size]
    specs = [
        Retrieval(vocab=V, dim=d, length=L, samples=2, embedding=law)
        for law in LAWS
        for d in DIMS[size]
        for L in LENGTHS[size]
    ]
    return {"vocab": V, "points": critical_points(bench, specs)}


def ratio_of(more: Numbers, less: Numbers) -> tuple[float, float, float]:
    """The ratio of two critical N, and its 95 % interval."""
    value = math.log(more["samples"] / less["samples"])
    error = math.hypot(*(math.log(point["high"] / point["low"]) / (2 * 1.96) for point in (more, less)))
    return math.exp(value), math.exp(value - 1.96 * error), math.exp(value + 1.96 * error)


def judge_all(bases: Sequence[Numbers]) -> Judgement:
    """Does d change N at the longest sequences, and which embeddings need more samples?"""
    points = pool_points([numbers["points"] for numbers in bases], ("law", "dim", "length"), "samples")
    at = {(point["law"], point["dim"], point["length"]): point for point in points}
    dims, lengths = (sorted({point[axis] for point in bases[0]["points"]}) for axis in ("dim", "length"))
    text = "; ".join(
        f"{law}: "
        + ", ".join(
            f"N = {at[law, d, L]['samples']:,.0f} at d = {d}, L = {L}"
            for d in (dims[0], dims[-1])
            for L in (lengths[0], lengths[-1])
            if (law, d, L) in at
        )
        for law in LAWS
    )
    if len(points) < len(bases[0]["points"]):
        return Judgement(text, "inconclusive")
    longest = lengths[-1]
    # What the smallest d costs against the largest, and random embeddings against orthonormal ones.
    by_dim = {law: ratio_of(at[law, dims[0], longest], at[law, dims[-1], longest]) for law in LAWS}
    by_law = [ratio_of(at["gaussian", d, longest], at["orthonormal", d, longest]) for d in dims]
    text += f"; at L = {longest} the smallest d needs " + ", ".join(
        f"{ratio:.2f} [{low:.2f}, {high:.2f}] times the N of the largest ({law})"
        for law, (ratio, low, high) in by_dim.items()
    )
    _, low, high = by_dim["orthonormal"]
    _, random_low, random_high = by_dim["gaussian"]
    coupled = low > NOTABLE or high < 1 / NOTABLE or random_high < NOTABLE
    decoupled = low > 1 / NOTABLE and high < NOTABLE and random_low > NOTABLE
    overestimated = all(ratio_low > 1 for _, ratio_low, _ in by_law)
    underestimated = any(ratio_high < 1 for _, _, ratio_high in by_law)
    return Judgement.by(text, supported=decoupled and overestimated, refuted=coupled or underestimated)


def draw(numbers: Numbers, figure: Any) -> None:
    """Critical N against d, one line for each length."""
    axes = figure.add_subplot()
    known = [point for point in numbers["points"] if point["samples"]]
    for at, length in enumerate(sorted({point["length"] for point in known})):
        for law, style in (("gaussian", "-"), ("orthonormal", "--")):
            points = [point for point in known if (point["law"], point["length"]) == (law, length)]
            draw_critical(axes, "dim", points, f"{law}, L = {length}", f"C{at}", f"o{style}")
    dims, samples = ([point[key] for point in known] for key in ("dim", "samples"))
    ticks_at(axes, "x", dims)
    plain_log_ticks(axes, "y", min(samples), max(samples))
    finish(axes, f"dimension, d (V = {numbers['vocab']})", "critical N")


STUDY = Study(
    id="a-orthogonal",
    revision=2,
    source="paper A (statement)",
    place="comparison with orthogonal embeddings",
    statement="Orthogonal embeddings decouple N, d and L, and so overestimate capacity.",
    expected="with orthonormal embeddings N does not depend on d, with random ones it does, and they need more",
    rule="Critical N (accuracy 0.5) over d >= V and L, the bases pooled. Supported if at the longest sequences the N "
    "of the smallest d over that of the largest lies within 0.8 to 1.25 for orthonormal embeddings (95 % interval) and "
    "above 1.25 for random ones, and if at every d random ones need more. Refuted if the ratio of orthonormal ones "
    "lies outside 0.8 to 1.25 or that of random ones below 1.25, or if random ones need fewer at some d.",
    measure=measure,
    draw=draw,
    judge_all=judge_all,
    history=(
        Earlier(
            date="2026-11-18",
            rule="Critical N (accuracy 0.5) at d = 1.25 V. Supported if at the longest sequences random embeddings "
            "need more samples than orthonormal ones, 95 % intervals apart, and their N grows by a larger factor from "
            "the shortest. Refuted if they need fewer, intervals apart.",
            measured="gaussian: N = 352 at L = 32, N = 383 at L = 128, N = 2,581 at L = 512, N = 10,439 at L = 1024; "
            "orthonormal: N = 352 at L = 32, N = 352 at L = 128, N = 392 at L = 512, N = 550 at L = 1024",
            verdict="supported",
            reason="The claim is of a coupling with d as well, and d was held.",
        ),
    ),
)
