"""The law for the end of training against training that has settled, in settings drawn beforehand."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from scipy.special import ndtr, stdtrit

from mnemoscope.spec import Retrieval
from mnemoscope.studies.base import BASES, Bench, Judgement, Numbers, Power, Size, Study
from mnemoscope.studies.panels import draw_estimates, finish
from mnemoscope.studies.power import Draw, rehearse
from mnemoscope.studies.seed_means import run_settings
from mnemoscope.theory.predict import predict
from mnemoscope.theory.trained.attention import FOUND, first_attention
from mnemoscope.theory.trained.predict import TrainedPrediction, coverage, predict_trained

SETTINGS: dict[Size, int] = {"quick": 8, "full": 24}
SEEDS: dict[Size, int] = {"quick": 6, "full": 6}
# At the quick size one vocabulary and one length, so that few programs are compiled.
VOCABS: dict[Size, tuple[int, ...]] = {"quick": (96,), "full": (64, 96, 128, 192, 256, 384)}
LENGTHS: dict[Size, tuple[int, ...]] = {"quick": (8,), "full": (4, 8, 16, 32)}
RATES = (1.5, 40.0)
SHORTEST = 12
STEPS = 20_000
MEAN, WORST = 0.03, 0.10
DRAW_SEED = 23


def drawn_settings(size: Size) -> list[Retrieval]:
    """V and L from the lists, d from 12 to V/2 and N/V from 1.5 to 40, uniform in their logarithms, Gaussian embeddings
    or on the sphere, in turn, where attention starts right. Unlike `predict`'s domain, this one has loads above 0.9."""
    random = np.random.default_rng(DRAW_SEED)
    taken: list[Retrieval] = []
    while len(taken) < SETTINGS[size]:
        vocab, length = int(random.choice(VOCABS[size])), int(random.choice(LENGTHS[size]))
        dim = round(math.exp(random.uniform(math.log(SHORTEST), math.log(vocab / 2))))
        samples = round(vocab * math.exp(random.uniform(*np.log(RATES))))
        embedding = ("gaussian", "sphere")[len(taken) % 2]
        spec = Retrieval(vocab=vocab, dim=dim, length=length, samples=samples, embedding=embedding)
        if first_attention(spec) >= FOUND:
            taken.append(spec)
    return taken


def predicted(spec: Retrieval) -> TrainedPrediction:
    """The law's answer, which knows nothing of how training goes on."""
    return predict_trained(spec)


def measure(size: Size, bench: Bench) -> Numbers:
    """Accuracy after training until it has settled, beside the law's, at every setting."""
    specs = drawn_settings(size)
    trained = [spec.replace(then="adamw", steps=STEPS, stop="settled") for spec in specs]
    runs = run_settings(bench, trained, SEEDS[size])
    points = []
    for spec, trials in zip(specs, runs, strict=True):
        said = predicted(spec)
        place = {name: getattr(spec, name) for name in ("vocab", "dim", "length", "samples", "embedding")}
        points.append(
            {
                **place,
                "predicted": said.accuracy,
                "load": said.terms["load"],
                "accuracies": [trial.accuracy for trial in trials],
            }
        )
    return {"points": points, "seeds": SEEDS[size]}


def errors_of(all_numbers: Sequence[Numbers]) -> list[dict[str, Any]]:
    """Every setting's error and its standard error, with the seeds of all base seeds.

    Seeds vary like shares of V tokens do, by p (1 - p)/V, up to one factor that all settings share.
    """
    rows, excess, left = [], 0.0, 0
    for points in zip(*(numbers["points"] for numbers in all_numbers), strict=True):
        known = [value for point in points for value in point["accuracies"] if value is not None]
        if not known:
            continue
        mean, said, vocab = float(np.mean(known)), points[0]["predicted"], points[0]["vocab"]
        share = min(1 - 0.5 / vocab, max(0.5 / vocab, (mean + said) / 2))
        unit = share * (1 - share) / vocab
        excess += float(np.sum((np.array(known) - mean) ** 2)) / unit
        left += len(known) - 1
        rows.append({**points[0], "mean": mean, "error": mean - said, "unit": unit, "count": len(known)})
    factor = excess / left if left else 1.0
    return [{**row, "standard": math.sqrt(factor * row["unit"] / row["count"]), "degrees": left} for row in rows]


