r"""Paper J: with learned embeddings a dimension that grows as the logarithm of the subjects is enough.

The abstract: a transformer of one layer memorises random bijections from subjects to attributes that relations share;
a logarithmic dimension of the embeddings is proved to suffice, with a small MLP that selects by relation, and gradient
descent is said to find such solutions. Here the relations, the inner dimension of attention and the MLP's width are
fixed, the critical d is the least at which training names 99 % of the attributes, and two laws are compared. That a
dimension suffices does not say that training finds it, so the critical d of training is ours:

    d = a + b ln S      (J1)            d = c S^p      (J2)
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from mnemoscope.engine.device import find_device, numerics
from mnemoscope.experiments.estimate.power_law import DECISIVE, Points, fit_power_law
from mnemoscope.spec import Transformer
from mnemoscope.studies.base import Bench, Judgement, Numbers, Power, Size, Study
from mnemoscope.studies.log_forms import FEWEST
from mnemoscope.studies.narrow import Narrowed, critical_dim
from mnemoscope.studies.panels import draw_estimates, draw_law, finish
from mnemoscope.studies.power import Draw, rehearse
from mnemoscope.studies.seed_limits import pool_limits, simulate_limits
from mnemoscope.ui.figures.canvas import ticks_at

SUBJECTS: dict[Size, tuple[int, ...]] = {
    "quick": (16, 24, 40, 72, 128),
    "full": (64, 128, 256, 512, 1024, 2048, 4096, 16384),
}
RELATIONS = 8
# The most d that is tried, and the size of every program.
MOST_DIM: dict[Size, int] = {"quick": 12, "full": 48}
SEEDS: dict[Size, int] = {"quick": 3, "full": 2}
STEPS: dict[Size, int] = {"quick": 2048, "full": 4096}
RATE, WIDTH = 0.01, 256
# A step shows a quarter of all facts, within these bounds.
SHARE, LEAST_BATCH, MOST_BATCH = 4, 64, 8192
# (J1) as the search's first guess, for R = 8, from a pilot with S from 16 to 128; a search starts anywhere.
GUESS = (-2.8, 1.9)
# In the power's simulation: the scatter of ln d over seeds, and of places about a law.
SCATTER, PLACE_SCATTER = 0.06, 0.04


def measure(size: Size, bench: Bench) -> Numbers:
    """Every seed's critical d for each number of subjects, with all steps and with half of them."""
    place = find_device("auto")
    seeds = range(bench.seed, bench.seed + SEEDS[size])
    points = []
    with numerics("float32", place):
        for subjects in SUBJECTS[size]:
            guess = GUESS[0] + GUESS[1] * math.log(subjects)
            point = critical_dim(bijections(size, subjects), guess, seeds, place.platform)
            points.append({**point, "size": subjects})
    return {"points": points}


