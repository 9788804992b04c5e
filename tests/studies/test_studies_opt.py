"""Studies of optimisers and of frequencies: every rule can support, refute and leave open; figures are drawn."""

import json
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

from mnemoscope.studies import opt_balance, opt_batch, opt_one_step, opt_rates, zipf_gd, zipf_scaling
from mnemoscope.studies.base import Numbers, Study

SUPPORTED, REFUTED, OPEN = "supported", "refuted", "inconclusive"
NEAR, FAR = (0.95, 1.0, 1.05), (0.2, 1.0, 5.0)


def one_step(sgd: float = 1.0, muon: float = 1.0, newton: float = 1.0, spread: tuple[float, ...] = NEAR) -> Numbers:
    """Counts on the laws, whose powers are multiplied."""
    rows = []
    for alpha in (1.0, 1.5, 2.0):
        powers = {"gd": sgd / (2 * alpha), "muon": muon * (1 + 1 / (2 * alpha))}
        powers["newton"] = powers["muon"]
        for name, power in powers.items():
            for dim in (64, 128, 256, 512):
                level = 60.0 * (newton if name == "newton" else 1.0) * (dim / 64) ** power
                each = [level * factor for factor in spread]
                rows.append({"optimiser": name, "alpha": alpha, "dim": dim, "items": 10**6, "each": each})
    return {"rows": rows}


def batch(sgd: float = 64.0, muon: float = 2048.0, spread: tuple[float, ...] = NEAR) -> Numbers:
    rows = []
    for name, enough in (("sgd", sgd), ("muon", muon)):
        for size in (*(2**k for k in range(1, 18)), 0):
            share = min(1.0, size / enough) if size else 1.0
            rows.append({"optimiser": name, "batch": size, "each": [400 * share * f if size else 400 for f in spread]})
    return {"rows": rows}


def rates(muon_exponential: bool = True, gd_power: float = -0.5, muon_power: float = -2.0) -> Numbers:
    clean, noisy = {}, {}
    for name, power in (("muon", muon_power), ("gd", gd_power)):
        t = 4.0 * np.arange(41)
        fast = name == "muon" and muon_exponential
        clean[name] = {
            "steps": [int(step) for step in t],
            "loss": (4 * (np.exp(-t / 16) if fast else 1 / (1 + t))).tolist(),
        }
        taken = np.array([32.0, 64.0, 128.0, 256.0, 512.0])
        wiggle = np.array([1.02, 0.98, 1.0, 1.02, 0.98])
        noisy[name] = {"steps": [int(step) for step in taken], "excess": (wiggle * taken**power).tolist()}
    return {"clean": clean, "noisy": noisy}


def balance(muon: float = 1.3, adam: float = 4.0, spread: tuple[float, ...] = NEAR) -> Numbers:
    rows = []
    for at, embedding in enumerate(opt_balance.EMBEDDINGS):
        for name, level in (("muon", muon), ("adam", adam if at else 1.0), ("gd", 10.0)):
            rows.append({"optimiser": name, "embedding": embedding, "each": [level * f for f in spread]})
    return {"rows": rows}


def scaling(
    in_d: float = -1.0, in_samples: float = -0.5, gain: float = 2.0, spread: tuple[float, ...] = NEAR
) -> Numbers:
    dims = []
    for dim in (16, 32, 64, 128, 256):
        best = [0.3 * (dim / 16) ** in_d * f for f in spread]
        each = {"threshold": best, "counts": [gain * e for e in best], "power": [gain**0.5 * e for e in best]}
        dims.append({"dim": dim, "each": each, "kept": [dim * f for f in NEAR]})
    rows = [{"samples": T, "each": [(T / 16) ** in_samples * f for f in spread]} for T in (16, 64, 256, 1024)]
    return {"dims": dims, "samples": rows}


def oscillation(rises: float = 2.0, uniform: float = 0.0, spread: float = 0.1) -> Numbers:
    levels = dict(zip(zipf_gd.CASES, (rises, 0.0, uniform, 0.0), strict=True))
    wiggle = spread * np.array([-1.0, 0.0, 1.0, 0.5])
    return {
        "rows": [
            {
                "case": name,
                "rises": (level + wiggle * (name == zipf_gd.FIRST)).tolist(),
                "ends": [-3.0 if name.endswith("small rate") else -6.0] * 4,
                "course": [3.0, 1.0, 2.0, 0.1],
            }
            for name, level in levels.items()
        ]
    }


CASES: list[tuple[Study, Numbers, str]] = [
    (opt_one_step.STUDY, one_step(), SUPPORTED),
    (opt_one_step.STUDY, one_step(sgd=2.0), REFUTED),
    (opt_one_step.STUDY, one_step(muon=0.75), REFUTED),
    (opt_one_step.STUDY, one_step(newton=2.0), REFUTED),
    (opt_one_step.STUDY, one_step(sgd=1.5), OPEN),
    (opt_batch.STUDY, batch(), SUPPORTED),
    (opt_batch.STUDY, batch(muon=64.0), REFUTED),
    (opt_rates.STUDY, rates(), SUPPORTED),
    (opt_rates.STUDY, rates(muon_exponential=False), REFUTED),
    (opt_rates.STUDY, rates(gd_power=-1.0), REFUTED),
    (opt_rates.STUDY, rates(muon_power=-1.0), REFUTED),
    (opt_rates.STUDY, rates(muon_power=-1.5), OPEN),
    (opt_balance.STUDY, balance(), SUPPORTED),
    (opt_balance.STUDY, balance(muon=4.0), REFUTED),
    (opt_balance.STUDY, balance(adam=1.0), REFUTED),
    (opt_balance.STUDY, balance(spread=FAR), OPEN),
    (zipf_scaling.STUDY, scaling(), SUPPORTED),
    (zipf_scaling.STUDY, scaling(in_d=-0.5), REFUTED),
    (zipf_scaling.STUDY, scaling(in_samples=-1.0), REFUTED),
    (zipf_scaling.STUDY, scaling(gain=0.5), REFUTED),
    (zipf_scaling.STUDY, scaling(spread=FAR), OPEN),
    (zipf_gd.STUDY, oscillation(), SUPPORTED),
    (zipf_gd.STUDY, oscillation(uniform=3.0), REFUTED),
    (zipf_gd.STUDY, oscillation(spread=3.0), OPEN),
]


@pytest.mark.parametrize(("study", "numbers", "verdict"), CASES, ids=lambda part: getattr(part, "id", None))
def test_rules_go_every_way(study: Study, numbers: Numbers, verdict: str):
    plain: Any = json.loads(json.dumps(numbers))
    assert study.judge(plain).verdict == verdict


@pytest.mark.parametrize("case", [case for case in CASES if case[2] == SUPPORTED], ids=lambda case: case[0].id)
def test_figures_are_drawn_from_the_numbers(case: tuple[Study, Numbers, str]):
    figure = Figure()
    case[0].draw(json.loads(json.dumps(case[1])), figure)
    assert figure.axes
    assert all(axes.get_xlabel() for axes in figure.axes)
