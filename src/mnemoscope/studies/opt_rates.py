r"""Paper F: Muon's loss falls exponentially where gradient descent's falls as a power, and faster under label noise.

A linear memory with an orthonormal frame, N = d = M, and frequencies p_i ~ i^-beta; the loss is the expected one. The
abstract has an exponential speedup without noise and a superior scaling law with it. Summaries of the paper report

    without noise   gradient descent  K/t       Muon  K e^-t
    with noise      gradient descent  no better than T^-(1 - 1/beta)       Muon  (ln K / T)^2

where with noise Muon's rate is chosen for the number of steps T, as c/T, and the loss is that above its least value:

    q = 1 - noise + noise/M,  o = noise/M:   L* = -q ln q - (M - 1) o ln o,   margins ln(q/o)     (N1)

Here c is twice the margin of (N1), so that half of the steps are enough to reach it.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from mnemoscope.experiments.estimate.power_law import Exponent, Points, fit_power_law
from mnemoscope.experiments.loss_curves import follow
from mnemoscope.spec import Memory
from mnemoscope.spec.optimisers import Optimiser
from mnemoscope.studies.base import BASES, Bench, Judgement, Numbers, Power, Size, Study, Verdict, all_agree
from mnemoscope.studies.panels import finish
from mnemoscope.studies.power import Draw, rehearse

ITEMS: dict[Size, int] = {"quick": 96, "full": 256}
BETA, NOISE = 2.0, 0.2
# Steps of the noisy trainings: for Muon many more than its mean of gradients remembers, which is about twenty.
STEPS: dict[Size, dict[str, tuple[int, ...]]] = {
    "quick": {"muon": (96, 108, 121, 136, 152, 171, 192, 215, 242, 271, 304), "gd": (16, 32, 64, 128, 256)},
    "full": {"muon": (96, 121, 152, 192, 242, 304, 384, 484, 609, 768), "gd": (16, 32, 64, 128, 256, 512)},
}
# Without noise: every so many steps, so often.
EVERY, OFTEN = {"muon": 4, "gd": 64}, 40
RATES = {"muon": 0.05, "gd": 4.0}
NAMES = {"muon": "Muon", "gd": "gradient descent"}
OPTIMISERS: tuple[Optimiser, ...] = ("muon", "gd")
# Losses below this are rounding errors, and those above half of the first are before the fall.
LEAST_LOSS = 1e-6
DECISIVE = 4.0
# How far a finite number of items may move gradient descent's power, and the least power of Muon's.
SLACK, MUON_LEAST = 0.15, 1.5


def measure(size: Size, bench: Bench) -> Numbers:
    """The loss by step without noise, and its excess by the number of steps with it."""
    N = ITEMS[size]
    clean, noisy = {}, {}
    for name in OPTIMISERS:
        steps = [EVERY[name] * k for k in range(OFTEN + 1)]
        clean[name] = {"steps": steps, "loss": follow(_memory(N, name, RATES[name]), bench.seed, steps).loss.tolist()}
        noisy[name] = {
            "steps": list(STEPS[size][name]),
            "excess": [_excess(N, name, taken, bench.seed) for taken in STEPS[size][name]],
        }
    return {"clean": clean, "noisy": noisy}


def _memory(items: int, optimiser: Optimiser, lr: float, noise: float = 0.0) -> Memory:
    return Memory(
        items=items,
        dim=items,
        method="trained",
        optimiser=optimiser,
        lr=lr,
        embedding="orthonormal",
        frequencies=f"zipf:{BETA:g}",
        label_noise=noise,
    )


def _excess(items: int, optimiser: Optimiser, steps: int, seed: int) -> float:
    least, margin = least_loss(items)
    lr = 2 * margin / steps if optimiser == "muon" else RATES["gd"]
    loss = follow(_memory(items, optimiser, lr, NOISE), seed, [steps]).loss[0]
    return max(float(loss) - least, LEAST_LOSS)


def least_loss(labels: int) -> tuple[float, float]:
    """(N1): the least loss, and the margin at which it is reached."""
    own, other = 1 - NOISE + NOISE / labels, NOISE / labels
    return -own * math.log(own) - (labels - 1) * other * math.log(other), math.log(own / other)


def lead_of_exponential(steps: Sequence[int], loss: Sequence[float]) -> float | None:
    """Akaike's criterion of a power of t less that of an exponential, on the way down; None with too few losses."""
    t, y = np.array(steps, float), np.array(loss, float)
    kept = (t > 0) & (y < y[0] / 2) & (y > LEAST_LOSS)
    if kept.sum() < 5:
        return None
    t, log = t[kept], np.log(y[kept])

    def misfit(x: np.ndarray) -> float:
        slope, level = np.polyfit(x, log, 1)
        return float(np.mean((log - level - slope * x) ** 2)) + 1e-9

    return len(t) * math.log(misfit(np.log(t)) / misfit(t))


def power_of_steps(steps: Sequence[int], excess: Sequence[float]) -> Exponent:
    """The power of T in the excess loss."""
    points = Points(("steps",), np.array(steps, float)[:, None], np.log(excess), np.full(len(steps), 1e-3))
    return fit_power_law(points).exponents[0]


