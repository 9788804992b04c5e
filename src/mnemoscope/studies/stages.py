r"""Paper M: facts are learned in three phases; unequal frequencies shorten the plateau; new facts damage old ones.

    plateau begins   the model names an answer of the right relation in 95 % of sequences
    plateau ends     it recalls 1/D + (1 - 1/D)/10 of all facts, each asked for once; 1/D is by guessing
    damage           how much less is right of the old facts when 90 % of the new ones are

Recall counts all facts alike, also where sequences ask for some more often: a plateau is not called shorter only
because frequent facts weigh more.
"""

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import jax
import numpy as np
from scipy.special import stdtrit
from scipy.stats import linregress, ttest_ind

from mnemoscope.engine.device import find_device
from mnemoscope.spec import Transformer
from mnemoscope.studies.base import BASES, Bench, Judgement, Numbers, Power, Size, Study, Verdict, all_agree, within
from mnemoscope.studies.panels import draw_estimates, finish
from mnemoscope.studies.power import Draw, rehearse
from mnemoscope.studies.seed_means import show, spread
from mnemoscope.training.recalled_items import measure_items
from mnemoscope.training.transformer import TRANSFORMER
from mnemoscope.ui.figures.canvas import plain_log_ticks, ticks_at

SUBJECTS: dict[Size, tuple[int, ...]] = {"quick": (64, 128, 256), "full": (64, 128, 256, 512, 1024)}
SEEDS: dict[Size, int] = {"quick": 4, "full": 4}
LAYERS: dict[Size, int] = {"quick": 1, "full": 2}
DIM: dict[Size, int] = {"quick": 32, "full": 128}
RATE: dict[Size, float] = {"quick": 1e-3, "full": 2e-4}
BATCH: dict[Size, int] = {"quick": 32, "full": 256}
STEPS: dict[Size, int] = {"quick": 4096, "full": 16384}
RELATIONS, ANSWERS, LAW = 4, 8, "zipf:1"
# The share of right relations at which the plateau begins, the share above guessing at which it ends, and the share of
# new facts at which the damage is measured.
KNOWN, RECALLED, LEARNED = 0.95, 0.1, 0.9
# The least power of S in the plateau's length, the least ln of its shortening, and the least share of old facts lost.
GROWS, SHORTER, LOST = 0.2, 0.1, 0.1
# Standard deviations over seeds that a rehearsal takes: of ln(length), and of the share lost.
SCATTER, LOST_SCATTER = 0.2, 0.1


