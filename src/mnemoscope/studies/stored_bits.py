r"""The bits that small GPTs have stored for each of their parameters when they were given more than they can hold.

A model of P parameters is given items of 3 to 7 P bits, more than the claim says that it stores, and sees each of them
as often as `trained` says. What it knows is N h - sum_f c_f, the entropy of all items less what the model takes to code
them: what a code by the model alone saves, and so a lower bound on what it stores. The same model is also trained with
half of the steps. Only where the other half adds less than MOVED, with its 95 % interval, was the model trained to the
end. Elsewhere it was cut short and may hold more than it shows: that says nothing against a claim of more.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mnemoscope.engine.record import Trial
from mnemoscope.spec import Transformer
from mnemoscope.studies.base import BASES, Bench, Judgement, Numbers, Power, Size
from mnemoscope.studies.panels import draw_estimates, draw_law, finish
from mnemoscope.studies.power import Draw, rehearse
from mnemoscope.studies.seed_means import pool_rows, run_settings, show, spread
from mnemoscope.ui.figures.canvas import ticks_at

MOVED = 0.05
# A step sees one part in about so many of all items.
STEPS_AN_EPOCH = 24
# The learning rate times d.
RATE = 0.12
# Standard deviations of ln(bits) over seeds, and of a size about one number for all sizes.
SCATTER, SIZE_SCATTER = 0.02, 0.04


@dataclass(frozen=True)
class Claim:
    """Bits a parameter, the box about them, and what it reaches to: halfway to the nearest rivals."""

    bits: float
    least: float
    most: float
    rivals: tuple[float, ...]


def trained(spec: Transformer, exposures: int) -> Transformer:
    """The setting with the batch, steps and rate at which each item is seen so many times on average."""
    batch = 1 << max(4, (spec.facts // STEPS_AN_EPOCH).bit_length())
    steps = -(-exposures * spec.facts // batch)
    return spec.replace(batch=batch, max_steps=steps, lr=RATE / spec.dim, schedule="cosine", stop="steps")


def measure_bits(bench: Bench, specs: Sequence[Transformer], seeds: int) -> Numbers:
    """Every seed's bits a parameter, with all steps and with half of them."""
    halves = [spec.replace(max_steps=spec.max_steps // 2) for spec in specs]
    trials = run_settings(bench, [*specs, *halves], seeds, "trainings")
    bits = [bits_of(own) for own in trials]
    return {
        "rows": [
            {
                "dim": spec.dim,
                "parameters": spec.parameters,
                "load": spec.entropy / spec.parameters,
                "steps": spec.max_steps,
                "each": whole,
                "half": half,
            }
            for spec, whole, half in zip(specs, bits[: len(specs)], bits[len(specs) :], strict=True)
        ]
    }


def bits_of(trials: Sequence[Trial]) -> list[float]:
    """The bits a parameter that coding by each trained model saves."""
    return [trial.metrics["bits_coded"] / trial.spec.parameters for trial in trials]


def pooled(all_numbers: Sequence[Numbers]) -> list[Numbers]:
    """The sizes with the seeds of all base seeds: mean and interval, and how much the second half of the steps adds."""
    rows = []
    for row in pool_rows(all_numbers, "each", "half"):
        if len(row["each"]) < 2 or len(row["each"]) != len(row["half"]):
            continue
        gains = spread(np.log(np.divide(row["each"], row["half"])).tolist())
        rows.append({**row, **spread(row["each"]), "moved": gains["mean"], "cut_short": gains["high"] > MOVED})
    return rows


def judge_bits(all_numbers: Sequence[Numbers], claim: Claim) -> Judgement:
    """Supported if all sizes are trained to the end and in the box, refuted if one is above it or all are below it."""
    rows = pooled(all_numbers)
    if len(rows) < 3:
        return Judgement("too few sizes were measured", "inconclusive")
    text = ", ".join(f"{show(row)} at {row['parameters']:,} parameters" for row in rows)
    moved = ", ".join(f"{row['moved']:.1%}" for row in rows)
    whole = [row for row in rows if not row["cut_short"]]
    inside = len(whole) == len(rows) and all(claim.least <= r["low"] and r["high"] <= claim.most for r in rows)
    above = any(row["low"] > claim.most for row in rows)
    below = len(whole) >= 2 and all(row["high"] < claim.least for row in rows)
    text = f"bits a parameter {text}; the second half of the steps adds {moved}"
    if len(whole) < len(rows):
        text += f"; {len(rows) - len(whole)} of {len(rows)} sizes were cut short and show a lower bound"
    return Judgement.by(text, supported=inside, refuted=above or below)


def power_of_bits(specs: Sequence[Transformer], size: Size, seeds: int, claim: Claim) -> Power:
    """The power if the claim's number holds at every size, and if another does, or one that falls with the size."""

    def drawn(smallest: float, largest: float, added: float = 0.0) -> Draw:
        levels = np.geomspace(smallest, largest, len(specs))

        def draw(rng: np.random.Generator) -> list[Numbers]:
            off = np.exp(rng.normal(0.0, SIZE_SCATTER, len(specs)))
            return [{"rows": [row(rng, *each) for each in zip(specs, levels * off, strict=True)]} for _ in bases]

        def row(rng: np.random.Generator, spec: Transformer, level: float) -> dict[str, Any]:
            each = level * np.exp(rng.normal(0.0, SCATTER, seeds))
            half = each * np.exp(-added + rng.normal(0.0, SCATTER / 2, seeds))
            return {"dim": spec.dim, "parameters": spec.parameters, "each": each.tolist(), "half": half.tolist()}

        return draw

    bases = range(BASES[size])
    rivals = {f"{bits:g} bits": drawn(bits, bits) for bits in claim.rivals}
    rivals["half of it at the largest size"] = drawn(claim.bits, claim.bits / 2)
    rivals["trainings cut short"] = drawn(claim.bits, claim.bits, 0.2)
    note = f"seeds scatter by {SCATTER:.0%} and sizes by {SIZE_SCATTER:.0%}"
    return rehearse(lambda every: judge_bits(every, claim), drawn(claim.bits, claim.bits), rivals, note=note)


def draw_bits(numbers: Numbers, figure: Any, claim: Claim) -> None:
    """Bits a parameter against parameters, with all steps and with half, beside the claim and its box."""
    axes = figure.add_subplot()
    rows = pooled([numbers])
    sizes = [row["parameters"] for row in rows]
    draw_estimates(axes, sizes, rows, label="all steps")
    axes.plot(sizes, [float(np.mean(row["half"])) for row in rows], "x", color="C7", label="half of the steps")
    draw_law(axes, sizes, [claim.bits] * len(rows), f"claimed: {claim.bits:g}", "--")
    axes.axhspan(claim.least, claim.most, alpha=0.1, color="C0")
    ticks_at(axes, "x", sizes)
    axes.set_ylim(0, None)
    finish(axes, "parameters", "bits a parameter")
