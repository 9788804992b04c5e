"""Paper A, after paper B: random embeddings in superposition hold more than orthogonal ones."""

from collections.abc import Sequence
from typing import Any

from mnemoscope.spec import Retrieval
from mnemoscope.studies.base import Bench, Judgement, Numbers, Size, Study
from mnemoscope.studies.panels import draw_estimates, finish, log_axes
from mnemoscope.studies.seed_means import pool_rows, run_settings, spread

DIM: dict[Size, int] = {"quick": 64, "full": 256}
# V over d; at most 1 for orthonormal embeddings.
RATIOS: dict[Size, tuple[int, ...]] = {"quick": (1, 2, 4), "full": (1, 2, 4, 8, 16)}
LENGTH: dict[Size, int] = {"quick": 8, "full": 16}
# Enough for both kinds of embeddings.
SAMPLES_A_FACT = 64
SEEDS: dict[Size, int] = {"quick": 12, "full": 12}


def measure(size: Size, bench: Bench) -> Numbers:
    """Facts named, V times accuracy, with the same number of parameters."""
    d = DIM[size]
    base = Retrieval(vocab=d, dim=d, length=LENGTH[size], samples=SAMPLES_A_FACT * d)
    specs = [base.replace(embedding="orthonormal")]
    specs += [base.replace(vocab=d * ratio, samples=SAMPLES_A_FACT * d * ratio) for ratio in RATIOS[size]]
    rows = []
    for spec, trials in zip(specs, run_settings(bench, specs, SEEDS[size]), strict=True):
        facts = [spec.vocab * (trial.accuracy or 0.0) for trial in trials]
        rows.append({"law": spec.embedding, "vocab": spec.vocab, "facts": facts})
    return {"dim": d, "rows": rows}


def pool(bases: Sequence[Numbers]) -> list[Numbers]:
    """Mean facts over the seeds of all bases."""
    return [{**row, "facts": spread(row["facts"])} for row in pool_rows(bases, "facts")]


def say(facts: Numbers) -> str:
    """A number of facts with its interval."""
    return f"{facts['mean']:.1f} [{facts['low']:.1f}, {facts['high']:.1f}]"


def judge_all(bases: Sequence[Numbers]) -> Judgement:
    """Compare facts in superposition with those that orthonormal embeddings hold."""
    frame, *random = pool(bases)
    text = f"d = {bases[0]['dim']}: orthonormal {say(frame['facts'])} facts; random " + ", ".join(
        f"{say(row['facts'])} of V = {row['vocab']:,}" for row in random
    )
    crowded = [row["facts"] for row in random if row["vocab"] > bases[0]["dim"]]
    above = any(facts["low"] > frame["facts"]["high"] for facts in crowded)
    return Judgement.by(text, supported=above, refuted=all(facts["high"] < frame["facts"]["low"] for facts in crowded))


def draw(numbers: Numbers, figure: Any) -> None:
    """Facts named against facts trained on."""
    axes = figure.add_subplot()
    frame, *random = pool([numbers])
    x = [row["vocab"] for row in random]
    draw_estimates(axes, x, [row["facts"] for row in random], label="random embeddings", fmt="o-")
    axes.axhline(frame["facts"]["mean"], color="C1", linestyle="--", label="orthonormal embeddings, V = d")
    axes.plot(x, x, color="black", linewidth=0.6, linestyle=":", label="all of them")
    log_axes(axes, x, [x[-1], *(row["facts"]["mean"] for row in random)])
    finish(axes, f"facts to store, V (d = {numbers['dim']})", "facts named, V times accuracy")


STUDY = Study(
    id="a-superposition",
    revision=1,
    source="paper A (statement)",
    place="orthogonal embeddings are not capacity-optimal",
    statement="Random embeddings in superposition, d < V, hold more facts than orthogonal ones with as many "
    "parameters.",
    expected="more than d facts named in d dimensions",
    rule="Facts named, V times accuracy, at the same d and with as many samples a fact (64), over the seeds of all "
    "bases. Supported if for some V > d the 95 % interval of random embeddings lies above that of orthonormal ones at "
    "V = d, refuted if for every V > d it lies below.",
    measure=measure,
    draw=draw,
    judge_all=judge_all,
)
