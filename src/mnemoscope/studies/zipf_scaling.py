r"""Paper H: with zipf items the error of outer products falls as powers of d and of the number of samples T.

The abstract has precise scaling laws in both; that data is zipf, and which schemes are compared, is in summaries of the
paper. Here M answers are shared by N items, p_i ~ i^-alpha, and the error is the frequency of the items that are wrong.
Ours: the P most frequent items are recalled as long as P is about d, since items that share an answer interfere with a
variance of P/(M d); what is left has the frequency P^-(alpha - 1). Of T samples' items, those never seen have a
frequency of about T^-(1 - 1/alpha). So

    error ~ d^-(alpha - 1) where samples abound,     error ~ T^-(1 - 1/alpha) where d does.             (F1)
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from mnemoscope.experiments.estimate.power_law import Exponent, Points, fit_power_law
from mnemoscope.experiments.stored_by_frequency import error, see, threshold
from mnemoscope.spec import Memory
from mnemoscope.studies.base import BASES, Bench, Judgement, Numbers, Power, Size, Study, Verdict, all_agree, within
from mnemoscope.studies.panels import draw_law, finish, log_axes
from mnemoscope.studies.power import Draw, rehearse
from mnemoscope.studies.seed_means import show, spread

ALPHA, ANSWERS = 2.0, 8
ITEMS: dict[Size, int] = {"quick": 8192, "full": 65536}
DIMS: dict[Size, tuple[int, ...]] = {"quick": (16, 27, 45, 76, 128, 215), "full": (32, 54, 91, 152, 256, 431, 724)}
SEEDS: dict[Size, int] = {"quick": 6, "full": 8}
# So few samples, in so many dimensions, that d does not bind.
SAMPLES: dict[Size, tuple[int, ...]] = {"quick": (16, 45, 128, 362, 1024), "full": (16, 45, 128, 362, 1024, 2896)}
AMPLE_DIM: dict[Size, int] = {"quick": 512, "full": 2048}
# P over d, of which the best is taken; and the power of the milder weight.
KEPT = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
RHO = 0.25
# The box about each power of (F1), relative to it.
BOX = 0.25


def measure(size: Size, bench: Bench) -> Numbers:
    """Errors by d for every scheme, and by T where d abounds."""
    seeds = range(bench.seed, bench.seed + SEEDS[size])
    by_dim: list[Numbers] = []
    for dim in DIMS[size]:
        each: dict[str, list[float]] = {"counts": [], "power": [], "threshold": []}
        kept = []
        for seed in seeds:
            seen = see(_memory(size, dim), seed)
            each["counts"].append(error(seen, seen.share))
            each["power"].append(error(seen, seen.share**RHO))
            tried = [error(seen, threshold(seen, max(1, round(share * dim)))) for share in KEPT]
            each["threshold"].append(min(tried))
            kept.append(KEPT[int(np.argmin(tried))] * dim)
        by_dim.append({"dim": dim, "each": each, "kept": kept})
    by_samples: list[Numbers] = []
    dim = AMPLE_DIM[size]
    for samples in SAMPLES[size]:
        every = [see(_memory(size, dim), seed, samples) for seed in seeds]
        errors = [error(seen, threshold(seen, dim)) for seen in every]
        by_samples.append({"samples": samples, "each": errors})
    return {"dims": by_dim, "samples": by_samples}


def _memory(size: Size, dim: int) -> Memory:
    return Memory(items=ITEMS[size], dim=dim, outputs=ANSWERS, embedding="gaussian", frequencies=f"zipf:{ALPHA:g}")


def power_of(x: Sequence[float], each: Sequence[Sequence[float]]) -> Exponent:
    """The power of x in mean values over seeds."""
    mean = np.array([np.mean(values) for values in each])
    scatter = np.array([np.std(values, ddof=1) / np.sqrt(len(values)) for values in each])
    points = Points(("x",), np.array(x, float)[:, None], np.log(mean), np.maximum(scatter / mean, 1e-3))
    return fit_power_law(points).exponents[0]


def judge_all(all_numbers: Sequence[Numbers]) -> Judgement:
    """By the powers of d and T of the best threshold, of P in d, and by its error under that of plain counts."""
    dims, samples = pool(all_numbers)
    d = [row["dim"] for row in dims]
    in_d = power_of(d, [row["each"]["threshold"] for row in dims])
    in_samples = power_of([row["samples"] for row in samples], [row["each"] for row in samples])
    kept = power_of(d, [row["kept"] for row in dims])
    last = dims[-1]["each"]
    gains = {name: spread(np.log(np.divide(last["counts"], last[name])).tolist()) for name in ("threshold", "power")}
    laws = {"d": -(ALPHA - 1), "T": -(1 - 1 / ALPHA), "P": 1.0}
    text = (
        f"error d^{say(in_d)} beside {laws['d']:.2f}, T^{say(in_samples)} beside {laws['T']:.2f}; best P goes as "
        f"d^{say(kept)}; at d = {dims[-1]['dim']} ln error below plain counts' by {show(gains['threshold'])} with the "
        f"best threshold, {show(gains['power'])} with the weight {RHO:g}"
    )
    gained: list[Verdict] = [within(row["low"], row["high"], 0.0, math.inf) for row in gains.values()]
    verdict = all_agree((_near(in_d, laws["d"]), _near(in_samples, laws["T"]), within(kept.low, kept.high, 0.5, 1.5)))
    return Judgement(text, all_agree((verdict, all_agree(gained))))


def _near(power: Exponent, law: float) -> Verdict:
    low, high = sorted((law * (1 - BOX), law * (1 + BOX)))
    return within(power.low, power.high, low, high)


def say(power: Exponent) -> str:
    """A power with its interval."""
    return f"{power.value:.2f} [{power.low:.2f}, {power.high:.2f}]"


def pool(all_numbers: Sequence[Numbers]) -> tuple[list[Numbers], list[Numbers]]:
    """The rows of all base seeds, their seeds in one."""
    dims = [
        {
            "dim": rows[0]["dim"],
            "kept": [value for row in rows for value in row["kept"]],
            "each": {name: [value for row in rows for value in row["each"][name]] for name in rows[0]["each"]},
        }
        for rows in zip(*(numbers["dims"] for numbers in all_numbers), strict=True)
    ]
    samples = [
        {"samples": rows[0]["samples"], "each": [value for row in rows for value in row["each"]]}
        for rows in zip(*(numbers["samples"] for numbers in all_numbers), strict=True)
    ]
    return dims, samples


def power(size: Size) -> Power:
    """The power if (F1) holds, and if errors or P follow other powers, or a threshold gains nothing."""

    def drawn(in_d: float = -1.0, in_samples: float = -0.5, kept: float = 1.0, gain: float = 2.0) -> Draw:
        def base(rng: np.random.Generator) -> Numbers:
            def draws(mean: float) -> list[float]:
                return (mean * np.exp(rng.normal(0.0, 0.1, SEEDS[size]))).tolist()

            dims = []
            for dim in DIMS[size]:
                best = 0.5 * (dim / 16) ** in_d
                each = {"threshold": draws(best), "counts": draws(gain * best), "power": draws(best * gain**0.5)}
                dims.append({"dim": dim, "each": each, "kept": draws(dim**kept)})
            rows = [{"samples": T, "each": draws(0.1 * (T / 64) ** in_samples)} for T in SAMPLES[size]]
            return {"dims": dims, "samples": rows}

        return lambda rng: [base(rng) for _ in range(BASES[size])]

    return rehearse(
        judge_all,
        drawn(),
        {
            "error as d^-0.5": drawn(in_d=-0.5),
            "error as d^-2": drawn(in_d=-2.0),
            "error as T^-1": drawn(in_samples=-1.0),
            "P as d²": drawn(kept=2.0),
            "plain counts as good": drawn(gain=1.0),
        },
        note="errors and P scatter over seeds by 10 % about (F1)",
    )


def draw(numbers: Numbers, figure: Any) -> None:
    """Errors against d, by scheme, and against T."""
    left, right = figure.subplots(1, 2)
    dims, samples = pool([numbers])
    d = [float(row["dim"]) for row in dims]
    ends: list[float] = []
    for color, name in enumerate(("counts", "power", "threshold")):
        means = [float(np.mean(row["each"][name])) for row in dims]
        left.plot(d, means, f"C{color}o-", label=name)
        ends += means
    draw_law(left, d, [ends[-1] * (dim / d[-1]) ** -(ALPHA - 1) for dim in d], f"d^-{ALPHA - 1:g}", "--")
    log_axes(left, d, ends)
    T = [float(row["samples"]) for row in samples]
    means = [float(np.mean(row["each"])) for row in samples]
    right.plot(T, means, "C2o-", label="threshold, d abounds")
    draw_law(right, T, [means[0] * (t / T[0]) ** -(1 - 1 / ALPHA) for t in T], f"T^-{1 - 1 / ALPHA:g}", "--")
    log_axes(right, T, means)
    finish(left, "d", "error")
    finish(right, "samples, T", "error")


STUDY = Study(
    id="zipf-scaling",
    revision=1,
    source="ours, after paper H",
    place="the abstract: precise scaling laws in the number of samples and of parameters, and the efficiency of "
    "different estimators; it gives no power, and those of (F1) are ours",
    statement="With zipf items and shared answers the error of outer products falls as d^-(alpha - 1) and as "
    "T^-(1 - 1/alpha); storing about the d most frequent items, or a milder weight, beats plain counts.",
    expected="powers of -1 in d and -0.5 in T at alpha = 2, the best P in proportion to d, and gains over plain counts",
    rule="One power each through mean errors over all base seeds' seeds: of d in the error of the best threshold P, of "
    "T in that of P = d where d abounds, and of d in the best P; and at the largest d the logarithm of the error with "
    "plain counts over that with the best threshold, and over that with the milder weight. Supported if the 95 % "
    "intervals lie within 25 % of -1 and of -0.5, within 0.5 to 1.5 for P, and above 0 for both gains; refuted if one "
    "lies outside.",
    measure=measure,
    judge_all=judge_all,
    draw=draw,
    power=power,
)
