r"""Paper E: one step of Muon gains from larger batches up to a larger batch than one of SGD.

Items have frequencies p_i ~ i^-alpha, and a step is taken on B samples. The abstract has the order of the two critical
batches and no number. Ours: a batch holds items up to ranks of about B^(1/alpha), which the open problem listed for the
paper has as well, and a step stores no more than (Z2) or (Z3) of `theory/one_step.py`. The two are equal at B of about
d^(1/2) for SGD and d^(alpha + 1/2) for Muon. Here the critical batch is that from which a step stores half of what it
stores with the expected gradient.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mnemoscope.experiments.recalled import mean_count, recalled_items
from mnemoscope.spec import Memory
from mnemoscope.spec.optimisers import OneStep
from mnemoscope.studies.base import BASES, Bench, Judgement, Numbers, Power, Size, Study
from mnemoscope.studies.panels import draw_estimates, draw_law, finish, log_axes
from mnemoscope.studies.power import Draw, rehearse
from mnemoscope.studies.seed_means import pool_rows, run_settings, spread
from mnemoscope.theory.one_step import ample_items

DIM: dict[Size, int] = {"quick": 64, "full": 256}
SEEDS: dict[Size, int] = {"quick": 8, "full": 8}
ALPHA = 1.5
BATCHES: dict[Size, tuple[int, ...]] = {
    "quick": tuple(2**k for k in range(1, 18, 2)),
    "full": tuple(2**k for k in range(1, 23)),
}
OPTIMISERS: tuple[OneStep, ...] = ("sgd", "muon")
NAMES = {"sgd": "SGD", "muon": "Muon"}
# Of the items stored with the expected gradient.
SHARE = 0.5
# Muon's critical batch is larger if it is at least this many times SGD's.
LARGER = 2.0


def measure(size: Size, bench: Bench) -> Numbers:
    """Every seed's recalled items by batch, the last with the expected gradient."""
    rows = []
    for optimiser in OPTIMISERS:
        batches = (*BATCHES[size], 0)
        specs = [
            Memory(
                items=ample_items(DIM[size], ALPHA),
                dim=DIM[size],
                method="one-step",
                optimiser=optimiser,
                embedding="gaussian",
                frequencies=f"zipf:{ALPHA:g}",
                batch=batch,
            )
            for batch in batches
        ]
        for batch, trials in zip(batches, run_settings(bench, specs, SEEDS[size]), strict=True):
            rows.append({"optimiser": optimiser, "batch": batch, "each": [recalled_items(trial) for trial in trials]})
    return {"rows": rows}


def critical_batches(rows: Sequence[Mapping[str, Any]], optimiser: str) -> list[float]:
    """Every seed's batch at which it stores SHARE of its own most, between two batches by the logarithm of both."""
    own = [row for row in rows if row["optimiser"] == optimiser]
    most = next(row["each"] for row in own if not row["batch"])
    drawn = sorted((row for row in own if row["batch"]), key=lambda row: row["batch"])
    x = np.log([row["batch"] for row in drawn])
    found = []
    for seed, aim in enumerate(SHARE * np.array(most, float)):
        y = np.log([max(row["each"][seed], 0.5) for row in drawn])
        # The last batch below the aim, and the next.
        below = np.flatnonzero(y < math.log(max(aim, 0.5)))
        at = int(below[-1]) if len(below) else -1
        if at < 0:
            found.append(float(np.exp(x[0])))
        elif at == len(x) - 1:
            found.append(float(np.exp(x[-1])))
        else:
            share = (math.log(aim) - y[at]) / (y[at + 1] - y[at])
            found.append(float(np.exp(x[at] + share * (x[at + 1] - x[at]))))
    return found