def specs_of(size: Size) -> tuple[list[Transformer], Transformer, Transformer]:
    """Uniform facts by subjects, the most subjects with unequal frequencies, and as many new ones as old ones."""
    dim, last = DIM[size], SUBJECTS[size][-1]
    one = Transformer(
        task="facts",
        subjects=last,
        relations=RELATIONS,
        answers=ANSWERS,
        noise=16,
        length=6,
        layers=LAYERS[size],
        dim=dim,
        width=4 * dim,
        lr=RATE[size],
        batch=BATCH[size],
        max_steps=STEPS[size],
        target=LEARNED,
    )
    half = last // 2
    second = one.replace(subjects=half, new_subjects=half, first_steps=STEPS[size] // 2)
    return [one.replace(subjects=count) for count in SUBJECTS[size]], one.replace(frequencies=LAW), second


@partial(jax.jit, static_argnames="program")
def _recalled(program: Transformer, world: Any, weights: Any) -> jax.Array:
    """The share of all facts that is recalled, each asked for once; one number for each training."""
    return jax.vmap(lambda *own: measure_items(program, *own)["recalled"])(world, weights)


def plateaus(spec: Transformer, seeds: Sequence[int]) -> list[Numbers]:
    """For every seed, when the plateau begins and ends, and recall and right relations by check."""
    program = TRANSFORMER.program(spec, find_device("auto").platform)
    found = []
    for seed in seeds:
        steps, recall, relation, loss = [0], [0.0], [0.0], [math.log(spec.relations * spec.answers)]

        def watch(world: Any, weights: Any, numbers: dict[str, np.ndarray], own: Any = (steps, recall, relation, loss)):
            own[0].append(own[0][-1] + TRANSFORMER.check)
            own[1].append(float(_recalled(program, world, weights)[0]))
            own[2].append(float(numbers["relation_accuracy"][0]))
            own[3].append(float(numbers["loss"][0]))

        TRANSFORMER.run([(spec, seed)], watch=watch)
        begins, ends = _crossed(steps, relation, KNOWN), _crossed(steps, recall, _enough(spec.answers))
        found.append({"begins": begins, "ends": ends, "steps": steps, "recall": recall, "loss": loss})
    return found


def _enough(answers: int) -> float:
    return 1 / answers + RECALLED * (1 - 1 / answers)


def _crossed(steps: Sequence[int], values: Sequence[float], level: float) -> float | None:
    """The step at which a curve first reaches a level, between its checks linearly."""
    for at in range(1, len(values)):
        if values[at] >= level:
            share = (level - values[at - 1]) / (values[at] - values[at - 1])
            return steps[at - 1] + share * (steps[at] - steps[at - 1])
    return None


def measure(size: Size, bench: Bench) -> Numbers:
    """Plateaus by subjects and with unequal frequencies, and what new facts cost the old ones."""
    seeds = range(bench.seed, bench.seed + SEEDS[size])
    uniform, unequal, second = specs_of(size)
    rows = [_row(spec.subjects, "uniform", plateaus(spec, seeds)) for spec in uniform]
    rows.append(_row(unequal.subjects, LAW, plateaus(unequal, seeds)))
    trials = bench.tools.run([(second, seed) for seed in seeds], "second batches")
    return {"rows": rows, "damage": [_damage(second, trial.curve) for trial in trials.values()]}


def _row(subjects: int, law: str, found: Sequence[Numbers]) -> Numbers:
    first = found[0]
    curve = {name: first[name] for name in ("steps", "recall", "loss")}
    ends = {name: [each[name] for each in found] for name in ("begins", "ends")}
    return {"subjects": subjects, "law": law, **ends, "curve": curve}


def _damage(spec: Transformer, curve: Sequence[dict[str, float]]) -> dict[str, float | None]:
    """The share of old facts that is right before the new ones, and when most of these are right."""
    before = [check["old_accuracy"] for check in curve if check["step"] <= spec.first_steps]
    after = [c["old_accuracy"] for c in curve if c["step"] > spec.first_steps and c["accuracy"] >= LEARNED]
    return {"before": before[-1] if before else None, "after": after[0] if after else None}


def judge_all(all_numbers: Sequence[Numbers]) -> Judgement:
    """By the plateau, its growth, its shortening and the damage: refuted if one fails, supported if all hold."""
    rows = _pool(all_numbers)
    uniform = [row for row in rows if row["law"] == "uniform"]
    damage = [
        old["before"] - old["after"]
        for numbers in all_numbers
        for old in numbers["damage"]
        if None not in (old["before"], old["after"]) and old["before"] >= LEARNED
    ]
    if len(uniform) < 3 or len(uniform) == len(rows) or len(damage) < 2:
        return Judgement("too few plateaus were seen to their end", "inconclusive")
    longest = spread(np.log(np.divide(uniform[-1]["lengths"], uniform[-1]["first"])).tolist())
    power = _power(uniform)
    shorter = _apart(uniform[-1]["lengths"], rows[-1]["lengths"])
    lost = spread(damage)
    lengths = ", ".join(f"{np.mean(row['lengths']):.0f} steps at S = {row['subjects']}" for row in uniform)
    text = (
        f"the plateau lasts {lengths}, "
        f"as S^{power['mean']:.2f} [{power['low']:.2f}, {power['high']:.2f}]; at the most subjects its ln over that of "
        f"the time before it is {show(longest)}, and with {LAW} {show(shorter)} shorter; {show(lost)} of old facts "
        f"are lost when {LEARNED:.0%} of as many new ones are right"
    )
    verdicts: list[Verdict] = [
        within(longest["low"], longest["high"], 0.0, math.inf),
        within(power["low"], power["high"], GROWS, math.inf),
        within(shorter["low"], shorter["high"], SHORTER, math.inf),
        within(lost["low"], lost["high"], LOST, math.inf),
    ]
    return Judgement(text, all_agree(verdicts))


def _pool(all_numbers: Sequence[Numbers]) -> list[Numbers]:
    """The lengths of plateaus and of the time before, of all base seeds' seeds; without places that have no two.

    Where facts are recalled before the relation is known there is no plateau: it counts as one step.
    """
    pooled = []
    for rows in zip(*(numbers["rows"] for numbers in all_numbers), strict=True):
        ends = [(b, e) for row in rows for b, e in zip(row["begins"], row["ends"], strict=True) if b and e]
        if len(ends) > 1:
            own = {"lengths": [max(e - b, 1.0) for b, e in ends], "first": [b for b, _ in ends]}
            pooled.append({"subjects": rows[0]["subjects"], "law": rows[0]["law"], **own})
    return pooled


def _power(rows: Sequence[Numbers]) -> Numbers:
    """The power of S in lengths, by least squares over all seeds, with Student's 95 % interval."""
    x = [math.log(row["subjects"]) for row in rows for _ in row["lengths"]]
    line: Any = linregress(x, np.log([length for row in rows for length in row["lengths"]]))
    reach = float(stdtrit(len(x) - 2, 0.975)) * float(line.stderr)
    return {"mean": float(line.slope), "low": float(line.slope) - reach, "high": float(line.slope) + reach}


def _apart(longer: Sequence[float], shorter: Sequence[float]) -> Numbers:
    """The mean of ln(longer) less that of ln(shorter), with Welch's 95 % interval: some seeds may be left out."""
    a, b = np.log(longer), np.log(shorter)
    ends = ttest_ind(a, b, equal_var=False).confidence_interval(0.95)
    return {"mean": float(np.mean(a) - np.mean(b)), "low": float(ends.low), "high": float(ends.high)}


def power(size: Size) -> Power:
    """The power if all four parts hold, and if one of them does not."""

    def drawn(grows: float = 0.7, shorter: float = 0.7, lost: float = 0.4, long: float = 3.0) -> Draw:
        def base(rng: np.random.Generator) -> Numbers:
            def row(subjects: int, law: str, length: float) -> Numbers:
                begins = (100 * np.exp(rng.normal(0.0, SCATTER, SEEDS[size]))).tolist()
                lengths = length * np.exp(rng.normal(0.0, SCATTER, SEEDS[size]))
                return {"subjects": subjects, "law": law, "begins": begins, "ends": (begins + lengths).tolist()}

            last = SUBJECTS[size][-1]
            rows = [row(count, "uniform", 100 * long * (count / last) ** grows) for count in SUBJECTS[size]]
            rows.append(row(last, LAW, 100 * long * math.exp(-shorter)))
            after = 1 - lost + rng.normal(0.0, LOST_SCATTER, SEEDS[size])
            return {"rows": rows, "damage": [{"before": 1.0, "after": float(each)} for each in after]}

        return lambda rng: [base(rng) for _ in range(BASES[size])]

    rivals = {
        "the same for all S": drawn(grows=0.0),
        "as long with unequal frequencies": drawn(shorter=0.0),
        "nothing lost": drawn(lost=0.0),
        "no plateau": drawn(long=0.5),
    }
    note = f"seeds' lengths scatter by {SCATTER:.0%}, the share lost by {LOST_SCATTER:g}"
    return rehearse(judge_all, drawn(), rivals, note=note)


def draw(numbers: Numbers, figure: Any) -> None:
    """Losses by step with the plateau's level, and lengths against subjects."""
    left, right = figure.subplots(1, 2)
    for row in numbers["rows"]:
        name = f"S = {row['subjects']}" + ("" if row["law"] == "uniform" else f", {row['law']}")
        left.plot(row["curve"]["steps"], row["curve"]["loss"], label=name, linewidth=1)
    left.axhline(math.log(ANSWERS), color="black", linewidth=0.6, linestyle=":")
    pooled = _pool([numbers])
    ends: list[float] = []
    for law, color in (("uniform", "C0"), (LAW, "C1")):
        rows = [{**row, **spread(row["lengths"])} for row in pooled if row["law"] == law]
        if rows:
            draw_estimates(right, [row["subjects"] for row in rows], rows, label=law, color=color)
            ends += [row["mean"] for row in rows]
    if ends:
        plain_log_ticks(right, "y", min(ends), max(ends))
        ticks_at(right, "x", sorted({row["subjects"] for row in pooled}))
    finish(left, "step", "loss")
    finish(right, "subjects, S", "steps of the plateau")


STUDY = Study(
    id="stages",
    revision=1,
    source="paper M (abstract)",
    place="the abstract: three phases with a plateau, shorter with imbalanced data, and new knowledge quickly corrupts "
    "existing memories; that the plateau grows with the number of individuals is reported by notes on it",
    statement="Facts are learned in three phases: on a plateau only the relation is known. It lasts longer with more "
    "subjects and is shorter with unequal frequencies; learning new facts damages old ones.",
    expected="a plateau longer than the time before it, growing with S, shorter with zipf frequencies; old facts lost",
    rule="The plateau lasts from when relations are right in 95 % until a tenth more of all facts is recalled than by "
    "guessing among the relation's answers. Supported if, with 95 % intervals over all base seeds' seeds, at the most "
    "subjects it is longer than the time before it; the power of S in its length is above 0.2; with zipf:1 ln of its "
    "length is lower by more than 0.1; and more than 0.1 of old facts are lost when 90 % of as many new ones are "
    "right. Refuted if one of these intervals lies on the other side.",
    measure=measure,
    judge_all=judge_all,
    draw=draw,
    power=power,
)
