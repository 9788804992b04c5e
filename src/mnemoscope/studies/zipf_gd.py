r"""Paper I: unequal frequencies and overlapping embeddings make the loss of gradient descent oscillate at large rates.

A linear memory whose items share few answers, d = N, trained on all items. The loss can then be brought to zero, and
larger rates bring it down faster, through spikes. How far the loss rises in all (the sum of its rises over the steps),
and its end, are the measures; they are ours, as are the rates.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mnemoscope.experiments.loss_curves import follow
from mnemoscope.spec import Memory
from mnemoscope.spec.names import Embedding
from mnemoscope.studies.base import BASES, Bench, Judgement, Numbers, Power, Size, Study
from mnemoscope.studies.panels import finish
from mnemoscope.studies.power import Draw, rehearse
from mnemoscope.studies.seed_means import pool_rows, show, spread

ITEMS: dict[Size, int] = {"quick": 32, "full": 128}
STEPS: dict[Size, int] = {"quick": 300, "full": 1200}
SEEDS: dict[Size, int] = {"quick": 8, "full": 8}
ANSWERS = 8
SMALL, LARGE = 32.0, 512.0
# Embeddings, frequencies and rate of each training, by name.
CASES: dict[str, tuple[Embedding, str, float]] = {
    "zipf, overlaps, large rate": ("gaussian", "zipf:1", LARGE),
    "zipf, overlaps, small rate": ("gaussian", "zipf:1", SMALL),
    "uniform, overlaps, large rate": ("gaussian", "uniform", LARGE),
    "zipf, no overlaps, large rate": ("orthonormal", "zipf:1", LARGE),
}
FIRST, *OTHERS = CASES


def measure(size: Size, bench: Bench) -> Numbers:
    """Every seed's sum of rises and the logarithm of its last loss; the course of the first seed, to draw."""
    N, rows = ITEMS[size], []
    for name, (embedding, frequencies, lr) in CASES.items():
        spec = Memory(
            items=N,
            dim=N,
            outputs=ANSWERS,
            method="trained",
            optimiser="gd",
            lr=lr,
            embedding=embedding,
            frequencies=frequencies,
        )
        courses = [follow(spec, seed, range(STEPS[size])).loss for seed in range(bench.seed, bench.seed + SEEDS[size])]
        rises = [float(np.maximum(0, np.diff(loss)).sum()) for loss in courses]
        ends = [float(np.log(max(loss[-1], 1e-12))) for loss in courses]
        rows.append({"case": name, "rises": rises, "ends": ends, "course": courses[0].tolist()})
    return {"rows": rows}


def gaps(rows: Sequence[Mapping[str, Any]]) -> dict[str, Numbers]:
    """How much more the loss rises in the first case than in each other, and how much lower it ends, paired by seed."""
    by_case = {row["case"]: row for row in rows}
    first = by_case[FIRST]
    found = {
        f"more rises than {name}": spread(np.subtract(first["rises"], by_case[name]["rises"]).tolist())
        for name in OTHERS
    }
    slow = by_case["zipf, overlaps, small rate"]
    return {**found, "ln loss below the small rate's": spread(np.subtract(slow["ends"], first["ends"]).tolist())}


def judge_all(all_numbers: Sequence[Numbers]) -> Judgement:
    """Every gap has to be above 0."""
    found = gaps(pool_rows(all_numbers, "rises", "ends"))
    text = f"{FIRST}: " + "; ".join(f"{name} {show(row)}" for name, row in found.items())
    return Judgement.by(
        text,
        supported=all(row["low"] > 0 for row in found.values()),
        refuted=any(row["high"] <= 0 for row in found.values()),
    )


def power(size: Size) -> Power:
    """The power if the first case alone oscillates, and if another does as much or the rate gains nothing."""

    def drawn(rises: Mapping[str, float], gain: float = 2.0) -> Draw:
        def base(rng: np.random.Generator) -> Numbers:
            rows = []
            for name in CASES:
                each = np.abs(rng.normal(rises.get(name, 0.0), 0.3, SEEDS[size])).tolist()
                end = -7.0 + (gain if name == "zipf, overlaps, small rate" else 0.0)
                rows.append({"case": name, "rises": each, "ends": rng.normal(end, 0.3, SEEDS[size]).tolist()})
            return {"rows": rows}

        return lambda rng: [base(rng) for _ in range(BASES[size])]

    alone = {FIRST: 1.5}
    rivals = {f"{name} as much": drawn({**alone, name: 1.5}) for name in OTHERS}
    return rehearse(
        judge_all,
        drawn(alone),
        {**rivals, "no gain by the rate": drawn(alone, 0.0)},
        note="sums of rises scatter over seeds by 0.3, of 1.5, and logarithms of the last loss by 0.3",
    )


def draw(numbers: Numbers, figure: Any) -> None:
    """The loss of one seed in every case."""
    axes = figure.add_subplot()
    for row in numbers["rows"]:
        axes.plot(np.maximum(row["course"], 1e-6), label=row["case"], linewidth=1.0)
    axes.set_yscale("log")
    finish(axes, "step", "loss")


STUDY = Study(
    id="zipf-gd",
    revision=1,
    source="paper I (abstract)",
    place="imbalance and correlated embeddings lead to oscillatory transitory regimes, more pronounced with large step "
    "sizes, which speed up the dynamics; the measures and sizes are ours",
    statement="Unequal frequencies and overlapping embeddings make the loss of gradient descent oscillate at large "
    "rates, which nevertheless end lower.",
    expected="more rises of the loss with zipf items, with overlaps and with the large rate, and a lower end with it",
    rule="The sum of the loss's rises over all steps: with zipf items, Gaussian embeddings and the large rate, less "
    "the same with uniform items, with an orthonormal frame, or with the small rate; and the logarithm of the last "
    "loss at the small rate less that at the large one. Paired by seed, over all base seeds' seeds. Supported if the "
    "95 % intervals of all four lie above 0, refuted if one lies at 0 or below.",
    measure=measure,
    judge_all=judge_all,
    draw=draw,
    power=power,
)