def judge_all(all_numbers: Sequence[Numbers]) -> Judgement:
    """By Muon's critical batch over SGD's, paired by seed."""
    rows = pool_rows(all_numbers, "each")
    sgd, muon = (np.log(critical_batches(rows, name)) for name in OPTIMISERS)
    ratio = spread((muon - sgd).tolist())
    low, high = math.exp(ratio["low"]), math.exp(ratio["high"])
    text = (
        f"half is stored from B = {math.exp(sgd.mean()):,.0f} on with SGD and B = {math.exp(muon.mean()):,.0f} with "
        f"Muon, {math.exp(ratio['mean']):.1f} [{low:.1f}, {high:.1f}] times as many"
    )
    return Judgement.by(text, supported=low > LARGER, refuted=high < LARGER)


def power(size: Size) -> Power:
    """The power if counts go as B^(1/alpha) up to their laws, and if both saturate at SGD's batch."""
    dim = DIM[size]
    # Items stored with the expected gradient, about as `opt-one-step` finds them, and the batch that is enough.
    most = {"sgd": 2.0 * dim ** (1 / (2 * ALPHA)), "muon": 0.25 * dim ** (1 + 1 / (2 * ALPHA))}

    def drawn(enough: Mapping[str, float]) -> Draw:
        def base(rng: np.random.Generator) -> Numbers:
            rows = []
            for name in OPTIMISERS:
                for batch in (*BATCHES[size], 0):
                    share = 1.0 if not batch else min(1.0, (batch / enough[name]) ** (1 / ALPHA))
                    logs = rng.normal(0.0, 0.2, SEEDS[size])
                    each = np.maximum(1.0, np.round(most[name] * share * np.exp(logs))).tolist()
                    rows.append({"optimiser": name, "batch": batch, "each": each})
            return {"rows": rows}

        return lambda rng: [base(rng) for _ in range(BASES[size])]

    small, large = 8.0 * dim**0.5, dim ** (ALPHA + 0.5)
    return rehearse(
        judge_all,
        drawn({"sgd": small, "muon": large}),
        {
            "both at SGD's batch": drawn({"sgd": small, "muon": small}),
            "both at Muon's batch": drawn({"sgd": large, "muon": large}),
        },
        note="counts scatter over seeds by 20 % about B^(1/alpha), up to what the expected gradient stores",
    )


def draw(numbers: Numbers, figure: Any) -> None:
    """Recalled items against the batch."""
    axes = figure.add_subplot()
    ends: list[float] = []
    batches = sorted({row["batch"] for row in numbers["rows"] if row["batch"]})
    for color, name in enumerate(OPTIMISERS):
        own = [row for row in numbers["rows"] if row["optimiser"] == name]
        points = {row["batch"]: mean_count(row["each"], 10**9).ends("mean") for row in own}
        draw_estimates(axes, batches, [points[batch] for batch in batches], "mean", NAMES[name], f"C{color}", "o-")
        most = float(points[0]["mean"] or 1.0)
        draw_law(axes, batches, [most] * len(batches), f"{NAMES[name]}, expected gradient", "--" if color else ":")
        ends += [max(float(points[batch]["mean"] or 0.5), 0.5) for batch in batches] + [most]
    log_axes(axes, batches, ends)
    finish(axes, "samples in the step, B", "items recalled")


STUDY = Study(
    id="opt-batch",
    revision=1,
    source="paper E (abstract)",
    place="the abstract: Muon saturates at a larger critical batch size; it gives no number, and the measure is ours",
    statement="One step of Muon gains from larger batches up to a larger batch than one step of SGD.",
    expected="a critical batch of Muon at least twice SGD's (d^(alpha + 1/2) against d^(1/2), ours)",
    rule="The batch from which on a seed's step stores half of what it stores with the expected gradient, at alpha = "
    "1.5; Muon's over SGD's, paired by seed, geometric mean over all base seeds' seeds. Supported if its 95 % interval "
    "lies above 2, refuted if it lies below.",
    measure=measure,
    judge_all=judge_all,
    draw=draw,
    power=power,
)