def judge_all(all_numbers: Sequence[Numbers]) -> Judgement:
    """By the better form without noise, and by the powers of T with it; a frame makes seeds agree."""
    numbers = all_numbers[0]
    leads = {name: lead_of_exponential(**numbers["clean"][name]) for name in OPTIMISERS}
    powers = {name: power_of_steps(**numbers["noisy"][name]) for name in OPTIMISERS}
    muon, gd = leads["muon"], leads["gd"]
    if muon is None or gd is None:
        return Judgement("too few losses on the way down", "inconclusive")
    bound = 1 - 1 / BETA
    text = (
        f"without noise an exponential is {muon:+.1f} ahead of a power for Muon and {gd:+.1f} for gradient descent; "
        + "with noise the excess goes as "
        + ", ".join(
            f"T^{powers[name].value:.2f} [{powers[name].low:.2f}, {powers[name].high:.2f}] with {NAMES[name]}"
            for name in OPTIMISERS
        )
        + f", bound T^-{bound:.2f}"
    )
    verdicts: list[Verdict] = [
        _decide(muon >= DECISIVE and gd <= -DECISIVE, muon <= -DECISIVE or gd >= DECISIVE),
        _decide(powers["gd"].low >= -bound - SLACK, powers["gd"].high < -bound - SLACK),
        _decide(powers["muon"].high <= -MUON_LEAST, powers["muon"].low > -MUON_LEAST),
    ]
    return Judgement(text, all_agree(verdicts))


def _decide(supported: bool, refuted: bool) -> Verdict:
    return "refuted" if refuted else "supported" if supported else "inconclusive"


def power(size: Size) -> Power:
    """The power if losses follow the claimed forms, and if either optimiser has the other's."""

    def drawn(exponential: dict[str, bool], powers: dict[str, float]) -> Draw:
        def base(rng: np.random.Generator) -> Numbers:
            clean, noisy = {}, {}
            for name in OPTIMISERS:
                steps = [EVERY[name] * k for k in range(OFTEN + 1)]
                t = np.array(steps, float)
                law = np.exp(-t / (4 * EVERY[name])) if exponential[name] else 1 / (1 + t / EVERY[name])
                clean[name] = {"steps": steps, "loss": (4 * law * np.exp(rng.normal(0.0, 0.1, len(t)))).tolist()}
                taken = STEPS[size][name]
                excess = [step ** powers[name] * math.exp(rng.normal(0.0, 0.1)) for step in taken]
                noisy[name] = {"steps": list(taken), "excess": excess}
            return {"clean": clean, "noisy": noisy}

        return lambda rng: [base(rng) for _ in range(BASES[size])]

    forms, powers = {"muon": True, "gd": False}, {"muon": -2.0, "gd": -(1 - 1 / BETA)}
    return rehearse(
        judge_all,
        drawn(forms, powers),
        {
            "both as powers": drawn({"muon": False, "gd": False}, powers),
            "both exponential": drawn({"muon": True, "gd": True}, powers),
            "Muon as T^-1": drawn(forms, {**powers, "muon": -1.0}),
            "gradient descent as T^-1": drawn(forms, {**powers, "gd": -1.0}),
        },
        note="losses scatter by 10 % about the claimed forms",
    )


def draw(numbers: Numbers, figure: Any) -> None:
    """Losses without noise, and excess losses with it."""
    left, right = figure.subplots(1, 2)
    for color, name in enumerate(OPTIMISERS):
        course = numbers["clean"][name]
        left.plot(course["steps"], np.maximum(course["loss"], LEAST_LOSS), f"C{color}.-", label=NAMES[name])
        noisy = numbers["noisy"][name]
        right.plot(noisy["steps"], noisy["excess"], f"C{color}o-", label=NAMES[name])
    for name, slope, style in (("gd", -(1 - 1 / BETA), "--"), ("muon", -2.0, ":")):
        noisy = numbers["noisy"][name]
        steps = np.array(noisy["steps"], float)
        line = noisy["excess"][0] * (steps / steps[0]) ** slope
        right.plot(steps, line, style, color="black", linewidth=0.9, label=f"T^{slope:.2f}")
    left.set_title("no noise", fontsize=9)
    right.set_title(f"label noise {NOISE:g}, least loss taken off", fontsize=9)
    for axes in (left, right):
        axes.set_yscale("log")
    right.set_xscale("log", base=2)
    finish(left, "step, t", "loss")
    finish(right, "steps in all, T", "excess loss")


STUDY = Study(
    id="opt-rates",
    revision=1,
    source="paper F (abstract)",
    place="version 3: an exponential speedup over gradient descent without noise, and a superior scaling law with it; "
    "K/t, K e^-t, T^-(1 - 1/beta) and (ln K / T)^2 are reported by summaries of the paper",
    statement="Without label noise Muon's loss falls exponentially and gradient descent's as a power of the steps; "
    "with noise Muon's excess falls as T^-2, gradient descent's no faster than T^-(1 - 1/beta).",
    expected="an exponential for Muon, a power for gradient descent; with noise powers of T of -2 or less and -0.5",
    rule="Without noise, Akaike's criterion of a power of t less that of an exponential on the losses between half of "
    "the first and 1e-6: at least 4 for Muon and at most -4 for gradient descent. With noise, the powers of T in the "
    "loss above its least value: gradient descent's 95 % interval must not reach below -(1 - 1/beta) - 0.15, where "
    "0.15 allows for a finite number of items, and Muon's must lie at or below -1.5. Supported if all of it holds, "
    "refuted if one is decided the other way. In an orthonormal frame seeds agree, so the first base seed is judged.",
    measure=measure,
    judge_all=judge_all,
    draw=draw,
    power=power,
)
