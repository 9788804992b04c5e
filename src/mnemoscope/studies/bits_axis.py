r"""Ours: linear memory, MLP memory, factual transformer and small GPTs on one axis of bits a parameter.

Memories are trained to their limit, the N items of which 99 % are right. A map of N items to as many answers takes
log2 N! bits, of which 99 % are counted. Transformers are given more than they can hold, and what a code by the model
saves is counted (`stored_bits`). The factual transformer is paper B's: one layer, frozen embeddings that are no
parameters, attention and an MLP. It gets worse with too many facts, so the best of three loads counts. The GPTs are the
largest of `bits-gpt` and `bits-random`, whose trials are used again.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mnemoscope.experiments.quantised import bits_of_map
from mnemoscope.spec import Memory, Transformer
from mnemoscope.studies import bits_gpt, bits_random
from mnemoscope.studies.base import BASES, Bench, Judgement, Numbers, Power, Size, Study
from mnemoscope.studies.panels import draw_estimates, finish
from mnemoscope.studies.power import Draw, rehearse
from mnemoscope.studies.seed_limits import mean_limit, search_limits
from mnemoscope.studies.seed_means import pool_rows, run_settings, show, spread
from mnemoscope.studies.stored_bits import bits_of, trained

LINEAR, MLP, FACTUAL, GPT, STRINGS = "linear memory", "MLP memory", "factual transformer", "GPT, facts", "GPT, strings"
TRANSFORMERS = (FACTUAL, GPT, STRINGS)
# d of the linear memory, d and m of the MLP's, d of the factual transformer.
LINEAR_DIM: dict[Size, int] = {"quick": 16, "full": 64}
MLP_SHAPE: dict[Size, tuple[int, int]] = {"quick": (12, 24), "full": (32, 64)}
FACTUAL_DIM: dict[Size, int] = {"quick": 12, "full": 64}
# Subjects and relations of the factual transformer over d, and its learning rate times d.
LOADS, FACTUAL_RATE = (2 / 3, 1.0, 4 / 3), 0.36
SEEDS: dict[Size, int] = {"quick": 3, "full": 2}
STEPS: dict[Size, int] = {"quick": 2**11, "full": 2**13}
RESOLUTION, RIGHT = 0.05, 0.99
# ln(log2 N!) grows less than 1.5 times as fast as ln N from N = 20 on.
BITS_RESOLUTION = (1 + RESOLUTION) ** 1.5 - 1
# Numbers to compare with: those of papers N and O, and one bit.
LINES = {"one bit": 1.0, "paper N": 2.0, "paper O": 3.6}
SCATTER = 0.05


def memories(size: Size) -> dict[str, Memory]:
    """The trained memories."""
    dim, width = MLP_SHAPE[size]
    base = {"items": 2, "method": "trained", "max_steps": STEPS[size]}
    return {
        LINEAR: Memory.read({**base, "dim": LINEAR_DIM[size]}),
        MLP: Memory.read({**base, "dim": dim, "width": width}),
    }


def transformers(size: Size) -> list[tuple[str, Transformer]]:
    """The models that are given too much, by what they are called."""
    dim = FACTUAL_DIM[size]
    one = Transformer(
        task="facts",
        answers=8,
        noise=1,
        length=3,
        layers=1,
        dim=dim,
        heads=dim // 2,
        width=dim,
        activation="relu",
        mask="none",
        positions="none",
        embeddings="frozen",
        norm="none",
        residual="mlp",
    )
    counts = [round(load * dim) for load in LOADS]
    loaded = [one.replace(subjects=count, relations=count) for count in counts]
    factual = [trained(spec, bits_gpt.EXPOSURES[size]).replace(lr=FACTUAL_RATE / dim) for spec in loaded]
    gpts = [(GPT, bits_gpt.specs_of(size)[-1]), (STRINGS, bits_random.specs_of(size)[-1])]
    return [*((FACTUAL, spec) for spec in factual), *gpts]


def measure(size: Size, bench: Bench) -> Numbers:
    """Every seed's bits a parameter of each kind of memory."""
    seeds, rows = SEEDS[size], []
    limited, filled = memories(size), transformers(size)
    points = search_limits(bench, list(limited.values()), RIGHT, RESOLUTION, seeds, lambda memory: {})
    for (name, memory), point in zip(limited.items(), points, strict=True):
        each = [RIGHT * bits_of_map(limit) / memory.parameters for limit in point["each"] if limit]
        rows.append({"name": name, "parameters": memory.parameters, "each": each, "resolution": BITS_RESOLUTION})
    trials = run_settings(bench, [spec for _, spec in filled], seeds, "trainings")
    for (name, spec), own in zip(filled, trials, strict=True):
        rows.append({"name": name, "parameters": spec.parameters, "each": bits_of(own)})
    return {"rows": rows}


