"""Paper A: orthogonal embeddings hide the cost of length and overestimate capacity."""

from typing import Any

from mnemoscope.report.canvas import plain_log_ticks
from mnemoscope.spec import Retrieval
from mnemoscope.studies.base import Bench, Judgement, Numbers, Size, Study
from mnemoscope.studies.exponents import critical_points, draw_critical

VOCAB: dict[Size, int] = {"quick": 96, "full": 512}
LENGTHS: dict[Size, tuple[int, ...]] = {"quick": (16, 64, 192), "full": (32, 128, 512, 1024)}


def measure(size: Size, bench: Bench) -> Numbers:
    """Critical N over L at d a little above V, for random and for orthonormal embeddings."""
    V = VOCAB[size]
    specs = [
        Retrieval(vocab=V, dim=V + V // 4, length=length, samples=2, embedding=law)
        for law in ("gaussian", "orthonormal")
        for length in LENGTHS[size]
    ]
    return {"vocab": V, "points": critical_points(bench, specs)}


def judge(numbers: Numbers) -> Judgement:
    """At the longest sequences, and how much each grows from the shortest."""
    known = [one for one in numbers["points"] if one["samples"]]
    rows = {law: [one for one in known if one["law"] == law] for law in ("gaussian", "orthonormal")}
    said = "; ".join(
        f"{law}: " + ", ".join(f"N = {one['samples']:,.0f} at L = {one['length']}" for one in some)
        for law, some in rows.items()
    )
    if len(known) < len(numbers["points"]):
        return Judgement(said, "inconclusive")
    random, frame = rows["gaussian"][-1], rows["orthonormal"][-1]
    if random["high"] < frame["low"]:
        return Judgement(said, "refuted")
    growth = [some[-1]["samples"] / some[0]["samples"] for some in rows.values()]
    apart = random["low"] > frame["high"] and growth[0] > growth[1]
    return Judgement(said, "supported" if apart else "inconclusive")


def draw(numbers: Numbers, figure: Any) -> None:
    """Critical N against L."""
    axes = figure.add_subplot()
    known = [one for one in numbers["points"] if one["samples"]]
    for law, color in (("gaussian", "C0"), ("orthonormal", "C1")):
        some = [one for one in known if one["law"] == law]
        draw_critical(axes, "length", some, law, color)
    lengths, samples = ([one[key] for one in known] for key in ("length", "samples"))
    plain_log_ticks(axes, "x", min(lengths), max(lengths))
    plain_log_ticks(axes, "y", min(samples), max(samples))
    axes.set_xlabel("length, L")
    axes.set_ylabel("critical N")
    axes.legend(fontsize=7)


STUDY = Study(
    id="a-orthogonal",
    source="paper A (statement)",
    place="comparison with orthogonal embeddings",
    statement="Orthogonal embeddings decouple N, d and L, and so overestimate capacity.",
    expected="critical N grows less with L than for random embeddings of the same dimension",
    rule="Critical N (accuracy 0.5) at d = 1.25 V. Supported if at the longest sequences random "
    "embeddings need more samples than orthonormal ones, 95 % intervals apart, and their N grows "
    "by a larger factor from the shortest. Refuted if they need fewer, intervals apart.",
    measure=measure,
    judge=judge,
    draw=draw,
)