def judge_all(all_numbers: Sequence[Numbers]) -> Judgement:
    """By the mean and the largest error."""
    rows = errors_of(all_numbers)
    asked = len(all_numbers[0]["points"])
    seeds = sum(numbers["seeds"] for numbers in all_numbers)
    if len(rows) < max(4, asked // 2) or rows[0]["degrees"] < 1:
        return Judgement(f"training settled in {len(rows)} of {asked} settings", "inconclusive")
    off = np.array([abs(row["error"]) for row in rows])
    own = np.array([row["standard"] for row in rows])
    reach = float(stdtrit(rows[0]["degrees"], 0.975))
    # The worst of many is expected further off than one.
    reach_of_worst = float(stdtrit(rows[0]["degrees"], 1 - 0.025 / len(rows)))
    mean, half = float(off.mean()), reach * math.sqrt(float(np.sum(own**2))) / len(rows)
    at = int(np.argmax(off))
    worst = rows[at]
    text = (
        f"error {mean:.3f} ± {half:.3f} on average over {len(rows)} settings, {off[at]:.3f} ± "
        f"{reach_of_worst * own[at]:.3f} at worst: {worst['mean']:.3f} against {worst['predicted']:.3f} at "
        f"V = {worst['vocab']}, d = {worst['dim']}, L = {worst['length']}, N = {worst['samples']:,} (N/N_c "
        f"{worst['load']:.2f}); below N_c {_mean_below(rows, off):.3f}"
    )
    unsettled = asked * seeds - sum(row["count"] for row in rows)
    if unsettled:
        text += f"; {unsettled} runs did not settle and are left out"
    added = float(np.mean(added_by_noise(off, own)))
    refuted = mean - half - added > MEAN or bool(np.any(off - reach_of_worst * own > WORST))
    supported = mean + half <= MEAN and bool(np.all(off + reach_of_worst * own <= WORST))
    return Judgement.by(text, supported=supported, refuted=refuted)


def added_by_noise(off: np.ndarray, own: np.ndarray) -> np.ndarray:
    """What normal noise adds to an absolute error, on average: much where there is no other, nothing to a large one."""
    own = np.maximum(own, 1e-9)
    ratio = off / own
    return own * (math.sqrt(2 / math.pi) * np.exp(-(ratio**2) / 2)) - 2 * off * ndtr(-ratio)


def _mean_below(rows: Sequence[Mapping[str, Any]], off: np.ndarray) -> float:
    below = [value for row, value in zip(rows, off, strict=True) if row["load"] <= 1]
    return float(np.mean(below)) if below else math.nan


def power(size: Size) -> Power:
    """The power if the law is right, and if another is."""
    specs = drawn_settings(size)
    said = [predicted(spec) for spec in specs]

    def drawn(law: Callable[[Retrieval, TrainedPrediction], float]) -> Draw:
        true = [law(spec, one) for spec, one in zip(specs, said, strict=True)]
        spread = [max(0.5 / spec.vocab, _spread(one)) for spec, one in zip(specs, said, strict=True)]

        def base(rng: np.random.Generator) -> Numbers:
            points = []
            for spec, one, value, width in zip(specs, said, true, spread, strict=True):
                each = np.clip(rng.normal(value, width, SEEDS[size]), 0, 1).tolist()
                place = {"vocab": spec.vocab, "dim": spec.dim, "length": spec.length, "samples": spec.samples}
                points.append({**place, "predicted": one.accuracy, "load": one.terms["load"], "accuracies": each})
            return {"points": points, "seeds": SEEDS[size]}

        return lambda rng: [base(rng) for _ in range(BASES[size])]

    return rehearse(
        judge_all,
        drawn(lambda spec, one: one.accuracy or 0.0),
        {
            "three steps": drawn(lambda spec, one: predict(spec).accuracy or 0.0),
            "what was seen, without a capacity": drawn(lambda spec, one: coverage(spec)),
            "nothing beyond the capacity": drawn(
                lambda spec, one: coverage(spec) * (1.0 if one.terms["load"] <= 1 else 0.0)
            ),
            "a tenth off": drawn(lambda spec, one: 0.9 * (one.accuracy or 0.0)),
        },
        note="seeds scatter about the law as its intervals say",
    )


def _spread(said: TrainedPrediction) -> float:
    """The standard deviation over seeds, by the lower end of the law's interval: above N_c the upper one is a bound."""
    return ((said.accuracy or 0.0) - (said.low or 0.0)) / 1.96


def draw(numbers: Numbers, figure: Any) -> None:
    """Accuracy after training against the law's, and the errors over the load."""
    left, right = figure.subplots(1, 2)
    rows = errors_of([numbers])
    for law, color in (("gaussian", "C0"), ("sphere", "C1")):
        own = [row for row in rows if row["embedding"] == law]
        for axes, value, x in ((left, "mean", "predicted"), (right, "error", "load")):
            ends = [
                {value: row[value], "low": row[value] - half, "high": row[value] + half}
                for row in own
                for half in (1.96 * row["standard"],)
            ]
            draw_estimates(axes, [row[x] for row in own], ends, value, law, color)
    left.plot([0, 1], [0, 1], color="black", linewidth=0.8)
    right.axhline(0, color="black", linewidth=0.8)
    for level in (-WORST, WORST):
        right.axhline(level, color="black", linewidth=0.6, linestyle=":")
    right.axvline(1, color="black", linewidth=0.6, linestyle=":")
    finish(left, "accuracy, by the law", "accuracy, trained until it settled")
    finish(right, "load, N/N_c", "trained less law")


STUDY = Study(
    id="t-converged",
    revision=2,
    source="ours, after paper A",
    place="its model, trained on by AdamW until the loss has settled; (T10) is ours",
    statement="Accuracy at the end of training is coverage times attention times storage, without a fitted number.",
    expected="errors of 0.03 on average and 0.10 at worst",
    rule="Accuracy after training that has settled against the law's, at settings drawn beforehand below and above "
    "N_c, where three steps already find the token, all base seeds' seeds in one. Supported if the mean error is at "
    "most 0.03 and no error is above 0.10, standard errors over seeds added. Refuted if the mean error, less those "
    "standard errors and what they add to it, is above 0.03, or if one error is decidedly above 0.10. Otherwise "
    "inconclusive.",
    measure=measure,
    judge_all=judge_all,
    draw=draw,
    power=power,
)