def judge_all(all_numbers: Sequence[Numbers]) -> Judgement:
    """By the MLP memory's interval against every other's."""
    rows = {row["name"]: row for row in _pool(all_numbers)}
    if len(rows) < 2 + len(TRANSFORMERS):
        return Judgement("too few memories were measured", "inconclusive")
    text = ", ".join(f"{name} {show(row)} ({row['parameters']:,} parameters)" for name, row in rows.items())
    mlp = rows[MLP]
    others = [row for name, row in rows.items() if name != MLP]
    return Judgement.by(
        f"bits a parameter: {text}",
        supported=all(row["high"] < mlp["low"] for row in others),
        refuted=any(row["low"] > mlp["high"] for row in others),
    )


def _pool(all_numbers: Sequence[Numbers]) -> list[Numbers]:
    """Mean and interval of each kind over all base seeds' seeds, at the load at which it holds most."""
    best: dict[str, Numbers] = {}
    for row in pool_rows(all_numbers, "each"):
        if len(row["each"]) > 1:
            own = row.get("resolution")
            found = {**row, **(mean_limit(row["each"], own).ends("mean") if own else spread(row["each"]))}
            if row["name"] not in best or found["mean"] > best[row["name"]]["mean"]:
                best[row["name"]] = found
    return list(best.values())


def power(size: Size) -> Power:
    """The power with 1 bit, 2 bits and 1.5 bits, and where a GPT or the linear memory holds more than the MLP."""

    def drawn(change: Mapping[str, float]) -> Draw:
        levels = {LINEAR: 1.0, MLP: 2.0, **dict.fromkeys(TRANSFORMERS, 1.5), **change}

        def base(rng: np.random.Generator) -> Numbers:
            each = {name: level * np.exp(rng.normal(0.0, SCATTER, SEEDS[size])) for name, level in levels.items()}
            return {"rows": [{"name": name, "parameters": 1, "each": own.tolist()} for name, own in each.items()]}

        return lambda rng: [base(rng) for _ in range(BASES[size])]

    rivals = {
        "a GPT with 3.6 bits of strings": drawn({STRINGS: 3.6}),
        "a linear memory with as much": drawn({LINEAR: 2.0}),
        "a GPT with as much": drawn({GPT: 2.0}),
    }
    return rehearse(judge_all, drawn({}), rivals, note=f"seeds scatter by {SCATTER:.0%}")


def draw(numbers: Numbers, figure: Any) -> None:
    """Bits a parameter of each kind, with the lines of the papers."""
    axes = figure.add_subplot()
    rows = _pool([numbers])
    draw_estimates(axes, range(len(rows)), rows, label="measured")
    for at, (name, bits) in enumerate(LINES.items()):
        axes.axhline(bits, color=f"C{at + 1}", linewidth=0.9, linestyle="--", label=f"{name}: {bits:g}")
    axes.set_xticks(range(len(rows)), [row["name"].removeprefix("factual ") for row in rows], fontsize=7)
    axes.set_ylim(0, 4)
    finish(axes, "kind of memory", "bits a parameter")


STUDY = Study(
    id="bits-axis",
    revision=1,
    source="ours, after paper N",
    place="the paper's number for language models, beside the memories of paper B",
    statement="A trained MLP memory holds more bits a parameter than a linear memory, a factual transformer or a small "
    "GPT.",
    expected="about 1 bit for the linear memory, 2 for the MLP's, and less than that for transformers",
    rule="Means with 95 % intervals over all base seeds' seeds, of the factual transformer at the best of three loads. "
    "Supported if the MLP memory's interval lies above "
    "every other one's, refuted if another lies above it.",
    measure=measure,
    judge_all=judge_all,
    draw=draw,
    power=power,
)