def bijections(size: Size, subjects: int) -> Narrowed:
    """R random permutations of S attributes, in a transformer of one layer whose residual stream alone is narrow.

    The facts of a `Transformer` have D attributes of their own for each relation. With D = S/R there are S in all,
    which the permutations share among the relations.
    """
    spec = Transformer(
        task="facts",
        subjects=subjects,
        relations=RELATIONS,
        answers=subjects // RELATIONS,
        noise=1,
        length=3,  # subject, relation and end token
        layers=1,
        dim=MOST_DIM[size],
        heads=4,
        head_dim=8,
        width=WIDTH,
        activation="relu",
        mask="none",
        positions="none",
        norm="none",
        embeddings="learned",
        lr=RATE,
        batch=min(max(LEAST_BATCH, subjects * RELATIONS // SHARE), MOST_BATCH),
        max_steps=STEPS[size],
    )
    return Narrowed(spec, table=lambda draw: np.stack([draw.permutation(subjects) for _ in range(RELATIONS)], axis=1))


def pool(all_numbers: Sequence[Numbers], each: str = "each") -> list[Numbers]:
    """One point for each number of subjects, with the seeds of all base seeds: with all steps, or `half` of them."""
    bases = [[{**point, "each": point[each]} for point in numbers["points"]] for numbers in all_numbers]
    return pool_limits(bases, ("size",))


def compare_laws(points: Sequence[Numbers]) -> dict[str, float] | None:
    """Akaike's criterion of (J2) less that of (J1), and their numbers; None with fewer than FEWEST places.

    Both have two numbers. Residuals are those of ln d, each place weighted alike: integers are what d is known to.
    """
    kept = [point for point in points if point["stored"]]
    if len(kept) < FEWEST:
        return None
    x, d = np.log([point["size"] for point in kept]), np.array([point["stored"] for point in kept])
    # (J1) in relative residuals: least squares of (d - a - b x)/d.
    level, slope = np.linalg.lstsq(np.stack([1 / d, x / d], axis=1), np.ones(len(d)), rcond=None)[0]
    of_logs = float(np.mean((1 - (level + slope * x) / d) ** 2))
    fit = fit_power_law(Points(("subjects",), np.exp(x)[:, None], np.log(d), np.full(len(d), 1e-3)))
    (power,) = fit.exponents
    rest = np.log(d) - fit.log_value(np.exp(x)[:, None])
    of_power = float(np.mean(rest**2))
    return {
        "lead": len(d) * math.log((of_power + 1e-9) / (of_logs + 1e-9)),
        "level": float(level),
        "slope": float(slope),
        "constant": fit.constant,
        "power": power.value,
        "low": power.low,
        "high": power.high,
    }


def judge_all(all_numbers: Sequence[Numbers]) -> Judgement:
    """By the better law, over the seeds of all base seeds."""
    points = pool(all_numbers)
    text = "critical d " + ", ".join(
        f"{point['stored']:.1f} [{point['low']:.1f}, {point['high']:.1f}] at S = {point['size']:,}"
        for point in points
        if point["stored"] and point["low"]
    )
    laws, half = compare_laws(points), compare_laws(pool(all_numbers, "half"))
    if laws is None or half is None:
        return Judgement(f"{text}; too few places for a law", "inconclusive")
    text += (
        f"; {laws['level']:.2f} + {laws['slope']:.2f} ln S is {laws['lead']:+.1f} ahead of "
        f"S^{laws['power']:.2f} [{laws['low']:.2f}, {laws['high']:.2f}], with half of the steps {half['lead']:+.1f} "
        f"ahead of S^{half['power']:.2f}"
    )
    leads = (laws["lead"], half["lead"])
    return Judgement.by(text, supported=min(leads) >= DECISIVE, refuted=max(leads) <= -DECISIVE)


def power(size: Size) -> Power:
    """The power if (J1) holds as in the pilot, and if d is a power of S with the same values in the middle."""
    S = np.array(SUBJECTS[size], float)
    places = [{"size": int(s)} for s in S]
    by_logs = GUESS[0] + GUESS[1] * np.log(S)
    middle = float(np.exp(np.mean(np.log(by_logs))))

    def drawn(law: np.ndarray) -> Draw:
        return simulate_limits(size, places, {"points": law.tolist()}, SEEDS[size], SCATTER, PLACE_SCATTER)

    rivals = {f"S^{p:g}": drawn(middle * np.exp(p * (np.log(S) - np.log(S).mean()))) for p in (0.25, 0.5, 1.0)}
    note = f"seeds scatter by {SCATTER:.0%} and places by {PLACE_SCATTER:.0%} about {GUESS[0]:g} + {GUESS[1]:g} ln S"
    return rehearse(judge_all, drawn(by_logs), rivals, note=note)


def draw(numbers: Numbers, figure: Any) -> None:
    """Critical d against the subjects, and both laws."""
    axes = figure.add_subplot()
    points = [point for point in numbers["points"] if point["stored"]]
    draw_estimates(axes, [point["size"] for point in points], points, "stored", f"R = {RELATIONS}")
    laws = compare_laws(points)
    if laws is not None:
        S = np.geomspace(points[0]["size"], points[-1]["size"], 60)
        draw_law(axes, S, laws["level"] + laws["slope"] * np.log(S), "a + b ln S", "-")
        draw_law(axes, S, np.exp(laws["constant"]) * S ** laws["power"], f"S^{laws['power']:.2f}", "--")
    axes.set_xscale("log", base=2)
    if points:
        ticks_at(axes, "x", [point["size"] for point in points])
    finish(axes, "subjects, S", "critical d")


STUDY = Study(
    id="geometric",
    revision=1,
    source="ours, after paper J",
    place="the abstract of version 1: a logarithmic embedding dimension suffices for random bijections from subjects "
    "to shared attributes, and gradient descent finds solutions of the predicted structure; what training needs, and "
    "the comparison with a power, are ours",
    statement="With learned embeddings the dimension that training needs for random bijections grows as the logarithm "
    "of the number of subjects, at fixed relations and a fixed MLP.",
    expected="d = a + b ln S, ahead of any power of S",
    rule="Critical d: the least at which 99 % are named within 2^12 steps (quick: 2^11), and within half of them; "
    "every seed's own, all base seeds' seeds in one. d = a + b ln S and d = c S^p, both by least squares of relative "
    f"residuals at {FEWEST} places or more, are compared by Akaike's criterion. Supported if the logarithm is ahead by "
    f"{DECISIVE:g} or more with either number of steps, refuted if it is behind by as much with both.",
    measure=measure,
    judge_all=judge_all,
    draw=draw,
    power=power,
)
